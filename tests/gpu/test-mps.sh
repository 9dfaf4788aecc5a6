#!/bin/sh
# mps.sh with the double of MPS's control daemon: GPUs are shared after each start of sbeetd, and while MPS is
# there.
#
# usage: test-mps.sh SOURCE; $SBEET_BUILD is the build folder.
. "$1/test-bundle.sh"
export DAEMON_OPTIONS="--gpus 132" PATH="$SBEET_BUILD/tests/simgpu/mps:$PATH"

for fault in hides lingers; do
	SIMGPU_MPS_FAULT=$fault sh "$folder/mps.sh" follows restarts >"$folder/log" 2>&1 || fail "exit code, $fault"
	[ "$(tail -n 1 "$folder/log")" = "20 of 20 right" ] || fail "its last line, $fault"
done
