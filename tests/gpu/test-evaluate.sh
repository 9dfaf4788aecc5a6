#!/bin/sh
# evaluate.sh on the simulated GPU: it measures profiles, runs task sets of both families in columns of each
# kind, in turns if it should, keeps a line for each cell, each task and each late job, with causes for all of these, measures nothing
# twice, takes its sets from the bundle's commit, and draws. Programs that lookahead plans with make the parts
# of the GPU before their first job. What the numbers are is not looked at, only that those of the table of
# energies are the measured and the simulated ones.
#
# usage: test-evaluate.sh SOURCE; $SBEET_BUILD is the build folder.
set -eu
. "$1/../lib.sh"

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
# Some checks fail without a word of their own.
end() {
	rc=$?
	[ "$rc" -eq 0 ] || tail -n 20 "$folder/log" "$folder"/out/*.csv "$folder"/out/*.txt 2>/dev/null || true
	rm -rf "$folder"
	exit "$rc"
}
trap end EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/gpu/periodic tests/gpu/evaluate; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
cp "$gpu/evaluate.sh" "$gpu/causes.awk" "$gpu/manage.sh" "$folder/"
export SIMGPU=32:mps SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu"
echo 00000f2aaaaaaa-dirty >"$folder/commit"
export GPU_NAME="Simulated GPU with 32 SMs" SCALE=0 SMS="8 16 32" STEP=8 TASKS=3 WINDOW_S=1 LEAD_S=0.2 SETTLE_S=0.2 RUNS=2
export UTILISATIONS=0.4 SETS=1 POWER_MS=100 BUDGET_S=200
csv=$folder/out/evaluate.csv tasks=$folder/out/tasks.csv
logs="$csv $tasks"

run() { # COLUMNS
	COLUMNS=$1 sh "$folder/evaluate.sh" "$folder/out" >"$folder/log" 2>&1 || {
		cat "$folder/log" "$folder/out/errors.txt"
		exit 1
	}
}

rows() { # FAMILY: cells in which jobs ended
	awk -F, -v family="$1" '$1 == family && NF == 15 && $4 == 242 && $7 > 0 && $8 > 0 && $15 ~ /^[0-9]+$/' "$csv" | wc -l
}

PREDICT=yes FAMILIES=mixed run "mps mps-50 fcfs"
[ "$(rows mixed)" -eq 3 ] || fail "three cells"
awk -F, '$1 == "mixed" && NF == 15 && $9 > 0 && $10 > 0 && $12 > 0 && $13 <= $14 && $14 <= $15' "$tasks" | wc -l |
	grep -qx 9 || fail "nine tasks"
fcfs=$("$folder/bin/sbeetctl" simulate -p fcfs -d 1.2s --param=sequential=on --param=exec=drawn --columns=energy_j --no-legend \
	"$folder/out/predict-mixed-0.4-242.json" | head -n 1)
awk -F, -v fcfs="$fcfs" '
	function differ(a, b) { return a - b > 0.02 || b - a > 0.02 }
	NR == FNR { j[$2] = $13; next }
	FNR > 1 && NF == 7 && $5 > 0 && $6 > 0 {
		n++
		bad += $5 != j[$2] || differ($7, 100 * ($6 - $5) / $5) || ($2 == "fcfs" && differ($6, fcfs / 1.2))
	}
	END { exit !(n == 3 && !bad) }' "$csv" "$folder/out/energy.csv" || fail "energies: $(cat "$folder/out/energy.csv")"
[ "$(grep -c "^mixed *0.4 *242 " "$folder/out/energy.txt")" -eq 3 ] && tail -n 1 "$folder/out/energy.txt" |
	grep -qx "error of 3 cells: mean [0-9.]* %, max [0-9.]* %" || fail "the table: $(cat "$folder/out/energy.txt")"
cp "$csv" "$folder/before"
FAMILIES=mixed SBEET_LOG=debug run "mps fcfs lookahead"
grep -q "Made [0-9]* parts of the GPU ahead" "$folder/out/errors.txt" || { head -n 50 "$folder/out/errors.txt"; exit 1; }
[ "$(rows mixed)" -eq 4 ] || fail "the fourth cell"
head -n 4 "$csv" | cmp - "$folder/before"
grep -q lookahead "$folder/out/evaluate-mixed.svg"
tail -n 1 "$folder/out/evaluate-mixed.svg" | grep -q "</svg>"
FAMILIES=long UTILISATIONS=1.2 CAUSES=yes SECONDS_CSV=yes run "mps mps-level host steer"
[ "$(rows long)" -eq 4 ] || fail "the other family"
missed=$(awk -F, '$1 == "long" { n += $11 } END { print n + 0 }' "$tasks")
# Lead and window are 1.2 s: each job that counts is one of these, and others of the lead.
awk -F, 'NR > 1 { lines++; released += $6; missed += $7; if ($7 > $6 || $5 < 1 || $5 > 2) exit 1 }
	END { exit !(lines == 8 && released > 0) }' "$folder/out/seconds.csv" || fail "seconds: $(cat "$folder/out/seconds.csv")"
[ "$missed" -le "$(awk -F, '{ n += $7 } END { print n + 0 }' "$folder/out/seconds.csv")" ] || fail "fewer by seconds"
late=$(awk -F, 'NF == 15 && $15 >= $7 && $8 + $9 + $10 + $11 + $12 + $13 + $14 == $15' "$folder/out/late.csv" | wc -l)
[ "$missed" -eq "$late" ] || fail "$late of $missed misses have a line: $(cat "$folder/out/late.csv")"
[ "$missed" -eq "$(awk '{ for (i = 1; i < NF; i++) if ($(i + 1) == "late:") n += $i } END { print n + 0 }' "$folder/out/causes.txt")" ] ||
	fail "misses have causes: $(cat "$folder/out/causes.txt")"
grep -q "^| long, U 1.2 | 1 |" "$folder/out/summary.txt" || fail "the summary: $(cat "$folder/out/summary.txt")"
grep -q "long, steer against mps" "$folder/out/summary.txt" || fail "what steer misses more"

cp "$csv" "$folder/before"
FAMILIES=mixed TURNS=2 run "mps fcfs"
rows=$(wc -l <"$folder/before")
tail -n +$((rows + 1)) "$csv" | cut -d , -f 2,4 | tr '\n' ' ' | grep -qx "fcfs,24202 mps,24202 " || fail "the second turn: $(cat "$csv")"
