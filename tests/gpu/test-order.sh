#!/bin/sh
# order.sh on the simulated GPU: programs keep their order while their sets change, and one whose results are
# wrong is told.
#
# usage: test-order.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=h200:mps FRAMES=5
ln -s "$SBEET_BUILD/tests/apps/driver/order" "$SBEET_BUILD/tests/apps/driver/graph" "$folder/bin/"

sh "$folder/order.sh" >"$folder/log" 2>&1 || fail "exit code"
for run in plain-order plain-graph steer-order-1 steer-graph-2 even-order-2 even-graph-1; do
	grep -q "^$run: 0 results wrong in 5 frames$" "$OUT/order.txt" || fail "$run"
done
for policy in steer even; do
	grep -q "^$policy: other sets [1-9]" "$OUT/order.txt" || fail "$policy: the same sets all the time"
done
printf '#!/bin/sh\necho "{\\"wrong\\":1,\\"ok\\":false}"\nexit 1\n' >"$folder/bin/liar"
chmod +x "$folder/bin/liar"
! PROGRAMS=liar POLICIES=steer sh "$folder/order.sh" >"$folder/log" 2>&1 || fail "no word of a wrong result"
grep -q "^plain-liar: 1 results wrong" "$OUT/order.txt" || fail "a wrong result is not counted"
