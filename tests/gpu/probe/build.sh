#!/bin/sh
# Builds what preempt.sh runs, and trace.so, into FOLDER, with nvcc and gcc, here or on the machine with the GPU.
#
# usage: build.sh FOLDER
set -eu

mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
options="-O2 -arch=sm_90 -L$(dirname "$(dirname "$nvcc")")/lib64/stubs"

# shellcheck disable=SC2086
for name in dependent descriptor graph-levels launches owners preempt-cost preempt-gaps network; do
	case $name in
	network) "$nvcc" $options -shared -Xcompiler -fPIC -o "$out/libnetwork.so" $name.cu -lcuda ;;
	*) "$nvcc" $options -o "$out/$name" $name.cu -lcuda ;;
	esac
done
# The same with waits that are written into their machine code, as the shim does; dependent-bare has none.
gcc -Wall -Wextra -O2 -D_GNU_SOURCE -I../../.. -o "$out/wait-first" wait-first.c ../../../shim/ptx/sass.c ../../../shim/ptx/elf-file.c
# shellcheck disable=SC2086
for name in dependent launches; do
	"$nvcc" $options -DMACHINE_CODE -no-compress -o "$out/$name-bare" $name.cu -lcuda
	cp "$out/$name-bare" "$out/$name-machine"
	"$out/wait-first" "$out/$name-machine"
done
gcc -Wall -Wextra -O2 -shared -fPIC -o "$out/preempt.so" preempt.c -ldl
gcc -Wall -Wextra -O2 -shared -fPIC -o "$out/trace.so" trace.c -ldl
gcc -Wall -Wextra -O2 -pthread -o "$out/preempt-loop" preempt-loop.c
cp ./*.py ./*.sh ../frameworks/models.py "$out"
