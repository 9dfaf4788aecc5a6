#!/bin/sh
# Kills and restarts sbeetd again and again under load: no program computes anything wrong, none goes on
# without sbeetd, no job is lost, and at the end all SMs are free.
#
# usage: restarts.sh [TIMES]     $SBEET_RESTARTS counts instead if it is set
. "$(dirname "$0")/lib.sh"

times=${SBEET_RESTARTS:-${1:-20}}
export SIMGPU=16:mps
programs="matmul hotspot histogram lanes"
ran=0

# A program that starts while there is no sbeetd runs without, as it should.
start_one() { # NAME
	start "$1" "$apps/$1" --frames 12 --json
	eval "pid_$1=$pid"
	until_true "$1 is connected" is_connected "$1"
}

is_connected() { # NAME
	has_ended "$1" || status_is sessions "$1" -ge 1
}

# Results are right, and sbeetd was there all the time.
check_one() { # NAME
	eval "ended_well $1 \$pid_$1"
	! grep -q unmanaged "$scratch/$1.err" || fail "$1 went on without sbeetd"
	ran=$((ran + 1))
}

has_ended() { # NAME
	eval "! kill -0 \$pid_$1 2>/dev/null"
}

# It has ended, or it has connected to this daemon and one of its jobs has ended since.
goes_on() { # NAME
	has_ended "$1" || status_is jobs "$1" -ge 1
}

start_daemon --policy even
for program in $programs; do
	start_one "$program"
done
n=0
while [ $n -lt "$times" ]; do
	n=$((n + 1))
	kill -9 "$daemon" || fail "sbeetd does not live any more"
	wait "$daemon" 2>/dev/null
	start_daemon --policy even
	for program in $programs; do
		until_true "restart $n: $program goes on" goes_on "$program"
		if has_ended "$program"; then
			check_one "$program"
			start_one "$program"
		fi
	done
done
for program in $programs; do
	check_one "$program"
done
! grep -q "told to end" "$scratch/sbeetd.log" || fail "a job was not taken over"
taken=$(sed -n 's/.*info: \([0-9]*\) jobs run since before.*/\1/p' "$scratch/sbeetd.log" |
	awk '{ n += $1 } END { print n + 0 }')
[ "$taken" -gt 0 ] || fail "no job ran across a restart: the test is too light"
all_is_free
stop_daemon
say "$times restarts, $ran programs, $taken jobs taken over: ok"
