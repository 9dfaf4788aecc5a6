#!/bin/sh
# Kills and restarts sbeetd again and again under load: no program computes anything wrong, no job is
# lost, and no SM stays taken. Counts these, and tells the counts.
#
# First half: kill -9, as a crash. sbeetd is back within the time that programs wait for it, so none may
# go on without it. Second half: SIGTERM, as a stop without a service manager, which tells programs to
# go on without; the next one gets them back.
#
# usage: restarts.sh [TIMES]     $SBEET_RESTARTS counts instead if it is set
. "$(dirname "$0")/lib.sh"

times=${SBEET_RESTARTS:-${1:-20}}
export SIMGPU=16:mps
programs="matmul hotspot histogram lanes"
ran=0
wrong=0
unmanaged=0
leaked=0

# A program that starts while there is no sbeetd runs without, as it should.
start_one() { # NAME
	start "$1" "$apps/$1" --frames 12 --json
	eval "pid_$1=$pid"
	until_true "$1 is connected" is_connected "$1"
}

is_connected() { # NAME
	has_ended "$1" || status_is sessions "$1" -ge 1
}

count_one() { # NAME
	eval "wait \$pid_$1" && grep -q '"ok":true' "$scratch/$1.out" || wrong=$((wrong + 1))
	! grep -q unmanaged "$scratch/$1.err" || unmanaged=$((unmanaged + 1))
	ran=$((ran + 1))
}

has_ended() { # NAME
	eval "! kill -0 \$pid_$1 2>/dev/null"
}

# It has ended, or it has connected to this daemon and one of its jobs has ended since.
goes_on() { # NAME
	has_ended "$1" || status_is jobs "$1" -ge 1
}

# Jobs that a daemon did not know, or gave up though their program was there and used them. (One that
# ends without a word, for there is no daemon to tell, has ended its jobs: its results are looked at.)
count_lost() {
	awk '
		/ session [0-9]+: process [0-9]+ has ended/ { sub(":", "", $4); gone[$4] = 1 }
		/ was not used$/ { unused[$4 " " $9] = 1 }
		/ is given up, / && !gone[$4] && !unused[$4 " " $9] { n++ }
		/ it is told to end$/ { n++ }
		/ Ready in / { split("", gone); split("", unused) }
		END { print n + 0 }' "$scratch/sbeetd.log"
}

# SIGNAL TIMES
rounds() {
	signal=$1
	n=0
	for program in $programs; do
		start_one "$program"
	done
	while [ $n -lt "$2" ]; do
		n=$((n + 1))
		kill -"$signal" "$daemon" || fail "sbeetd does not live any more"
		wait "$daemon" 2>/dev/null
		code=$?
		[ "$signal" = KILL ] || [ "$code" -eq 0 ] || fail "sbeetd: exit code $code"
		start_daemon --policy even
		for program in $programs; do
			until_true "$signal $n: $program goes on" goes_on "$program"
			if has_ended "$program"; then
				count_one "$program"
				start_one "$program"
			fi
		done
	done
	for program in $programs; do
		count_one "$program"
	done
	until_true "no session is left" status_is sessions "" -eq 0
	leaked=$((leaked + $("$ask" "$ctl" busy)))
}

start_daemon --policy even
rounds KILL $(((times + 1) / 2))
[ "$unmanaged" -eq 0 ] || fail "$unmanaged programs went on without sbeetd"
rounds TERM $((times / 2))
lost=$(count_lost)
taken=$(sed -n 's/.*info: \([0-9]*\) jobs run since before.*/\1/p' "$scratch/sbeetd.log" |
	awk '{ n += $1 } END { print n + 0 }')
stop_daemon
say "$times restarts, $ran programs, $taken jobs taken over: $wrong wrong results, $lost lost jobs, $leaked leaked SMs"
[ "$taken" -gt 0 ] || fail "no job ran across a restart: the test is too light"
[ $((wrong + lost + leaked)) -eq 0 ] || fail "that is not nothing"
