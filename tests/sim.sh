#!/bin/sh
# Runs a CUDA program of your own under sbeet on a simulated GPU: see --help, and below for how long
# sbeetd lives.
#
# sbeetd and the simulated GPU are started by the first call and stopped by the last one to end: what
# runs meanwhile shares them. Calls with another --gpu, or of another build, have others.
set -u

called_in=$PWD
cd "$(dirname "$0")/.." || exit 1
me=sim
. tests/demo/lib.sh

usage() {
	cat <<END
usage: sh tests/sim.sh [--gpu=GPUS] [--OPTION=VALUE...] [--] COMMAND [ARGUMENT...]

Runs COMMAND under sbeet on a simulated GPU, without a real one, and exits as it exits. The results are
those of a GPU, the times are not. Programs that run at the same time share the GPU.

  --gpu=GPUS      h200:mps if not given: h200, rtx3070, t400, orin or a number of SMs, with ':mps' for a GPU
                  that processes share; several with commas
  --OPTION=VALUE  other options are those of 'sbeetctl run': --task=camera --period=33ms
  --help          this text

While programs run, in another terminal:
  sh tests/sim.sh $build/client/sbeetctl top

How to compile a program for it:
  nvcc -cudart shared own.cu -o own    # CUDA runtime API
  cc -I/usr/local/cuda/include own.c -o own -L$build_path/tests/simgpu -lcuda    # driver API
nvcc's default, -cudart static, does not work here: NVIDIA's runtime library asks the driver for private
tables, which a simulated one does not have. So programs are run with a stand-in for libcudart.so.13; it
has the functions that tests/simgpu/cudart/libcudart.map lists, and is built where a CUDA toolkit 13 is.
Kernels must be there as PTX for compute capability 9.0 or older: nvcc's default will do, or -arch=sm_90.
Libraries that carry machine code alone (cuBLAS, cuDNN, PyTorch) can't be simulated.
END
}

refuse() {
	note "$*"
	note "'sh tests/sim.sh --help' says how to compile programs for the simulated GPU"
	exit 2
}

# PROGRAM: says why it can't run here, if that can be seen.
check() {
	case $1 in
	*/*) file=$1 ;;
	*) file=$(command -v -- "$1") ;;
	esac
	if [ "$(head -c 4 -- "$file" 2>/dev/null | tail -c 3)" != ELF ]; then
		return # a script, or nothing that is there: sbeetctl run says so
	fi
	if LC_ALL=C grep -q -a -e 'cudaErrorCudartUnloading' -e '/cudart\.shm\.' -- "$file"; then
		refuse "'$1' has NVIDIA's runtime library linked in (nvcc -cudart static, the default)," \
			"which can't use a simulated driver: link it with 'nvcc -cudart shared'" \
			"(CMake: -DCMAKE_CUDA_RUNTIME_LIBRARY=Shared)"
	fi
	links=$(ldd -r -- "$file" 2>&1)
	runtime=$(printf '%s\n' "$links" | sed -n 's/^[[:space:]]*\(libcudart\.so[^ ]*\) => .*/\1/p')
	case $runtime in
	'') ;;
	libcudart.so.13)
		[ -e "$build_path/tests/simgpu/cudart/libcudart.so.13" ] ||
			refuse "'$1' needs the stand-in for libcudart.so.13, which is built only where a CUDA" \
				"toolkit 13 is: install one and remove $build, or use the driver API"
		;;
	*) refuse "'$1' is linked with $runtime; here is a stand-in for libcudart.so.13 only" ;;
	esac
	unknown=$(printf '%s\n' "$links" | sed -n 's/^undefined symbol: \(cu[^[:space:]]*\).*/\1/p' | tr '\n' ' ')
	if [ -n "$unknown" ]; then
		note "'$1' uses functions that are not simulated, and will fail if it calls them: $unknown"
	fi
}

# Waits until no other call starts or stops sbeetd. A folder that its last user has removed is made
# again.
lock() {
	while :; do
		mkdir -m 700 -p "$place" || die "cannot make $place"
		[ -O "$place" ] || die "$place belongs to somebody else"
		exec 8>"$place/lock" || die "cannot write into $place"
		flock 8
		[ "$place/lock" -ef /proc/$$/fd/8 ] && return
	done
}

start_sbeetd() {
	mkdir -m 700 -p "$SBEET_RUNTIME_DIR" "$SIMGPU_DIR"
	"$build_path/tests/simgpu/simgpud" 7>&- 8>&- || { rm -rf "$place" && exit 2; } # a wrong --gpu
	# In a session of its own: Ctrl-C is for the program.
	setsid "$build_path/daemon/sbeetd" >"$place/sbeetd.log" 2>&1 </dev/null 7>&- 8>&- &
	pid=$!
	echo "$pid" >"$place/pid"
	(wait_for_daemon "$pid" "$place/sbeetd.log") 7>&- 8>&- && return
	! sbeetd_runs "$pid" || kill -TERM "$pid"
	"$build_path/tests/simgpu/simgpud" --stop 7>&- 8>&-
	exit 1 # the log stays, for it was named
}

# Whether it is the process of the pid file still.
sbeetd_runs() {
	[ "/proc/$1/exe" -ef "$build_path/daemon/sbeetd" ]
}

# The last user stops it.
leave() {
	lock
	flock -u 7
	if flock -n -x 7; then
		pid=$(cat "$place/pid")
		! sbeetd_runs "$pid" || kill -TERM "$pid"
		while sbeetd_runs "$pid"; do
			sleep 0.05
		done
		"$build_path/tests/simgpu/simgpud" --stop 7>&- 8>&-
		rm -rf "$place"
	fi
}

gpu=h200:mps
run_options=
while [ $# -gt 0 ]; do
	case $1 in
	--help | -h) usage && exit 0 ;;
	--gpu=*) gpu=${1#--gpu=} ;;
	--gpu) [ $# -gt 1 ] && shift && gpu=$1 ;;
	--) shift && break ;;
	-*) run_options="$run_options $1" ;;
	*) break ;;
	esac
	shift
done
[ $# -gt 0 ] || { usage >&2 && exit 2; }

prepare sim
export SIMGPU="$gpu"
export LD_LIBRARY_PATH="$build_path/tests/simgpu:$build_path/tests/simgpu/cudart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cd "$called_in" || exit 1
check "$1"
place=${XDG_RUNTIME_DIR:-/tmp}/sbeet-sim-$(id -u)-$(printf '%s' "$gpu $build_path" | cksum | cut -d ' ' -f 1)
export SBEET_RUNTIME_DIR="$place/run" SIMGPU_DIR="$place/simgpu"

lock
exec 7>"$place/users"
flock -s 7
"$ctl" status --json >/dev/null 2>&1 7>&- 8>&- || start_sbeetd
exec 8>&-
trap leave EXIT
trap : INT QUIT TERM HUP # the program gets them too, and its end is ours

# shellcheck disable=SC2086 # words
"$ctl" run $run_options -- "$@" 7>&-
exit $?
