#!/bin/sh
# preempt.sh on the simulated GPU, with small kernels: the table has all its rows, programs were preempted,
# and nothing was refused. What the numbers are is not looked at.
#
# usage: test-preempt.sh SOURCE; $SBEET_BUILD is the build folder.
set -eu

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/gpu/urgent; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
ldd "$SBEET_BUILD/shim/libsbeet.so" | awk '/libprotobuf-c/ { print $3 }' | while read -r library; do
	ln -s "$library" "$folder/lib/"
done
cp "$gpu/preempt.sh" "$gpu/manage.sh" "$folder/"
export SIMGPU=1 SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu"
export PRELOAD="$SBEET_BUILD/tests/simgpu/libsimgpu-ioctl.so" OUT="$folder/out"
export WINDOW_S="${WINDOW_S:-0.2}" ROUNDS="${ROUNDS:-5 50 10}"

fail() {
	echo "failed: $*"
	cat "$folder/log" "$OUT"/*
	exit 1
}

sh "$folder/preempt.sh" 1 2 >"$folder/log" 2>&1 || fail "exit code"
for how in slices sbeet; do
	[ "$(grep -c "^$how " "$OUT/preempt.txt")" -eq 2 ] || fail "rows of $how"
done
grep -q 'preempted [1-9][0-9]* times, refused 0 times' "$OUT/preempt.txt" || fail "nobody was preempted"
