#!/bin/sh
# Runs on a machine with a GPU, in the folder that bundle.sh made: how this GPU schedules, by the experiments of
# the TX2 and TX1 papers, first as it is, then under MPS where that can be started. Reports with pictures in
# $OUT/examine and $OUT/examine-mps; their tables on stdout. $OPTIONS: for sbeetctl gpu examine; LIMIT_S (240): for
# each of the two, which is given up then.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
scratch=$(mktemp -d)
mkdir -p "$out" "$scratch/mps"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
trap 'rm -rf "$scratch"' EXIT
failed=0

# FOLDER
examine() {
	echo "== $1"
	# shellcheck disable=SC2086 # words
	timeout -k 5 "${LIMIT_S:-240}" "$here/bin/sbeetctl" gpu examine -q -o "$out/$1" ${OPTIONS:-} || failed=1
}

examine examine
if command -v nvidia-cuda-mps-control >/dev/null; then
	export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$scratch/mps"
	if timeout 30 nvidia-cuda-mps-control -d; then
		examine examine-mps
		echo quit | timeout 30 nvidia-cuda-mps-control
	fi
fi
exit $failed
