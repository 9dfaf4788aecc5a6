#!/bin/sh
# pairs.sh on the simulated GPU: each pair of works has a line for each split, and, of known watts, the
# predictions and errors are right.
#
# usage: test-pairs.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export SIMGPU=32:mps SCALE=0 MS=300

WORKS="vecadd matmul-small compute" SPLITS="8:8 8:24" sh "$folder/pairs.sh" "$OUT" >"$folder/log" 2>&1 || fail "exit code $?"
for pair in "vecadd matmul-small" "vecadd compute" "matmul-small compute"; do
	for split in 8:8 8:24; do
		grep -Eqx "$pair +$split +[0-9.]+ +[0-9.]+ +[-+][0-9.]+" "$OUT/pairs.txt" || fail "$pair on $split"
	done
done
tail -n 1 "$OUT/pairs.txt" | grep -qx "error of 6 splits: mean [0-9.]* %, max [0-9.]* %" || fail "no errors"

mkdir "$folder/known"
cat >"$folder/known/watts.txt" <<END
stream:8 150
stream:24 300
matmul:8 130
static 100
stream:8+matmul:8 200
stream:24+matmul:8 250
END
IDLE_W=10 LIMIT_W=275 sh "$folder/pairs.sh" "$folder/known" | tr -s ' ' >"$folder/log" 2>&1 || fail "exit code $?"
cat >"$folder/expected" <<END
PAIR SPLIT MEASURED W PREDICTED W ERROR %
stream matmul 8:8 200.0 170.0 -15.00
stream matmul 24:8 250.0 275.0 +10.00
error of 2 splits: mean 12.50 %, max 15.00 %
END
cmp "$folder/expected" "$folder/log" || fail "another table"

# What was not measured is told.
echo "stream:24+matmul:24 0" >>"$folder/known/watts.txt"
! sh "$folder/pairs.sh" "$folder/known" >"$folder/log" 2>&1 || fail "0 W are measured"
# So is a split that this GPU hasn't got; the others are there.
! WORKS="vecadd compute" SPLITS="24:24 8:8" sh "$folder/pairs.sh" "$folder/many" >"$folder/log" 2>&1 || fail "48 of 32 SMs"
grep -q "vecadd:24+compute:24: no such SMs" "$folder/log" || fail "a split is missing and nobody says so"
grep -q "^error of 1 splits" "$folder/log" || fail "one missing split takes the others away"
