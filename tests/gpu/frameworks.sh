#!/bin/sh
# Runs on a machine with a GPU and Python, in the folder that bundle.sh made: programs of PyTorch,
# Triton, CuPy and JAX as they are, then under the shim, and compares the digests that they print of
# their results. What is not installed is skipped. Exit 0 if all digests are equal.
#
# Only libsbeet.so and libprotobuf-c are put before Python's own libraries: a framework must not meet
# ours of another version.
set -u

here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d)
out=${OUT:-$here/out}
mkdir -p "$out" "$scratch/lib"
cp "$here"/lib/libsbeet.so "$here"/lib/libprotobuf-c.so.* "$scratch/lib/"
export SBEET_RUNTIME_DIR="$scratch/run" SBEET_SHIM="$scratch/lib/libsbeet.so"
mkdir -m 700 "$SBEET_RUNTIME_DIR"
daemon=

trap '[ -z "$daemon" ] || kill "$daemon" 2>/dev/null; rm -rf "$scratch"' EXIT

tool() {
	LD_LIBRARY_PATH="$here/lib" "$@"
}

# POLICY
start_daemon() {
	LD_LIBRARY_PATH="$here/lib" "$here/bin/sbeetd" --policy "$1" --sharing exclusive \
		>"$scratch/sbeetd.log" 2>&1 &
	daemon=$!
	until tool "$here/bin/sbeetctl" status >/dev/null 2>&1; do
		kill -0 "$daemon" || {
			cat "$scratch/sbeetd.log"
			exit 1
		}
		sleep 0.1
	done
}

# NAME HOW COMMAND...: the last line printed.
last_line() {
	name=$1.$2
	shift 2
	timeout 180 "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" || cat "$scratch/$name.err" >&2
	tail -n 1 "$scratch/$name.out"
}

for program in pytorch triton-add cupy-raw jax-jit; do
	script=$here/frameworks/$program.py
	module=${program%%-*}
	[ "$module" != pytorch ] || module=torch
	if ! python3 -c "import $module" 2>/dev/null; then
		echo "$program: skipped, Python has no $module"
		continue
	fi
	bare=$(last_line "$program" bare python3 "$script")
	echo "$program: $bare (bare)"
	for policy in even fcfs; do
		start_daemon "$policy"
		managed=$(LD_LIBRARY_PATH="$here/lib" last_line "$program" "$policy" \
			"$here/bin/sbeetctl" run --task "$program" -- \
			env LD_LIBRARY_PATH="$scratch/lib" python3 "$script")
		verdict=equal
		if [ -z "$managed" ] || [ "${managed%% *}" != "${bare%% *}" ]; then
			verdict=DIFFERENT
		fi
		jobs=$(tool "$here/bin/sbeetctl" status | sed -n 2p)
		kill -TERM "$daemon"
		wait "$daemon" || verdict="$verdict, DIFFERENT exit code of sbeetd"
		daemon=
		echo "$program: $managed ($policy) $verdict; $jobs"
	done
done | tee "$out/frameworks.txt"
! grep -q DIFFERENT "$out/frameworks.txt"
