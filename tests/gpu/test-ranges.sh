#!/bin/sh
# ranges.sh on the simulated GPU, with a program in C in the place of PyTorch.
#
# usage: test-ranges.sh SOURCE PROGRAM OTHER; $SBEET_BUILD is the build folder. OTHER: has no ranges.
set -eu
. "$1/../lib.sh"

gpu=$(cd "$1" && pwd)
program=$(realpath "$2")
other=$(realpath "$3")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
ln -s "$SBEET_BUILD/daemon/sbeetd" "$SBEET_BUILD/client/sbeetctl" "$folder/bin/"
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
cp "$gpu/ranges.sh" "$gpu/manage.sh" "$folder/"
export SIMGPU=32:mps SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu" FRAMES=5
logs=$folder/log

PROGRAM="$program --frames 5 --json" sh "$folder/ranges.sh" >"$folder/log" 2>&1 || fail "exit code $?"
[ "$(grep -c 'are 5 jobs by ranges, 0 by .*: ok$' "$folder/log")" -eq 2 ] || fail "another verdict"
# It sees what is wrong.
! PROGRAM="$other --frames 5 --json" sh "$folder/ranges.sh" >"$folder/log" 2>&1 || fail "a program without ranges is right"
! PROGRAM=/bin/false sh "$folder/ranges.sh" >"$folder/log" 2>&1 || fail "a program that fails is right"
