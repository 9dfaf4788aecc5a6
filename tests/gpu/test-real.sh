#!/bin/sh
# real.sh on the simulated GPU, with one small program in the place of all: each column keeps a line a cell, nothing is
# measured twice, results are compared with those alone and one that differs is told, late frames and the time until
# none is late are counted right, and a program that does not start is told. What the times are is not looked at.
#
# usage: test-real.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
ln -s "$gpu/../apps/ptx" "$folder/ptx"
ln -s "$gpu/frameworks" "$gpu/real" "$folder/"
export SIMGPU=32:mps STAND_INS=yes SECONDS_MIN=1 LEAD_S=0.2 BUDGET_S=200 PYTHONDONTWRITEBYTECODE=1 LIST="$folder/list"
out=$OUT
logs="$folder/log $out/real.csv"
cat >"$LIST" <<END
urgent quick 50 50 10 khz
urgent hopeless 50 0.001 10 khz
other one khz
other two khz
cell quick one
cell quick one two
cell hopeless two
END

run() { # COLUMNS
	COLUMNS=$1 sh "$folder/real.sh" "$out" >"$folder/log" 2>&1
}

# COLUMN CELL FIELD
field() {
	awk -F, -v column="$1" -v cell="$2" -v n="$3" '$1 == column && $2 == cell { print $n }' "$out/real.csv"
}

run "alone mps mps-50 client-priority own-priority" || fail "it failed"
[ "$(grep -c '^alone,' "$out/real.csv")" -eq 4 ] || fail "alone has a line for each program"
for column in mps mps-50 client-priority own-priority; do
	[ "$(grep -c "^$column," "$out/real.csv")" -eq 3 ] || fail "$column"
	late=$(awk '$1 == "quick+one" { for (i = 3; i <= NF; i++) n += $i > 50 } END { print n + 0 }' \
		"$out/frames-$column.txt")
	[ "$(field $column quick+one 6)" -eq $((late + $(field $column quick+one 7))) ] || fail "$column: late frames"
	[ "$late" -gt 0 ] || [ "$(field $column quick+one 11)" = 0.0 ] || fail "$column: deadlines are kept"
	[ "$(field $column hopeless+two 6)" -eq "$(field $column hopeless+two 5)" ] || fail "$column: not all are late"
	[ "$(field $column hopeless+two 11)" = never ] || fail "$column: no deadline is ever kept"
	field $column quick+one+two 12 | grep -q '^[1-9][0-9.]*+[1-9][0-9.]*$' || fail "$column: the rates of two others"
	[ "$(field $column quick+one 13)" = equal ] || fail "$column: results"
done
cp "$out/real.csv" "$folder/before"
ROUNDS=2 run "mps steer" || fail "it failed"
[ "$(grep -c '^mps,.*,2,' "$out/real.csv")" -eq 3 ] || fail "the second round is missing"
[ "$(grep -c '^steer,' "$out/real.csv")" -eq 6 ] || fail "steer"
head -n "$(wc -l <"$folder/before")" "$out/real.csv" | cmp -s - "$folder/before" || fail "lines have changed"
n=$(wc -l <"$out/real.csv")
run "mps steer static nvshare hami" || fail "it failed"
[ "$(wc -l <"$out/real.csv")" -eq "$n" ] || fail "something was measured twice, or is not on this machine"
grep -q "nvshare: not on this machine" "$folder/log" || fail "it does not say what is missing"
grep -q '^| steer, again | .* of .* | equal |$' "$out/real.md" || fail "the table"
COLUMNS=none CELLS=quick+one sh "$folder/real.sh" "$out" >"$folder/log" 2>&1 || fail "it failed"
[ "$(grep -c '^none,' "$out/real.csv")" -eq 1 ] || fail "one cell alone"
sed -i 's/"[0-9a-f]\{12\}"/"000000000000"/' "$out/results.json"
run mps-25 && fail "a result that differs is no failure"
grep -q "^DIFFERENT: mps-25 " "$folder/log" || fail "it does not say which result differs"
sed -i 's/^cell quick one$/cell broken one/; 1i urgent broken 20 10 10 khz --no-such' "$LIST"
mv "$folder/ptx" "$folder/away"
run fcfs && fail "programs that don't start are no failure"
grep -q "fcfs: .* has ended" "$folder/log" || fail "nothing is said of programs that don't start"
exit 0
