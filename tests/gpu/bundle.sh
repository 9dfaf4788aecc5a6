#!/bin/sh
# Makes a folder that runs on another machine, one with a GPU: sbeetd, sbeetctl, libsbeet.so, the
# sample programs as ordinary nvcc programs (static cudart), their kernels' PTX with the program that
# compares each kernel with its twin, and the shared libraries that these need beyond the C library.
# Needs nvcc here; the other machine needs no compiler and no package, only a C library that is not
# older than this one's.
#
# usage: bundle.sh [FOLDER]     (bundle)        then there: sh FOLDER/run.sh
set -eu

cd "$(dirname "$0")/../.."
bundle=${1:-bundle}
build=build-bundle

nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
sh tests/prepare.sh -q
mkdir -p "$build"
log=$build/bundle.log
# Without systemd: a library less to carry.
if ! { sh tests/configure.sh "$build" -Dbuildtype=release -Dsystemd=disabled && ninja -C "$build" bundle; } >"$log" 2>&1; then
	tail -n 40 "$log"
	echo "bundle.sh: building failed, see $log (is nvcc there?)" >&2
	exit 1
fi

rm -rf "$bundle"
mkdir -p "$bundle/bin" "$bundle/lib" "$bundle/apps"
cp "$build/daemon/sbeetd" "$build/client/sbeetctl" "$build/tests/demo/watch" \
	"$build/tests/func/twin/test-twin-driver" "$build/tests/apps/corpus/test-corpus-driver" \
	"$build/tests/gpu/measure-twins" "$build/tests/gpu/launch-parts" "$build/tests/gpu/periodic" \
	"$build/tests/gpu/evaluate" "$build/tests/gpu/urgent" "$build/tests/gpu/khz" "$build/tests/gpu/segments" "$build/tests/gpu/kills" "$build/tests/apps/driver/graph" "$build/tests/apps/driver/order" \
	"$build/tests/gpu/preempt-ways" "$build/tests/bench/bench-grant" \
	"$bundle/bin/"
git describe --always --abbrev=40 --dirty --exclude='*' >"$bundle/commit" # evaluate.sh's seeds are made from it
cp -r tests/apps/ptx "$bundle/"
cp -r tests/apps/corpus/ptx "$bundle/corpus"
"$nvcc" -ptx -O3 -arch=compute_75 -o "$bundle/rates.ptx" tests/gpu/rates.cu
echo 'extern "C" __global__ void nothing(void) {}' | "$nvcc" -x cu -cubin -arch=sm_90 -o "$bundle/nothing.cubin" - # job-start.sh
mkdir "$bundle/code" # evaluate.sh
for name in compute histogram hotspot matmul vecadd; do
	"$(dirname "$nvcc")/ptxas" -arch=sm_90 -o "$bundle/code/$name.cubin" "tests/apps/ptx/$name.ptx"
done
"$nvcc" -O2 -gencode arch=compute_75,code=compute_75 -o "$bundle/bin/busy" tests/gpu/busy.cu
cp "$build/shim/libsbeet.so" "$bundle/lib/"
mkdir "$bundle/guests" # guests.sh
find "$build/tests/apps/guests" -maxdepth 1 -type f \( -name 'guest-*' -o -name 'libguest-*.so' -o -name '*.py' \) \
	-exec cp {} "$bundle/guests/" \;
strip "$bundle"/guests/*guest-*
cp tests/apps/guests/compare.sh "$bundle/guests/"
sh tests/gpu/guests/build.sh "$nvcc" "$bundle/guests"
if [ -e "$build/tests/bench/libbypass.so" ]; then # x86-64 alone
	cp "$build/tests/bench/job-start" "$bundle/bin/"
	cp "$build/tests/bench/libbypass.so" "$bundle/lib/"
fi
for app in "$build"/tests/apps/runtime/*-static; do
	cp "$app" "$bundle/apps/$(basename "$app" -static)"
done
cp -r tests/gpu/run.sh tests/gpu/twins.sh tests/gpu/power.sh tests/gpu/power.cu tests/gpu/frameworks.sh \
	tests/gpu/speed.sh tests/gpu/preempt.sh tests/gpu/casestudy.sh tests/gpu/kills.sh tests/gpu/exact.sh tests/gpu/job-start.sh tests/gpu/daemon-cpu.sh tests/gpu/evaluate.sh tests/gpu/causes.awk tests/gpu/above.awk tests/gpu/scenario.sh tests/gpu/manage.sh tests/gpu/mps.sh tests/gpu/order.sh tests/gpu/guests.sh tests/gpu/pairs.sh tests/gpu/ranges.sh tests/gpu/real.sh tests/gpu/samples.sh tests/gpu/examine.sh \
	tests/gpu/frameworks tests/gpu/real "$bundle/"

# What they need and another machine may lack; the C library's own parts must be that machine's.
for file in "$bundle"/bin/* "$bundle"/lib/* "$bundle"/apps/*; do
	ldd "$file" | awk '$2 == "=>" && $3 ~ /^\// { print $3 }'
done | sort -u | while read -r library; do
	case $(basename "$library") in
	libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libresolv.so.* | ld-linux*) ;;
	libcuda.so.* | libnvidia-*) ;;
	*) cp -L "$library" "$bundle/lib/" ;;
	esac
done

du -sh "$bundle"
echo "On the other machine: sh $bundle/run.sh"
