#!/bin/sh
# Programs in pid and user namespaces of their own, as in containers: each is process 1 of user 1234 there, and sbeetd
# knows which process of which user it is outside, after its own restart too.
#
# usage: namespaces.sh
. "$(dirname "$0")/lib.sh"

enter="unshare --user --map-user=1234 --pid --fork --kill-child"
$enter test -x "$apps/lanes" 2>/dev/null || {
	say "no namespaces here, or they may not read $apps"
	exit 77
}
export SIMGPU=16:mps SIMGPU_FAULTS=contained

session_of() { # TASK COLUMN
	"$ctl" session list --no-legend --columns "task,$2" | awk -v task="$1" '$1 == task { print $2 }'
}

# TASK PROGRAM: its session has the process outside, whose number inside is 1.
known_rightly() {
	outside=$(session_of "$1" pid)
	[ "$(cat "/proc/$outside/comm")" = "$2" ] || fail "the session of $1 has pid $outside, which is not $2"
	inside=$(awk '$1 == "NSpid:" { print $NF }' "/proc/$outside/status")
	[ "$inside" = 1 ] || fail "$1 is process $inside in its namespace"
	[ "$(session_of "$1" uid)" = "$(id -u)" ] || fail "the session of $1 has another user"
}

start_daemon --policy fcfs
start first $enter "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
until_true "a job runs" status_is running first -eq 1
start second $enter "$apps/vecadd" --frames 3 --json
second=$pid
until_true "another waits for it" status_is waiting second -eq 1
known_rightly first lanes
first=$outside
known_rightly second vecadd
[ "$outside" != "$first" ] || fail "two sessions have one process"

kill -9 "$daemon"
wait "$daemon" 2>/dev/null
start_daemon --policy fcfs
until_true "the job runs under the next sbeetd" status_is running first -eq 1
until_true "the other waits again" status_is waiting second -eq 1
known_rightly first lanes
[ "$outside" = "$first" ] || fail "after a restart it is another process"
known_rightly second vecadd

kill -9 "$first" # sbeetd sees this process end, and no other
until_true "its session is gone" status_is sessions first -eq 0
ended_well second "$second"
all_is_free
stop_daemon
say "ok"
