#!/bin/sh
# usage: simgpu.sh GPUS PROGRAM ARGS...: runs the program on simulated GPUs of its own.
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
export SIMGPU="$1" SIMGPU_DIR="$dir"
shift
"$@"
