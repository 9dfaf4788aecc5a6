# manage.sh: what the scripts share that run programs of others' making under the shim on a real GPU:
# MPS, sbeetd and traces of their own. Sourced with $here, the bundle's folder, set.
#
# SBEET_DEPENDENT=1: programs under the shim launch their kernels as dependent ones; without it their code is left
# alone. Under steer a column with its parameter has the same: steer+dependent=on.
#
# The tools have all of the bundle's libraries; programs only libsbeet.so. PRELOAD: more libraries for sbeetd
# and all programs.

PATH=$PATH:/usr/local/nvidia/bin
scratch=$(mktemp -d)
out=${OUT:-$here/out}
ctl=$here/bin/sbeetctl
daemon=
recorder=
mps=false
mkdir -p "$out" "$scratch/lib" "$scratch/mps" "$scratch/mps-log"
cp "$here/lib/libsbeet.so" "$scratch/lib/"
export SBEET_RUNTIME_DIR="$scratch/run" SBEET_SHIM="$scratch/lib/libsbeet.so"
mkdir -m 700 "$SBEET_RUNTIME_DIR"

clean_up() {
	for pid in $recorder $daemon; do
		kill "$pid" 2>/dev/null
		wait "$pid"
	done
	stop_mps
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM INT

tools_path=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
libraries=$scratch/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} # of programs

# SECONDS COMMAND...: waits until the command succeeds; fails if it does not within so long.
within() {
	tries=$(($1 * 20))
	shift
	until "$@"; do
		[ $tries -gt 0 ] || return 1
		tries=$((tries - 1))
		sleep 0.05
	done
}

tool() {
	LD_LIBRARY_PATH="$tools_path" "$@"
}

# OPTIONS... -- COMMAND...: under the shim; sbeetctl has our libraries, the command has not.
managed() {
	options=
	while [ "$1" != -- ]; do
		options="$options $1"
		shift
	done
	shift
	# What sbeetctl finds in LD_PRELOAD stays before libsbeet.so unless it is named there.
	# shellcheck disable=SC2086 # several words
	tool "$ctl" run $options -- \
		env LD_LIBRARY_PATH="$libraries" \
		LD_PRELOAD="$SBEET_SHIM${PRELOAD:+:$PRELOAD}" timeout 170 "$@"
}

# COMMAND...: without sbeet.
plain() {
	env LD_PRELOAD="${PRELOAD:-}" timeout 170 "$@"
}

# TASK...: other SM sets for each, to and fro.
flip_sets() {
	for task in "$@"; do
		for sms in 40 88; do
			tool "$ctl" task set -q --max-sms $sms "$task" >/dev/null 2>&1
		done
	done
}

# OPTIONS... of its control daemon
start_mps() {
	command -v nvidia-cuda-mps-control >/dev/null || return 0
	export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$scratch/mps-log"
	if ! nvidia-cuda-mps-control -d "$@"; then
		[ $# -gt 0 ] || exit 1
		unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
		return 1
	fi
	mps=true
}

stop_mps() {
	[ "$mps" = true ] || return 0
	mps_pid=$(cat "$scratch/mps/nvidia-cuda-mps-control.pid" 2>/dev/null)
	echo quit | timeout 20 nvidia-cuda-mps-control
	[ -z "$mps_pid" ] || within 5 test ! -e "/proc/$mps_pid"
	mps=false
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# OPTIONS...
start_daemon() {
	# Not by tool(): the signals must reach it, not a shell between.
	env LD_LIBRARY_PATH="$tools_path" LD_PRELOAD="${PRELOAD:-}" "$here/bin/sbeetd" "$@" \
		>"$scratch/sbeetd.log" 2>&1 &
	daemon=$!
	tries=0
	until timeout 5 env LD_LIBRARY_PATH="$tools_path" "$ctl" status >/dev/null 2>&1; do
		if ! kill -0 "$daemon" 2>/dev/null || [ $tries -gt 300 ]; then
			cat "$scratch/sbeetd.log"
			exit 1
		fi
		tries=$((tries + 1))
		sleep 0.02
	done
}

# POLICY[+PARAMETER=VALUE] OPTIONS...: under MPS.
start_policy() {
	policy=$1
	shift
	start_daemon --policy "${policy%%+*}" --sharing mps "$@"
	case $policy in
	*+*) tool "$ctl" policy "${policy%%+*}" "${policy#*+}" >/dev/null ;;
	esac
}

stop_daemon() {
	kill -TERM "$daemon"
	wait "$daemon" || {
		echo "DIFFERENT exit code of sbeetd: $?"
		tail -n 20 "$scratch/sbeetd.log"
	}
	daemon=
}

record_trace() { # FILE
	env LD_LIBRARY_PATH="$tools_path" "$ctl" trace record "$1" >"$scratch/record.log" 2>&1 &
	recorder=$!
}

stop_trace() {
	kill -TERM "$recorder"
	wait "$recorder"
	recorder=
}
