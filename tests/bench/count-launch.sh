#!/bin/sh
# Counts what libsbeet.so adds to an operation of a job that is open, and to its start and end (see count-launch.c), for each way
# in which one can be confined, on the simulated GPU.
#
# usage: SBEET_BUILD=BUILD [CASES=TEXT] count-launch.sh
# CASES: only those whose names begin like this. SBEET_DEPENDENT=1: launches are dependent ones, under terms.
. "$(dirname "$0")/../apps/lib.sh"

# CASE POLICY: one line an operation. Jobs outlast a step-by-step look at their launches.
count() {
	case $1 in "${CASES:-}"*) ;; *) return ;; esac
	export SIMGPU_DIR="$scratch/$SIMGPU"
	mkdir -p "$SIMGPU_DIR"
	start_daemon --policy "$2" --linger 60s
	if [ "$2" = even ]; then
		"$ctl" run --task other -- "$apps/lanes" --lanes 1 --frames 100000000 >/dev/null 2>&1 &
		other=$!
		started="$started $other"
		until_true "another job runs" status_is running other -ge 1
	fi
	LD_PRELOAD=$SBEET_BUILD/shim/libsbeet.so SBEET_REQUIRE=1 "$SBEET_BUILD/tests/bench/count-launch" "$1" ||
		fail "count-launch: exit code $?"
	if [ "$2" = even ]; then
		kill "$other"
	fi
	stop_daemon
}

(
	export SIMGPU=16:exclusive
	count "whole" fcfs
) || exit
(
	export SIMGPU=32:mps
	count "whole, green contexts at hand" fcfs
) || exit
(
	export SIMGPU=32:mps
	count "green" even
) || exit
(
	export SIMGPU=32:mps
	count "terms, whole GPU" steer
) || exit
(
	export SIMGPU=32:mps SBEET_MAX_SMS=16
	count "terms, green context" steer
) || exit
(
	export SIMGPU=t400:mps # too small for groups of SMs
	count "twin" even
) || exit
[ -n "${CASES:-}" ] ||
	LD_PRELOAD=$SBEET_BUILD/shim/libsbeet.so "$SBEET_BUILD/tests/bench/count-launch" "no sbeetd"
