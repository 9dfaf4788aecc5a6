#!/bin/sh
# What stops a running job for one of higher priority (gpu-kthread), on the simulated GPU, each means
# where nothing else would do: a kernel of lower never ends while urgent runs, and lower is told nothing.
#
# usage: means.sh preempt | level | killed-preempt | killed-level
. "$(dirname "$0")/lib.sh"

urgent=$SBEET_BUILD/tests/gpu/urgent
page=$scratch/page

# Kernels that lower has seen the end of: struct page of urgent.c.
kernels_done() {
	od -An -t u8 -j 72 -N 8 "$page" | tr -d ' '
}

lower_runs() {
	[ -s "$page" ] && [ "$(kernels_done)" -ge "$1" ]
}

# TASK TEXT: of its job's JSON.
job_shows() {
	"$ctl" status --json=short | tr '{' '\n' | grep "\"task\":\"$1\"" | grep -q "$2"
}

# ROUNDS MEANS: lower has the GPU, and this can stop it.
start_lower() {
	start_with_priority lower 1 "$urgent" lower "$page" 0 "$1"
	lower=$pid
	until_true "lower runs" lower_runs 2
	until_true "lower can be stopped by $2" job_shows lower "\"stop\":\"$2\""
}

was_stopped() { # TASK
	grep '"job-stop"' "$scratch/events" | grep -q "\"task\":\"$1\""
}

# Steps that don't commute, preempted or at a level below: none is lost, repeated or out of order.
exact() {
	SBEET_JOB=marks start_with_priority steps 1 "$SBEET_BUILD/tests/apps/driver/endless" "$scratch/enough" job
	steps=$pid
	until_true "steps run" grep -q begun "$scratch/steps.out"
	start_with_priority high 2 "$apps/hotspot" --frames 4 --json
	ended_well high "$pid"
	until_true "it is told that steps were stopped" was_stopped steps
	touch "$scratch/enough"
	ended_well steps "$steps"
	all_is_free
}

# Jobs of urgent in the middle of one kernel of lower.
overtake() {
	before=$(kernels_done)
	start_with_priority urgent 2 "$urgent" jobs "$page" 0 20 20000 0.5
	high=$pid
	wait "$high" || fail "urgent: exit code $?"
	read -r jobs rest <"$scratch/urgent.out"
	[ "$jobs" -gt 0 ] || fail "no job of urgent ended ($rest)"
	[ "$(kernels_done)" -le $((before + $1)) ] || fail "kernels of lower ended"
	until_true "it is told that lower was stopped" was_stopped lower
	until_true "lower has the GPU again" job_shows lower '"state":"running"'
	job_shows lower '"aside":false' || fail "lower is aside"
	"$ctl" job explain 1 >"$scratch/explained.out" || fail "nothing can be explained"
	grep -q "can be stopped by: $2" "$scratch/explained.out" || fail "job explain does not name $2"
}

begin() {
	start_daemon --policy gpu-kthread
	"$ctl" monitor --json=short >"$scratch/events" 2>"$scratch/monitor.err" &
	monitor=$!
	started="$started $monitor"
	until_true "the monitor listens" grep -q '"start"' "$scratch/events"
}

end_lower() {
	kill "$monitor" 2>/dev/null
	kill -KILL "$lower"
	wait "$lower" 2>/dev/null
	all_is_free
	stop_daemon
}

handed_over() {
	"$ctl" gpu list --json=short | grep -q '"preemptible": *[1-9]'
}

# Neither a time slice ends nor a kernel of lower: nothing but preemption lets a kernel of urgent begin.
preempt() {
	export SIMGPU=1 SIMGPU_SLICE=1000000000
	export LD_PRELOAD="$SBEET_BUILD/shim/libsbeet.so:$SBEET_BUILD/tests/simgpu/libsimgpu-ioctl.so"
	begin
	exact
	start_with_priority lower 1 "$urgent" lower "$page" 0 1000000000
	lower=$pid
	until_true "lower is handed over" handed_over
	overtake 0 preempt
	end_lower
}

# Lower's kernels take 20 waves of blocks; a job of urgent waits for one.
level() {
	export SIMGPU=16:mps
	begin
	exact
	start_lower 500 level
	overtake 1 level
	end_lower
}

# The urgent one dies while it has the GPU, then one that waits.
kill_programs() {
	SBEET_JOB=marks start_with_priority dies 2 "$apps/endless" "$scratch/never" job
	high=$pid
	until_true "steps give way" job_shows steps '"aside":true'
	kill -KILL "$high"
	wait "$high" 2>/dev/null
	until_true "steps have the GPU again" job_shows steps '"state":"running"'
	SBEET_JOB=marks start_with_priority beside 1 "$apps/endless" "$scratch/never" job
	beside=$pid
	SBEET_JOB=marks start_with_priority last 2 "$apps/endless" "$scratch/last" job
	high=$pid
	until_true "steps give way" job_shows steps '"aside":true'
	kill -KILL "$beside"
	wait "$beside" 2>/dev/null
	touch "$scratch/last"
	ended_well last "$high"
}

# While a job is aside: nobody hangs, results stay exact, nothing stays taken. A program that is killed
# under MPS takes the others with it.
killed() {
	begin
	SBEET_JOB=marks start_with_priority steps 1 "$apps/endless" "$scratch/enough" job
	steps=$pid
	until_true "steps run" grep -q begun "$scratch/steps.out"
	for n in KILL-1 TERM-2 KILL-3; do
		signal=${n%-*}
		SBEET_JOB=marks start_with_priority "high-$n" 2 "$apps/endless" "$scratch/enough-$n" job
		high=$pid
		until_true "steps give way" job_shows steps '"aside":true'
		kill -"$signal" "$daemon" || fail "sbeetd does not live any more"
		wait "$daemon" 2>/dev/null
		start_daemon --policy gpu-kthread
		touch "$scratch/enough-$n"
		ended_well "high-$n" "$high"
	done
	"$@"
	touch "$scratch/enough"
	ended_well steps "$steps"
	[ "$("$ctl" status --json=short | sed -n 's/.*"protocol_errors": *\([0-9]*\).*/\1/p')" -eq 0 ] ||
		fail "somebody broke the protocol"
	all_is_free
	kill "$monitor" 2>/dev/null
	stop_daemon
}

case $1 in
preempt | level) "$1" ;;
killed-preempt)
	export SIMGPU=4
	export LD_PRELOAD="$SBEET_BUILD/shim/libsbeet.so:$SBEET_BUILD/tests/simgpu/libsimgpu-ioctl.so"
	killed kill_programs
	;;
killed-level)
	export SIMGPU=16:mps
	killed
	;;
*) fail "usage: means.sh preempt | level | killed-preempt | killed-level" ;;
esac
say "ok"
