#!/bin/sh
# Makes ptx/*.ptx out of kernels/*.cu with nvcc. A file's first line may say "nvcc: OPTIONS", else it
# is for compute_75; the files named in $debug are made with -G as well, as NAME-debug.ptx.
#
# usage: ptx.sh [NVCC]
set -eu

here=$(cd "$(dirname "$0")" && pwd)
nvcc=${1:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
debug="shape shared barrier func vars"

mkdir -p "$here/ptx"
cd "$here/kernels" # so that no path of this machine gets into a name
for source in *.cu; do
	name=${source%.cu}
	options=$(sed -n '1s|.*nvcc: \(.*\) \*/.*|\1|p' "$source")
	# shellcheck disable=SC2086
	"$nvcc" ${options:--arch=compute_75} -ptx "$source" -o "$here/ptx/$name.ptx"
	case " $debug " in
	*" $name "*)
		"$nvcc" -arch=compute_75 -G -ptx "$source" -o "$here/ptx/$name-debug.ptx"
		;;
	esac
done
