#!/bin/sh
# kills.sh on the simulated GPU: nothing hangs, whoever is killed, and results are right.
#
# usage: test-kills.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
# With time slices sbeetd may find out that nothing helps here, where others have the CPUs, and preempt nobody.
export SIMGPU_TIMESLICES=refused
export SIMGPU=1 MEMORY_MIB=64 PAIRS=2 ROUNDS=10

sh "$folder/kills.sh" 4 >"$folder/log" 2>&1 || fail "exit code"
for kind in sbeetd helper urgent preempted urgent-stopped preempted-stopped bare; do
	grep -q "^$kind *[1-9][0-9]* *0 |" "$OUT/kills.txt" || fail "$kind"
done

TURN=10ms sh "$folder/kills.sh" 4 >"$folder/log" 2>&1 || fail "exit code, with turns"
for kind in sbeetd helper preempted preempted-stopped bare; do
	grep -q "^$kind *[1-9][0-9]* *0 |" "$OUT/kills.txt" || fail "$kind, with turns"
done
grep -q "turns were told of [1-9]" "$OUT/kills.txt" || fail "nobody took turns"
