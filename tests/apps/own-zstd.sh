#!/bin/sh
# A program with a zstd, an lz4 and a protobuf-c of its own runs under the shim, which unpacks its code: each has its own.
#
# usage: own-zstd.sh PROGRAM FATBIN
. "$(dirname "$0")/lib.sh"

export SIMGPU=t400:mps # too small for green contexts: kernels are rewritten
mkfifo "$scratch/end"
start_daemon --policy even
"$ctl" run --task own --log info -- "$1" "$2" <"$scratch/end" >"$scratch/own.out" 2>"$scratch/own.err" &
pid=$!
started="$started $pid"
exec 3>"$scratch/end"
until_true "it has run its kernel" grep -q . "$scratch/own.out"
"$ctl" kernel --json >"$scratch/kernel.out" || fail "no kernels"
grep -q '"name": *"scale"' "$scratch/kernel.out" || fail "its kernel is not known"
grep -q '"confinable": *true' "$scratch/kernel.out" || fail "its kernel was not unpacked"
exec 3>&-
wait "$pid" || fail "exit code $?"
grep -q '^right, 0 calls from others$' "$scratch/own.out" || fail "its functions were called by others"
stop_daemon
