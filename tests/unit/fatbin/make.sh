#!/bin/sh
# usage: make.sh TOOLKIT_BIN_DIR OUTPUT_DIR
# Makes the images that test-fatbin reads, with nvcc's own tools. Those next to this script were made by it
# (CUDA 13.0), for machines without the tools.
set -eu
bin=$1 out=$2 here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

for sm in 75 90 90a; do
	"$bin/nvcc" -ptx -arch="compute_$sm" "$here/scale.cu" -o "$tmp/scale-$sm.ptx"
done
"$bin/ptxas" -arch=sm_75 "$tmp/scale-75.ptx" -o "$tmp/scale-75.cubin"
for mode in none default size speed balance; do
	"$bin/fatbinary" --64 --compress-mode="$mode" --create "$out/$mode.fatbin" \
		--image3="kind=ptx,sm=75,file=$tmp/scale-75.ptx" \
		--image3="kind=elf,sm=75,file=$tmp/scale-75.cubin" \
		--image3="kind=ptx,sm=90,file=$tmp/scale-90.ptx" \
		--image3="kind=ptx,sm=90a,file=$tmp/scale-90a.ptx"
done
# Machine code for sm_90, with PTX that is older; and that for which the driver has the choice.
for sm in 90 90a; do
	"$bin/ptxas" -arch="sm_$sm" "$tmp/scale-$sm.ptx" -o "$tmp/scale-$sm.cubin"
done
"$bin/fatbinary" --64 --create "$out/code.fatbin" \
	--image3="kind=ptx,sm=75,file=$tmp/scale-75.ptx" --image3="kind=elf,sm=90,file=$tmp/scale-90.cubin"
"$bin/fatbinary" --64 --create "$out/choice.fatbin" \
	--image3="kind=elf,sm=90,file=$tmp/scale-90.cubin" --image3="kind=elf,sm=90a,file=$tmp/scale-90a.cubin"
# PTX with options for the compiler, packed and not.
for packed in "" -no-compress; do
	"$bin/nvcc" -fatbin $packed -maxrregcount=40 -Xptxas -dlcm=cg -gencode arch=compute_90,code=compute_90 \
		"$here/scale.cu" -o "$out/options$packed.fatbin" 2>/dev/null
done
# PTX beside code for link-time optimisation.
"$bin/nvcc" -fatbin -gencode arch=compute_75,code=compute_75 -gencode arch=compute_90,code=lto_90 "$here/scale.cu" \
	-o "$out/lto.fatbin"
# A program of two source files: the same image twice, zeros between.
"$bin/nvcc" -c -gencode arch=compute_75,code=compute_75 "$here/scale.cu" -o "$tmp/a.o"
ld -r "$tmp/a.o" "$tmp/a.o" -z muldefs -o "$tmp/program.o"
strip --strip-debug "$tmp/program.o"
cp "$tmp/program.o" "$out/program.o"
cp "$tmp/scale-75.cubin" "$out/scale.cubin"
cp "$tmp/scale-90a.ptx" "$out/scale.ptx"
