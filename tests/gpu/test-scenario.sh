#!/bin/sh
# scenario.sh on the simulated GPU, with a tiny kernel for each program: columns of each kind keep a line a
# cell, nothing is measured twice, sbeetd knows the deadline of the cell, a second urgent program has a line and a
# deadline of its own, a program that fails is told, and the table has all columns. What the numbers are is not
# looked at.
#
# usage: test-scenario.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
ln -s "$gpu/../apps/ptx" "$folder/ptx"
ln -s "$gpu/frameworks" "$folder/"
export SIMGPU=32:mps SCALE=0
export SECONDS_CELL=1 LEAD_S=0.1 BUDGET_S=150 MODES="eager:33:12 graph:10:6" PYTHONDONTWRITEBYTECODE=1
out=$OUT
logs="$folder/log $out/scenario.csv"

run() { # COLUMNS OTHERS
	COLUMNS=$1 OTHERS=$2 sh "$folder/scenario.sh" "$out" >"$folder/log" 2>&1 || {
		cat "$folder/log" "$out"/errors-*
		exit 1
	}
}

# COLUMN: its lines of the other program alone, which made progress.
idle() {
	awk -F, -v column="$1" '$1 == column && $3 == "idle" && $7 == 0 && $13 > 0' "$out/scenario.csv" | wc -l
}

# COLUMN: its lines in which jobs ended and, where there was one, the other made progress.
rows() {
	awk -F, -v column="$1" '$1 == column && NF == 13 && $7 > 0 && $10 > 0 && ($2 ~ /^none/) == ($13 == 0)' \
		"$out/scenario.csv" | wc -l
}

! OPTIONS=--no-such-option COLUMNS=steer OTHERS=none sh "$folder/scenario.sh" "$out" >"$folder/log" 2>&1 ||
	fail "options of sbeetd don't reach it"
run "alone mps mps-50 priority fixed-8" "none train"
[ "$(rows alone)" -eq 2 ] || fail "alone has nothing beside it"
for column in mps mps-50 priority fixed-8; do
	[ "$(rows $column)" -eq 4 ] || fail "$column"
done
for column in alone mps; do
	[ "$(idle $column)" -eq 1 ] || fail "$column: the other one alone"
done
cp "$out/scenario.csv" "$folder/before"
run "mps steer" "none train"
[ "$(rows steer)" -eq 4 ] || fail "steer"
head -n 24 "$out/scenario.csv" | cmp - "$folder/before"
grep -q "^none:graph:10:6" "$out/explain-steer.txt" || fail "no word of the cell"
sed -n '/^none:graph:10:6/,/^train/p' "$out/explain-steer.txt" | grep -q "6 *ms" || {
	cat "$out/explain-steer.txt"
	fail "sbeetd does not know the deadline of 6 ms"
}
grep -q "^| steer | .* of .*, .* / .* ms, .* /s |" "$out/scenario.md" || fail "the table"
MODES=graph:33:12 run "priority fixed-8 steer" "none+20/7 train+21/9"
for column in priority fixed-8 steer; do
	grep -q "^$column: 3 programs ready" "$folder/log" || fail "$column: not all were there from the start"
	[ "$(rows $column)" -eq 8 ] || fail "$column, two urgent ones"
	for key in none+20/7,graph,33,12 none+33/12,graph,20,7 train+21/9,graph,33,12 train+33/12,graph,21,9; do
		grep -q "^$column,$key," "$out/scenario.csv" || fail "$column has no line of $key"
	done
done
deadlines=$(sed -n '/^train+21.9:graph:33:12/,$s/.*; deadline \([^,]*\).*/\1/p' "$out/explain-steer.txt" | tr '\n' ' ')
[ "$deadlines" = "12ms 9ms " ] || fail "sbeetd knows these deadlines: $deadlines"
for other in train+21/9 train+33/12; do
	sed -n "\\;^| beside $other ;,/^\$/p" "$out/scenario.md" | grep -q "^| steer | .* of .*, .* / .* ms, .* /s |" ||
		fail "the table beside $other"
done
MODES=graph:33:12 run "mps steer" train+products
for column in mps steer; do
	grep "^$column,train+products,graph,33,12," "$out/scenario.csv" | cut -d , -f 13 |
		grep -q '^[1-9][0-9.]*+[1-9][0-9.]*$' || fail "$column: not each of two others made progress"
done
mkdir "$folder/no-mps"
SIMGPU=32 SIMGPU_DIR=$folder/no-mps run preempt train
[ "$(rows preempt)" -eq 2 ] || fail "preempt"
grep -q "preempted [1-9][0-9]* times, refused 0 times" "$folder/log" || fail "nobody was preempted"
run steer+yield=off none
[ "$(rows steer+yield=off)" -eq 2 ] || fail "a policy's parameter"
! COLUMNS=steer+yield=maybe OTHERS=none sh "$folder/scenario.sh" "$out" >"$folder/log" 2>&1 || fail "a wrong parameter"
mv "$folder/frameworks" "$folder/away"
! COLUMNS=mps OTHERS=copies sh "$folder/scenario.sh" "$out" >"$folder/log" 2>&1 || fail "programs that don't start"
