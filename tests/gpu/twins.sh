#!/bin/sh
# Runs on a machine with a GPU, in the folder that bundle.sh made: twins against originals. The
# corpus, memory equal byte for byte; rates on the whole GPU and on parts of it; SMs filled; stop and
# resume; what a wrapper's parts cost a launch.
#
# usage: twins.sh [ROUNDS]      rounds for each kernel of the corpus (10)
#
# A table on stdout; details as JSON and text in $OUT (this folder's out/ if it is not set). Exit 0
# if everything was as promised.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
rounds=${1:-10}
mkdir -p "$out"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
failed=0

nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1

"$here/bin/measure-twins" "$here/rates.ptx" "$out/twins.json" || failed=1
echo "added to a launch:"
"$here/bin/launch-parts" "$here/rates.ptx" || failed=1

# Spinning on a lock, hundreds of blocks take minutes as they are: spin_lock gets few.
corpus() { # BLOCKS KERNEL...
	blocks=$1
	shift
	SBEET_TEST_PTX="$here/corpus" SBEET_CORPUS_BLOCKS=$blocks timeout 240 \
		"$here/bin/test-corpus-driver" "$rounds" 0x5BEE7 "$@" >>"$out/corpus.txt" 2>&1 || failed=1
}
kernels=$(SBEET_TEST_PTX="$here/corpus" "$here/bin/test-corpus-driver" 0 | sed -n 's/: 0 rounds.*//p')
: >"$out/corpus.txt"
# shellcheck disable=SC2046 # several words
corpus 400 $(echo "$kernels" | grep -v spin_lock)
corpus 20 spin_lock
echo "corpus, original and twin equal: $(grep -c ' 0 failed' "$out/corpus.txt") of" \
	"$(grep -c ' failed$' "$out/corpus.txt") kernels, $rounds rounds each"
grep -v ' 0 failed' "$out/corpus.txt" | head -n 20
exit "$failed"
