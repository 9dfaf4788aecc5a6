#!/bin/sh
# Copies that are held, of programs that know nothing of sbeet: the same results, and nobody hangs,
# whoever exits, is killed or stopped in the middle.
#
# usage: held.sh equal | programs | stopped | killed
. "$(dirname "$0")/lib.sh"

export SIMGPU=rtx3070:mps

start_urgent() { # NAME COMMAND...
	name=$1
	shift
	"$ctl" run --task "$name" --class realtime --deadline 100ms --log debug -- "$@" \
		>"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

held() { # NAME
	grep -q "($1) is steered.*copies held" "$scratch/sbeetd.log" ||
		grep -q "('$1') is steered.*copies held" "$scratch/sbeetd.log"
}

# Two programs that copy without end, with a deadline and without.
start_both() {
	start_daemon --policy steer
	start_urgent camera "$apps/held" forever
	camera=$pid
	start train "$apps/held" forever
	train=$pid
	until_true "copies of camera are held" held camera
	until_true "copies of train are held" held train
	until_true "camera copies" has_begun camera
	until_true "train copies" has_begun train
	until_true "train lets others go first" lets_others_go_first train
}

lets_others_go_first() {
	grep -q "let more urgent ones go first" "$scratch/$1.err"
}

# Somebody keeps the gates of all others closed, as long as he may.
start_hurry() {
	"$SBEET_BUILD/tests/apps/hurry" "$SBEET_RUNTIME_DIR/shim.sock" >"$scratch/hurry.out" 2>"$scratch/hurry.err" &
	hurry=$!
	started="$started $hurry"
	until_true "the gates are closed" has_begun hurry
}

# While others copy.
runs_well() { # NAME COMMAND...
	start "$@"
	ended_well "$1" "$pid"
	start_urgent "urgent-$@"
	ended_well "urgent-$1" "$pid"
}

end_both() {
	kill -KILL "$camera" "$train" 2>/dev/null
	wait "$camera" "$train" 2>/dev/null
}

equal() {
	start_both
	runs_well equal "$apps/held" equal
	end_both
	all_is_free
	stop_daemon
}

# Whoever ends in the middle of copies, the others go on.
programs() {
	start_both
	start_hurry
	runs_well leave "$apps/held" leave
	runs_well fork "$apps/held" fork
	runs_well destroy "$apps/held" destroy
	kill -STOP "$camera" || fail "camera does not live any more"
	runs_well beside-stopped "$apps/held" urgent 40
	kill -KILL "$camera"
	wait "$camera" 2>/dev/null
	runs_well beside-killed "$apps/held" urgent 40
	kill "$hurry"
	end_both
	all_is_free
	stop_daemon
}

stopped() {
	start_both
	start_hurry
	start_urgent beside "$apps/held" urgent 40
	beside=$pid
	until_true "beside lets others go first" lets_others_go_first beside
	kill -STOP "$daemon" || fail "sbeetd does not live any more"
	ended_well beside "$beside"
	kill -CONT "$daemon"
	kill "$hurry"
	end_both
	all_is_free
	stop_daemon
}

# Who copies is steered by the next sbeetd, too.
start_again() {
	start_daemon --policy steer
	until_true "a job of camera is told of" status_is jobs camera -ge 1
	until_true "a job of train is told of" status_is jobs train -ge 1
}

killed() {
	start_both
	for n in 1 2 3; do
		start_hurry
		start_urgent "beside$n" "$apps/held" urgent 40
		beside=$pid
		until_true "beside lets others go first" lets_others_go_first "beside$n"
		kill -KILL "$daemon" || fail "sbeetd does not live any more"
		wait "$daemon" 2>/dev/null
		wait "$hurry"
		: >"$scratch/hurry.out"
		[ "$n" -eq 3 ] || start_again
		ended_well "beside$n" "$beside"
	done
	start_again
	end_both
	all_is_free
	stop_daemon
}

case $1 in
equal | programs | stopped | killed) "$1" ;;
*) fail "usage: held.sh equal | programs | stopped | killed" ;;
esac
say "ok"
