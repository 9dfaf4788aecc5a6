# lib.sh: what the shell tests that run sample programs on the simulated GPU share. Sourced by them;
# $SBEET_BUILD is the build folder. Each test has simulated GPUs, sockets and files of its own.
#
# A condition is polled (until_true); a time-out is only there so that a hang ends in a message.
set -u
. "$(dirname "$0")/../lib.sh"

apps=$SBEET_BUILD/tests/apps/driver
ctl=$SBEET_BUILD/client/sbeetctl
ask=$SBEET_BUILD/tests/demo/ask
scratch=$(mktemp -d)
arguments=$*
daemon=
started= # processes of this test that may still run

export SBEET_RUNTIME_DIR="$scratch/run"
export SIMGPU_DIR="$scratch/simgpu"
export LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu:$SBEET_BUILD/tests/simgpu/cudart${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
mkdir -m 700 "$SBEET_RUNTIME_DIR" "$SIMGPU_DIR"

clean_up() {
	# shellcheck disable=SC2086 # words
	signal_own KILL "$scratch" $started $daemon
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM INT

say() {
	printf '%s\n' "$*"
}

# Without any, `wait` would wait for sbeetd.
end_started() {
	# shellcheck disable=SC2086 # words
	signal_own KILL "$scratch" $started
	# shellcheck disable=SC2086
	[ -z "$started" ] || wait $started 2>/dev/null
}

# Whether what failed may be a busy machine's fault. A test that knows how to tell has a spoiled() of its own.
spoiled() {
	false
}

fail() {
	! spoiled || again "$*"
	say "FAILED: $*"
	for f in "$scratch"/*.out "$scratch"/*.err "$scratch"/*.log; do
		[ -s "$f" ] || continue
		say "--- $(basename "$f")"
		tail -n 40 "$f"
	done
	"$ctl" status 2>&1
	exit 1
}

# WHY: begins the test anew, a few times at most, where a busy machine may have spoiled what it looks at.
tries_max=3
again() {
	[ "${SBEET_TEST_TRY:-1}" -lt $tries_max ] || return 1
	say "again: $*"
	clean_up
	unset LD_PRELOAD
	export SBEET_TEST_TRY=$((${SBEET_TEST_TRY:-1} + 1))
	# shellcheck disable=SC2086 # words
	exec sh "$0" $arguments
}

# OPTIONS...: starts sbeetd and waits until it answers.
start_daemon() {
	"$SBEET_BUILD/daemon/sbeetd" --log-level debug "$@" >>"$scratch/sbeetd.log" 2>&1 &
	daemon=$!
	until_true "sbeetd answers" "$ctl" status --json
}

# The daemon says goodbye and leaves with exit code 0.
stop_daemon() {
	kill -TERM "$daemon" || fail "sbeetd does not live any more"
	wait "$daemon"
	code=$?
	daemon=
	[ "$code" -eq 0 ] || fail "sbeetd: exit code $code"
}

daemon_lives() {
	kill -0 "$daemon" 2>/dev/null || fail "sbeetd does not live any more"
}

# NAME COMMAND...: starts it in the background under task NAME; $pid is its process.
start() {
	name=$1
	shift
	"$ctl" run --task "$name" --log info -- "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

# NAME PRIORITY COMMAND...: likewise, with a priority.
start_with_priority() {
	name=$1
	priority=$2
	shift 2
	"$ctl" run --task "$name" --priority "$priority" --log info -- "$@" \
		>"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

# NAME COMMAND...: with a deadline that it may or may not meet.
start_urgent() {
	name=$1
	shift
	"$ctl" run --task "$name" --class realtime --deadline 500ms --log info -- "$@" \
		>"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

# FRAMES: one with a deadline and one without; each has had a job.
start_both() {
	start_urgent camera "$apps/hotspot" --frames "$1" --json
	camera=$pid
	start train "$apps/matmul" --frames "$1" --json
	train=$pid
	until_true "a job of camera is told of" status_is jobs camera -ge 1
	until_true "a job of train is told of" status_is jobs train -ge 1
}

# NAME: it says that it has begun.
has_begun() {
	grep -q begun "$scratch/$1.out"
}

# NAME PID: it ends with exit code 0 and says that its results are right.
ended_well() {
	wait "$2"
	code=$?
	[ "$code" -eq 0 ] || fail "$1: exit code $code"
	results_ok "$1"
}

results_ok() { # NAME
	grep -q '"ok":true' "$scratch/$1.out" || fail "$1: the results are not right, or not told"
}

# WHAT TASK OPERATOR NUMBER: a number of sbeetd's status compares so. TASK may be "".
status_is() {
	number=$("$ask" "$ctl" "$1" ${2:+"$2"}) && test "$number" "$3" "$4"
}

# A number of the service in `status --json`.
service() {
	"$ctl" status --json=short | sed -n "s/.*\"$1\": *\([0-9]*\).*/\1/p"
}

# OPERATOR NUMBER: the grants of sbeetd compare so.
test_grants() {
	test "$(service grants)" "$@"
}

# Launches that program NAME told of in its summary.
launches_of() {
	sed -n 's/^[^[]*"launches":\([0-9]*\).*/\1/p' "$scratch/$1.out"
}

# FILE TIMES: a trace of a second, in which each kind of operation happened so often at least.
records_ops() {
	"$ctl" trace record -d 1s "$1" 2>"$scratch/record.err" || return 1
	for kind in copy-htod launch copy-dtoh; do
		[ "$(grep -c "\"op\":\"$kind\"" "$1")" -ge "$2" ] || return 1
	done
}

# What ends each test: nothing is held, and sbeetd goes in peace.
all_is_free() {
	daemon_lives
	until_true "no session is left" status_is sessions "" -eq 0
	until_true "all SMs are free" status_is busy "" -eq 0
}
