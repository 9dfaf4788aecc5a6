#!/bin/sh
# Makes the PTX of interp-suite.cu, without debug sections (they are as long as all the rest) and
# without the paths of the machine that made it.
# usage: sh interp-suite.sh [NVCC]
set -e
cd "$(dirname "$0")"
nvcc=${1:-/usr/local/cuda/bin/nvcc}
clean() {
	awk '/^[ \t]*\.section[ \t]+\.debug/ { skip = 1 } !skip && !/^[ \t]*\.(file|loc)[ \t]/ { print }
		skip && /^[ \t]*}/ { skip = 0 }'
}
"$nvcc" -ptx -arch=sm_75 -O3 interp-suite.cu -o suite.tmp
clean < suite.tmp > interp-suite.ptx
"$nvcc" -ptx -arch=sm_75 -G interp-suite.cu -o suite.tmp
sed 's/, debug$//' suite.tmp | clean > interp-suite-debug.ptx
rm suite.tmp
