#!/bin/sh
# Programs whose threads hold a lock while they launch, and programs that end in unusual ways, on the simulated
# GPU: none stands still, and none is kept alive or keeps SMs.
#
# usage: lives.sh locked GPU POLICY host | callback [OPTION OF RUN...]
#        lives.sh alone GPU POLICY host | callback [OPTION OF RUN...]
#        lives.sh ends GPU POLICY
#        lives.sh executes GPU POLICY
. "$(dirname "$0")/lib.sh"

enough=$scratch/enough

# NAME: how often it has said that it goes on.
steps() {
	grep -c begun "$scratch/$1.out"
}

gets_beyond() { # NAME STEPS
	[ "$(steps "$1")" -gt "$2" ]
}

start_locked() { # NAME HOW OPTION...
	name=$1
	how=$2
	shift 2
	"$ctl" run --task "$name" "$@" -- "$apps/locked" "$enough" "$how" >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

# Either stops for the other one, again and again.
locked() { # POLICY HOW OPTION...
	start_daemon --policy "$1" --max-hold 100ms
	shift
	start_locked one "$@"
	one=$pid
	until_true "one runs" has_begun one
	start_locked two "$@"
	two=$pid
	until_true "two runs" has_begun two
	for i in 1 2 3; do
		until_true "one goes on" gets_beyond one "$(steps one)"
		until_true "two goes on" gets_beyond two "$(steps two)"
	done
	touch "$enough"
	ended_well one "$one"
	ended_well two "$two"
}

# Its threads wait for each other's jobs.
alone() { # POLICY HOW OPTION...
	start_daemon --policy "$1"
	shift
	start_locked one "$@"
	for i in 1 2 3; do
		until_true "it goes on" gets_beyond one "$(steps one)"
	done
	touch "$enough"
	ended_well one "$pid"
}

has_left() { # NAME: its handler of exit() has run
	grep -q departs "$scratch/$1.out"
}

# As without sbeet: at once, with exit code 0, after the handlers of exit().
ends() { # POLICY
	start_daemon --policy "$1"
	for how in main thread; do
		"$apps/departs" "$how" >"$scratch/plain.out" 2>&1 || fail "plain: exit code $?"
		start "$how" "$apps/departs" "$how"
		until_true "$how ends" has_left "$how"
		ended_well "$how" "$pid"
		cmp "$scratch/plain.out" "$scratch/$how.out" || fail "$how: it says something else"
	done
}

is_there() { # NAME: the program that was executed
	grep -q there "$scratch/$1.out"
}

# What the old program has left is not waited for, neither by the new one nor by others.
executes() { # POLICY
	start_daemon --policy "$1" --drain 1h
	for how in exec by-thread; do
		start "$how" "$apps/departs" "$how" "$apps/hotspot" --frames 2 --json
		ended_well "$how" "$pid"
		start "$how-other" "$apps/departs" "$how" sh -c 'echo there; exec sleep 1000'
		until_true "the other program runs" is_there "$how-other"
		until_true "its SMs are free" status_is busy "" -eq 0
		kill "$pid"
	done
}

what=$1
export SIMGPU="$2"
shift 2
case $what in
locked | alone | ends | executes) "$what" "$@" ;;
*) fail "what is '$what'?" ;;
esac
all_is_free
stop_daemon
