#!/bin/sh
# Makes ptx/*.ptx out of kernels/*.cu with nvcc, or checks that they are what nvcc makes.
#
# usage: ptx.sh write|check [NVCC]
#
# check: exit 0 if all are the same but for the comments at the top, 1 if one differs, 77 (skipped)
# if there is no nvcc, or one of another release than the one that made the files.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
verb=${1:-}
nvcc=${2:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}

case $verb in
write | check) ;;
*)
	echo "usage: $0 write|check [NVCC]" >&2
	exit 2
	;;
esac

if ! [ -x "$nvcc" ]; then
	echo "no nvcc (looked for '$nvcc'): the checked-in PTX is used as it is"
	[ "$verb" = check ] && exit 77
	exit 1
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

release_of() {
	sed -n 's|^// Cuda compilation tools, release \([0-9.]*\).*|\1|p' "$1"
}

# Full-line comments name the compiler's build; nothing else may differ.
strip() {
	sed '/^\/\//d' "$1"
}

differ=0
for source in "$here"/kernels/*.cu; do
	name=$(basename "$source" .cu)
	have=$here/ptx/$name.ptx
	made=$scratch/$name.ptx

	# The kernels' folder, so that no path of this machine gets into a name.
	(cd "$here/kernels" && "$nvcc" -arch=compute_75 -ptx "$name.cu" -o "$made")
	if [ "$verb" = write ]; then
		cp "$made" "$have"
		continue
	fi
	if ! [ -f "$have" ]; then
		echo "$name: no ptx/$name.ptx; make it with '$0 write'"
		differ=1
		continue
	fi
	if [ "$(release_of "$made")" != "$(release_of "$have")" ]; then
		echo "nvcc is of release $(release_of "$made"), ptx/$name.ptx of $(release_of "$have"):" \
			"not comparable"
		exit 77
	fi
	strip "$have" >"$scratch/have"
	strip "$made" >"$scratch/made"
	if ! diff -u "$scratch/have" "$scratch/made"; then
		echo "$name: ptx/$name.ptx is not what nvcc makes of kernels/$name.cu; '$0 write' renews it"
		differ=1
	fi
done
exit $differ
