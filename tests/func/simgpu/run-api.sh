#!/bin/sh
# usage: run-api.sh TEST SIMGPUD: runs the test, which is told SIMGPUD, on simulated GPUs of its own:
# those that SIMGPU names, or two small ones.
set -u
SIMGPU_DIR=$(mktemp -d)
SIMGPU=${SIMGPU:-4,2}
export SIMGPU_DIR SIMGPU
"$1" "$2"
code=$?
"$2" --stop
rm -rf "$SIMGPU_DIR"
exit $code
