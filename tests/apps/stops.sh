#!/bin/sh
# Jobs that are stopped for others of higher priority (gpu-kthread, gpu-ioctl), on the simulated GPU: the
# urgent one gets through while an endless job of a lower one is open, and every result is exact. No
# time is measured; under fcfs the first case would wait for ever.
#
# usage: stops.sh overtakes-kthread | overtakes-ioctl | levels | killed | restarts
. "$(dirname "$0")/lib.sh"

export SIMGPU=16:exclusive
enough=$scratch/enough

start_endless() { # NAME PRIORITY HOW
	SBEET_JOB=marks start_with_priority "$1" "$2" "$apps/endless" "$enough" "$3"
	until_true "$1 runs" has_begun "$1"
}

# POLICY HOW: events go to $scratch/events.
begin() {
	start_daemon --policy "$1"
	"$ctl" monitor --json=short >"$scratch/events" 2>"$scratch/monitor.err" &
	monitor=$!
	started="$started $monitor"
	until_true "the monitor listens" grep -q '"start"' "$scratch/events"
	start_endless low 1 "$2"
	low=$pid
}

# The urgent program gets through, though the job of the other one is not over, and that one is right.
get_through() {
	start_with_priority high 2 "$apps/hotspot" --frames 4 --json
	ended_well high "$pid"
	kill -0 "$low" 2>/dev/null || fail "the endless job is over"
	touch "$enough"
	ended_well low "$low"
	all_is_free
}

# Events of TASK's job NUMBER, a line with a word each.
events_of() {
	sed -n "s/.*\"event\":\"\([a-z-]*\)\".*\"job\":$2,.*\"task\":\"$1\".*/\1/p" "$scratch/events" | tr '\n' ' '
}

has_done() { # TASK JOBS
	test "$(grep '"job-done"' "$scratch/events" | grep -c "\"task\":\"$1\"")" -eq "$2"
}

overtakes() { # POLICY
	begin "gpu-$1" job
	get_through
	until_true "one marked job is one job" has_done low 1
	events=$(events_of low 1)
	case $events in
	"job-request job-grant job-revoke job-stop job-request job-grant "*"job-done ") ;;
	*) fail "the low job: $events" ;;
	esac
	status_is launched "" -eq $(($(launches_of low) + $(launches_of high))) || fail "a launch is missing"
	# Under Alg. 6 segments don't end the job; under Alg. 7 each is a job of its own.
	rm -f "$enough"
	start_endless parts 1 segments
	until_true "it has a second segment" grep -q "goes on" "$scratch/parts.out"
	touch "$enough"
	ended_well parts "$pid"
	all_is_free
	n=$(($(launches_of parts) / 4))
	[ "$n" -gt 1 ] || fail "only one segment"
	[ "$1" = ioctl ] || n=1
	until_true "$n jobs of parts are done" has_done parts "$n"
	kill "$monitor" 2>/dev/null
	stop_daemon
}

# Three levels at once, each above the one before; then equals, who all get on.
levels() {
	begin gpu-kthread job
	start_endless middle 2 job
	middle=$pid
	start_with_priority high 3 "$apps/matmul" --frames 4 --json
	ended_well high "$pid"
	start_with_priority equal-1 4 "$apps/matmul" --frames 8 --json
	one=$pid
	start_with_priority equal-2 4 "$apps/hotspot" --frames 8 --json
	two=$pid
	ended_well equal-1 "$one"
	ended_well equal-2 "$two"
	! "$ctl" status | grep -q "which this policy ignores" || fail "priorities decide something"
	"$ctl" policy even || fail "the policy can't be set"
	"$ctl" status | grep -q "2 programs have a priority, which this policy ignores" ||
		fail "status does not say that priorities decide nothing"
	touch "$enough"
	ended_well middle "$middle"
	ended_well low "$low"
	all_is_free
	kill "$monitor" 2>/dev/null
	stop_daemon
}

is_stopped() { # its job waits to go on
	"$ctl" status --json | grep -q '"state": *"\(waiting\|stopped\)"'
}

# The stopped program dies: nobody hangs, and nothing stays taken. Then the urgent one does.
killed() {
	begin gpu-kthread job
	start_endless high 2 job
	high=$pid
	until_true "the low job is stopped" is_stopped
	kill -KILL "$low"
	wait "$low" 2>/dev/null
	start_with_priority next 1 "$apps/endless" "$enough" unmarked
	next=$pid
	start_with_priority beside 3 "$apps/hotspot" --frames 3 --json
	ended_well beside "$pid"
	kill -KILL "$high"
	wait "$high" 2>/dev/null
	until_true "one that waited behind it runs" has_begun next
	touch "$enough"
	ended_well next "$next"
	all_is_free
	kill "$monitor" 2>/dev/null
	stop_daemon
}

# sbeetd dies, or is restarted, again and again while jobs are stopped and go on.
restarts() {
	begin gpu-kthread job
	for signal in KILL TERM KILL TERM KILL; do
		start_with_priority "high-$signal" 2 "$apps/hotspot" --frames 3 --json
		urgent=$pid
		kill -"$signal" "$daemon" || fail "sbeetd does not live any more"
		wait "$daemon" 2>/dev/null
		start_daemon --policy gpu-kthread
		ended_well "high-$signal" "$urgent"
	done
	touch "$enough"
	ended_well low "$low"
	all_is_free
	stop_daemon
}

case $1 in
overtakes-*) overtakes "${1#overtakes-}" ;;
levels | killed | restarts) "$1" ;;
*) fail "usage: stops.sh overtakes-kthread | overtakes-ioctl | levels | killed | restarts" ;;
esac
say "ok"
