#!/bin/sh
# Builds the guests that need a real GPU.
#
# usage: build.sh NVCC FOLDER
set -eu

here=$(cd "$(dirname "$0")" && pwd)
nvcc=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
common="-O2 -std=c++17 -I$here/../../apps/guests"

"$nvcc" -O2 -c -o "$folder/main.o" "$here/../../apps/guests/main.c"
# NAME OPTIONS... SOURCES
build() {
	name=$1
	shift
	# shellcheck disable=SC2086 # several words
	(cd "$here" && "$nvcc" $common -Xlinker -s -o "$folder/guest-$name" "$@" "$folder/main.o")
}

# PTX alone, of the oldest architecture that nvcc compiles for by itself.
build cub -gencode arch=compute_75,code=compute_75 cub.cu &
build options -gencode arch=compute_75,code=compute_75 -maxrregcount=40 -Xptxas -dlcm=cg options.cu
build dependent-ptx -gencode arch=compute_90,code=compute_90 dependent.cu dependent-other.cu
# And machine code, which can't be rewritten as easily.
build options-code -arch=sm_90 -maxrregcount=40 options.cu
build dependent -arch=sm_90 dependent.cu dependent-other.cu
wait $!
rm "$folder/main.o"
