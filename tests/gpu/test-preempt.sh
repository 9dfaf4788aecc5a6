#!/bin/sh
# preempt.sh on the simulated GPU, with small kernels: the table has all its rows, programs were preempted,
# and nothing was refused. What the numbers are is not looked at.
#
# usage: test-preempt.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
# With time slices sbeetd may find out that nothing helps here, where others have the CPUs, and preempt nobody.
export SIMGPU_TIMESLICES=refused
export SIMGPU=1 TURN=10ms WARM_S=1 WINDOW_S="${WINDOW_S:-0.2}" ROUNDS="${ROUNDS:-5 50 10}"

sh "$folder/preempt.sh" 1 2 >"$folder/log" 2>&1 || fail "exit code"
for how in slices sbeet turns; do
	[ "$(grep -c "^$how " "$OUT/preempt.txt")" -eq 2 ] || fail "rows of $how"
done
grep -q 'preempted [1-9][0-9]* times, refused 0 times' "$OUT/preempt.txt" || fail "nobody was preempted"
grep -q 'changed turns [1-9][0-9]* times' "$OUT/preempt.txt" || fail "nobody took turns"
