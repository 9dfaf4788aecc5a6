#!/bin/sh
# order.sh on the simulated GPU: programs keep their order while their sets change, one whose results are wrong is
# told, and each of two has a seed of its own.
#
# usage: test-order.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=h200:mps FRAMES=5
ln -s "$SBEET_BUILD/tests/apps/driver/order" "$SBEET_BUILD/tests/apps/driver/graph" "$folder/bin/"

sh "$folder/order.sh" >"$folder/log" 2>&1 || fail "exit code"
for run in plain-order-1 plain-graph-2 steer-order-1 steer-graph-2 even-order-2 even-graph-1; do
	grep -q "^$run: 0 results wrong in 5 frames$" "$OUT/order.txt" || fail "$run"
done
for policy in steer even; do
	grep -q "^$policy: other sets [1-9]" "$OUT/order.txt" || fail "$policy: the same sets all the time"
done
# Its fourth argument is the seed.
printf '#!/bin/sh\necho "{\\"wrong\\":$4,\\"ok\\":false}"\nexit 1\n' >"$folder/bin/liar"
chmod +x "$folder/bin/liar"
! SEED=7 PROGRAMS=liar POLICIES=steer sh "$folder/order.sh" >"$folder/log" 2>&1 || fail "no word of a wrong result"
for run in "plain-liar-1: 7" "plain-liar-2: 8" "steer-liar-2: 8"; do
	grep -q "^$run results wrong" "$OUT/order.txt" || fail "a wrong result is not counted: $run"
done
