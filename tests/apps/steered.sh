#!/bin/sh
# Programs that know nothing of sbeet, under policy steer on the simulated GPU: nobody asks, all that
# they do is counted, and nobody waits for an sbeetd that is stopped or gone.
#
# usage: steered.sh live | stopped | killed
. "$(dirname "$0")/lib.sh"

# 46 SMs: 9 groups of 4 and one of 10
export SIMGPU=rtx3070:mps

# TASK TEXT: `task explain` says so.
explains() {
	"$ctl" task explain "$1" 2>/dev/null | grep -q "$2"
}

live() {
	start_daemon --policy steer
	start_both 60
	until_true "camera is steered" explains camera 'GPU 0: all SMs'
	until_true "train is kept from camera's SMs" explains train 'GPU 0: SMs 20-45'
	[ "$(service grants)" -eq 0 ] || fail "somebody has asked"
	# The policy changes in the middle, and back.
	"$ctl" policy fcfs || fail "no other policy"
	until_true "jobs are asked for" test_grants -ge 2
	"$ctl" policy steer || fail "no policy steer"
	until_true "train is steered again" explains train 'GPU 0: SMs 20-45'
	ended_well camera "$camera"
	ended_well train "$train"
	all_is_free
	launches=$(($(launches_of camera) + $(launches_of train)))
	status_is launched "" -eq "$launches" || fail "not all of $launches launches were told of"
	explains nobody . && fail "there is nobody"
	stop_daemon
}

# Neither program has waited for sbeetd and gone on without it.
nobody_gave_up() {
	! grep -q unmanaged "$scratch/camera.err" "$scratch/train.err" || fail "somebody waited in vain"
}

# From here on nobody can be asked, and no account be read.
stopped() {
	start_daemon --policy steer
	start_both 60
	kill -STOP "$daemon" || fail "sbeetd does not live any more"
	ended_well camera "$camera"
	ended_well train "$train"
	kill -CONT "$daemon" || fail "sbeetd does not live any more"
	nobody_gave_up
	all_is_free
	stop_daemon
}

killed() {
	start_daemon --policy steer
	start_both 200
	for n in 1 2 3; do
		kill -KILL "$daemon" || fail "sbeetd does not live any more"
		wait "$daemon" 2>/dev/null
		start_daemon --policy steer
		until_true "$n: a job of camera is told of" ended_or_told camera "$camera"
		until_true "$n: a job of train is told of" ended_or_told train "$train"
	done
	ended_well camera "$camera"
	ended_well train "$train"
	nobody_gave_up
	all_is_free
	[ "$(service protocol_errors)" -eq 0 ] || fail "an account broke the protocol"
	stop_daemon
}

ended_or_told() { # NAME PID
	! kill -0 "$2" 2>/dev/null || status_is jobs "$1" -ge 1
}

case $1 in
live | stopped | killed) "$1" ;;
*) fail "usage: steered.sh live | stopped | killed" ;;
esac
say "ok"
