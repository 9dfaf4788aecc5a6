#!/bin/sh
# exact.sh on the simulated GPU: the programs that were preempted, or took turns, have right results, and one
# whose results are wrong is told.
#
# usage: test-exact.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
apps=$SBEET_BUILD/tests/apps/driver
export SIMGPU=4 FRAMEWORKS='' FRAMES=2 WINDOW_S=1 URGENT_ROUNDS=10 SAMPLES="$apps/graph $apps/hotspot"

sh "$folder/exact.sh" 1500 >"$folder/log" 2>&1 || fail "exit code"
for program in graph endless; do
	grep -q "^$program *[1-9][0-9]* *0$" "$OUT/exact.txt" || fail "$program"
done
grep -q "^[1-9][0-9]* preemptions" "$OUT/exact.txt" || fail "nobody was preempted"
! SAMPLES=false sh "$folder/exact.sh" 1 >"$folder/log" 2>&1 || fail "no word of a wrong result"
grep -q "^false *[1-9][0-9]* *[1-9]" "$OUT/exact.txt" || fail "a wrong result is not counted"
TURN=10ms sh "$folder/exact.sh" 5 >"$folder/log" 2>&1 || fail "exit code with turns"
grep -q "^endless *2 *0$" "$OUT/exact.txt" || fail "endless ones that take turns"
grep -q "^[1-9][0-9]* turns of 10ms" "$OUT/exact.txt" || fail "nobody took turns"
