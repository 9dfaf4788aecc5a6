#!/bin/sh
# Programs that know nothing of sbeet, under policy steer on a simulated GPU without MPS: a job of a task
# with a deadline takes the turns of the others away, results stay exact, and nothing hangs and nothing
# is left when somebody is killed.
#
# usage: preempted.sh live | few | overtakes | slices | effect | gpus | turns | turns-lost | turns-refused | killed | stopped | without | refused | off
. "$(dirname "$0")/lib.sh"

export SIMGPU=4
# What stands for the kernel comes last: sbeetctl run puts libsbeet.so behind what is there already.
kernel="$SBEET_BUILD/shim/libsbeet.so:$SBEET_BUILD/tests/simgpu/libsimgpu-ioctl.so"

# What preempting does is timed. Where it seems to be of no use, programs ask.
spoiled() {
	grep -qs 'urgent jobs end no sooner' "$scratch/sbeetd.log"
}

# The process that preempts; empty: there is none.
preempter() {
	grep -l -s -z -x -e --preempter "/proc/"[0-9]*/cmdline | while read -r file; do
		pid=${file#/proc/}
		pid=${pid%/cmdline}
		grep -q "^PPid:[[:space:]]*$daemon$" "/proc/$pid/status" 2>/dev/null && echo "$pid"
	done
}

preempter_runs() {
	[ -n "$(preempter)" ]
}

# As sbeetd's log says. After TIMES lines of the log.
has_preempted() {
	tail -n "+$1" "$scratch/sbeetd.log" | grep -q 'were preempted [1-9][0-9]* times, refused 0 times'
}

lines() {
	wc -l <"$scratch/sbeetd.log"
}

# Sockets of the preempting process that are the simulated driver's control device: one a program. The
# one to sbeetd is number 3; what the simulated driver needs itself is higher up.
descriptors() {
	n=0
	for fd in "/proc/$(preempter)/fd/"*; do
		number=${fd##*/}
		case $(readlink "$fd") in
		socket:*) [ "$number" -le 3 ] || [ "$number" -ge 256 ] || n=$((n + 1)) ;;
		esac
	done
	echo "$n"
}

holds() { # NUMBER
	[ "$(descriptors)" -eq "$1" ]
}

# KEY VALUE: of the GPU, as JSON.
shows() {
	"$ctl" gpu list --json=short | grep -q "\"$1\": *$2[,}]"
}

live() {
	start_daemon --policy steer
	start_both 40
	until_true "both are handed over" holds 2
	until_true "train is preempted" has_preempted 1
	status=/proc/$(preempter)/status
	grep -q '^NoNewPrivs:.*1$' "$status" && grep -q '^Seccomp:.*2$' "$status" ||
		fail "the process that preempts has privileges"
	[ "$(id -u)" -ne 0 ] || grep -q '^Uid:.*65534' "$status" || fail "it is root"
	until_true "it shows" shows preemption '"works"'
	shows preempt_min_ns '[1-9][0-9]*' || fail "the shortest preemption is not shown"
	shows preemptible 2 || fail "not both can be preempted"
	shows turn_ns null || fail "turns are shown where there are none"
	ended_well camera "$camera"
	ended_well train "$train"
	until_true "nothing is held" holds 0
	until_true "nobody can be preempted" shows preemptible 0
	[ "$(service grants)" -eq 0 ] || fail "somebody has asked"
	all_is_free
	launches=$(($(launches_of camera) + $(launches_of train)))
	status_is launched "" -eq "$launches" || fail "not all of $launches launches were told of"
	stop_daemon
}

# Programs that may have few descriptors: there is no room where ours are kept.
few() {
	most=$(ulimit -S -n)
	start_daemon --policy steer
	ulimit -S -n 200
	start_both 40
	ulimit -S -n "$most"
	until_true "both are handed over" holds 2
	until_true "train is preempted" has_preempted 1
	ended_well camera "$camera"
	ended_well train "$train"
	stop_daemon
}

# Neither a time slice ends nor the kernel of lower: without preemption no kernel of urgent would begin.
overtakes() {
	export SIMGPU_TIMESLICES=refused
	overtake
}

# The same with a driver that preempts nobody, but lets time slices be set: lower's is short.
slices() {
	export SIMGPU_PREEMPT=ignored
	overtake
}

has_ended() { # PID
	! kill -0 "$1" || grep -q '^State:[[:space:]]*Z' "/proc/$1/status"
}

# With a period, so that it does not wait until its deadline is near.
overtake() {
	export SIMGPU=1 SIMGPU_SLICE=1000000000
	urgent=$SBEET_BUILD/tests/gpu/urgent
	page=$scratch/page
	start_daemon --policy steer
	start lower "$urgent" lower "$page" 0 1000000000
	lower=$pid
	until_true "lower is handed over" holds 1
	"$ctl" run --task urgent --class realtime --period 20ms -- "$urgent" jobs "$page" 0 20 20000 0.5 \
		>"$scratch/urgent.out" 2>"$scratch/urgent.err" &
	pid=$!
	started="$started $pid"
	until_true "urgent ends" has_ended "$pid"
	wait "$pid" || fail "urgent: exit code $?"
	read -r jobs rest <"$scratch/urgent.out"
	[ "$jobs" -gt 0 ] || fail "no job of urgent ended ($rest)"
	kill -KILL "$lower"
	wait "$lower" 2>/dev/null
	until_true "its descriptor is closed" holds 0
	[ "$(service grants)" -eq 0 ] || fail "somebody has asked"
	all_is_free
	stop_daemon
}

# On each of two GPUs a kernel that never ends; an urgent program on the first one preempts there alone.
gpus() {
	export SIMGPU=1,1 SIMGPU_SLICE=1000000000 SIMGPU_TIMESLICES=refused
	urgent=$SBEET_BUILD/tests/gpu/urgent
	start_daemon --policy steer
	for gpu in 0 1; do
		export CUDA_VISIBLE_DEVICES=$gpu
		start "lower$gpu" "$urgent" lower "$scratch/page$gpu" 0 1000000000
	done
	until_true "both are handed over" holds 2
	for gpu in 0 1; do
		export CUDA_VISIBLE_DEVICES=$gpu
		"$ctl" run --task "urgent$gpu" --class realtime --period 20ms -- \
			"$urgent" jobs "$scratch/page$gpu" 0 20 20000 200 >"$scratch/urgent.out" 2>"$scratch/urgent.err" &
		pid=$!
		started="$started $pid"
		until_true "it is told of" preempted_on $gpu
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null
		# One report tells of both.
		[ $gpu -eq 1 ] || [ "$(preemptions 1)" -eq 0 ] || fail "the other GPU's program was preempted"
	done
	end_started
	until_true "all descriptors are closed" holds 0
	stop_daemon
}

preemptions() { # GPU
	"$ctl" gpu list --columns index,preemptions --no-legend | awk -v gpu="$1" '$1 == gpu { print $2 }'
}

preempted_on() { # GPU
	[ "$(preemptions "$1")" -gt 0 ]
}

# What preempting does is found out by the first jobs, shown, and known to the next sbeetd.
effect() {
	export SIMGPU=1
	urgent=$SBEET_BUILD/tests/gpu/urgent
	page=$scratch/page
	start_daemon --policy steer
	start lower "$urgent" lower "$page" 0 1
	lower=$pid
	until_true "lower is handed over" holds 1
	shows preempt_effects '\[\]' || fail "something is known before any job"
	"$ctl" run --task urgent --class realtime --period 60ms -- "$urgent" jobs "$page" 1 1 60000 200 \
		>"$scratch/urgent.out" 2>"$scratch/urgent.err" &
	pid=$!
	started="$started $pid"
	until_true "it is found out" knows_effect
	for pid in "$pid" "$lower"; do
		kill -KILL "$pid"
		wait "$pid" 2>/dev/null
	done
	until_true "all descriptors are closed" holds 0
	stop_daemon
	start_daemon --policy steer
	until_true "the next one knows it" knows_effect
	stop_daemon
}

# An urgent program with short jobs, and three others without deadlines, which have work all the time and
# compare each result with the first one.
start_turns() {
	export SIMGPU=1
	export SIMGPU_TIMESLICES=refused # so that nothing is given up, whatever jobs take here
	segments=$SBEET_BUILD/tests/gpu/segments
	go=$scratch/go
	touch "$go"
	start_daemon --policy steer --turn 10ms
	"$ctl" run --task urgent --class realtime --period 20ms --job marks -- "$segments" go="$go" rounds=5 kernels=1 \
		period_us=20000 >"$scratch/urgent.out" 2>"$scratch/urgent.err" &
	urgent=$!
	others=
	for i in 0 1 2; do
		"$ctl" run --task "low$i" --class best-effort --job marks --log info -- "$segments" go="$go" rounds=50 \
			kernels=8 progress="$scratch/progress$i" >"$scratch/low$i.out" 2>"$scratch/low$i.err" &
		others="$others $!"
	done
	started="$started $urgent $others"
	until_true "all are handed over" holds 4
}

# After TIMES lines of the log.
has_turns() {
	tail -n "+$1" "$scratch/sbeetd.log" | grep -q 'have changed turns [1-9][0-9]* times'
}

# All end, with right results.
end_turns() {
	rm "$go"
	for pid in $urgent $others; do
		wait "$pid" || fail "a program ended with $?: $(cat "$scratch"/low*.err "$scratch/urgent.err")"
	done
	for name in ${urgent:+urgent} low0 low1 low2; do
		[ ! -e "$scratch/$name.out" ] || [ "$(wc -l <"$scratch/$name.out")" -eq 2 ] ||
			fail "$name: $(cat "$scratch/$name.err")"
	done
	until_true "all descriptors are closed" holds 0
	[ "$(service protocol_errors)" -eq 0 ] || fail "somebody broke the protocol"
	all_is_free
	stop_daemon
}

turns() {
	start_turns
	until_true "they take turns" has_turns 1
	shows turn_ns 10000000 || fail "it is not shown how long turns are"
	until_true "it shows who takes turns" shows turning '[23]'
	shows turns '[1-9][0-9]*' || fail "no turn is shown"
	# Under another policy nobody waits, and then they do again.
	"$ctl" policy even || fail "the policy can't be changed"
	shows turn_ns null && shows turning 0 || fail "there are turns under another policy"
	all_go_on "under another policy"
	from=$(lines)
	"$ctl" policy steer || fail "the policy can't be changed back"
	until_true "they take turns again" has_turns "$from"
	# Nor without an urgent program.
	kill -KILL "$urgent"
	wait "$urgent" 2>/dev/null
	urgent=
	until_true "nobody is shown to take turns" shows turning 0
	all_go_on "alone"
	end_turns
}

jobs_of() { # NUMBER
	od -An -t u8 "$scratch/progress$1" | tr -d ' '
}

has_gone_on() { # NUMBER JOBS
	[ "$(jobs_of "$1")" -ge $(($2 + 2)) ]
}

# WHEN: each of the three others ends some jobs.
all_go_on() {
	for i in 0 1 2; do
		until_true "program $i goes on, $1" has_gone_on $i "$(jobs_of $i)"
	done
}

# Whoever waits for its turn goes on when the one who says so is stopped or killed, at whatever moment.
turns_lost() {
	start_turns
	for round in 1 2 3; do
		from=$(lines)
		until_true "they take turns" has_turns "$from"
		helper=$(preempter)
		kill -STOP "$helper"
		all_go_on "while the process that preempts is stopped"
		kill -CONT "$helper"
		until_true "they take turns again" has_turns "$from"
		from=$(lines)
		kill -KILL "$helper"
		all_go_on "when it was killed"
		until_true "another one is there" preempter_runs
		until_true "they take turns by the next one" has_turns "$from"
	done
	helper=$(preempter)
	kill -STOP "$daemon"
	kill -STOP "$helper"
	all_go_on "while both are stopped"
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	all_go_on "when sbeetd was killed"
	kill -KILL "$helper"
	from=$(lines)
	start_daemon --policy steer --turn 10ms
	until_true "all are handed over to the next one" holds 4
	until_true "they take turns by the next one" has_turns "$from"
	# One of those that take turns.
	victim=${others##* }
	others=${others% *}
	kill -KILL "$victim"
	wait "$victim" 2>/dev/null
	until_true "its descriptor is closed" holds 3
	rm -f "$scratch/low2.out"
	from=$(lines)
	until_true "the others take turns" has_turns "$from"
	end_turns
}

# A driver that does not disable channels: it is said once, and all goes on as without turns.
turns_refused() {
	export SIMGPU_DISABLE=refused
	start_turns
	until_true "it is said" grep -q "takes no turns" "$scratch/low0.err" "$scratch/low1.err" "$scratch/low2.err"
	all_go_on "without turns"
	end_turns
}

knows_effect() {
	"$ctl" gpu list --json=short | grep -q '"others":1,"left_ns":[1-9][0-9]*,"preempted_ns":[1-9][0-9]*,"sliced_ns":[1-9]'
}

killed() {
	start_daemon --policy steer
	start_both 200
	until_true "both are handed over" holds 2
	# The process that preempts: time slices remain, and it comes again.
	from=$(lines)
	helper=$(preempter)
	kill -KILL "$helper"
	until_true "another one is there" preempter_runs
	until_true "both are handed over again" holds 2
	until_true "train is preempted again" has_preempted "$from"
	# sbeetd: the next one asks for the groups.
	helper=$(preempter)
	kill -KILL "$daemon"
	wait "$daemon" 2>/dev/null
	until_true "its process ends with it" test ! -e "/proc/$helper/fd/0"
	from=$(lines)
	start_daemon --policy steer
	until_true "both are handed over to the next one" holds 2
	until_true "train is preempted by the next one" has_preempted "$from"
	# The urgent program, in the middle of its job.
	kill -KILL "$camera"
	wait "$camera" 2>/dev/null
	until_true "its descriptor is closed" holds 1
	start_urgent camera "$apps/hotspot" --frames 5 --json
	camera=$pid
	ended_well camera "$camera"
	# The one that is preempted.
	kill -KILL "$train"
	wait "$train" 2>/dev/null
	until_true "all descriptors are closed" holds 0
	start camera "$apps/hotspot" --frames 5 --json
	ended_well camera "$pid"
	[ "$(service protocol_errors)" -eq 0 ] || fail "somebody broke the protocol"
	all_is_free
	stop_daemon
}

# Programs go on, are preempted, and the descriptor of a dead one is closed, without sbeetd.
stopped() {
	start_daemon --policy steer
	start_both 60
	until_true "both are handed over" holds 2
	kill -STOP "$daemon"
	kill -KILL "$train"
	wait "$train" 2>/dev/null
	until_true "its descriptor is closed" holds 1
	ended_well camera "$camera"
	until_true "all descriptors are closed" holds 0
	kill -CONT "$daemon"
	all_is_free
	stop_daemon
}

# A driver that shows nothing, as in some containers: programs ask, one runs at a time.
without() {
	start_daemon --policy steer
	kernel=
	unset LD_PRELOAD
	start_both 10
	ended_well camera "$camera"
	ended_well train "$train"
	[ "$(service grants)" -ge 20 ] || fail "they have not asked"
	shows preemption '"unseen"' || fail "it is not shown"
	grep -q "can't be preempted" "$scratch/train.err" || fail "the program does not say why"
	[ "$(grep -c "'train') can't be preempted" "$scratch/sbeetd.log")" -eq 1 ] || fail "sbeetd does not"
	all_is_free
	stop_daemon
}

# A driver that does not know the ioctl: it is said once, and programs ask.
refused() {
	export SIMGPU_PREEMPT=refused
	start_daemon --policy steer
	start_both 120
	until_true "it is said" grep -q 'the driver refuses to preempt' "$scratch/sbeetd.log"
	shows preemption '"refused"' || fail "it is not shown"
	until_true "jobs are asked for" test_grants -ge 2
	ended_well camera "$camera"
	ended_well train "$train"
	[ "$(grep -c 'the driver refuses to preempt' "$scratch/sbeetd.log")" -eq 1 ] || fail "it is not said once"
	preempter_runs && fail "there is a process that preempts"
	all_is_free
	stop_daemon
}

off() {
	start_daemon --policy steer --preempt off
	start_both 10
	preempter_runs && fail "there is a process that preempts"
	shows preemption '"off"' || fail "it is not shown"
	ended_well camera "$camera"
	ended_well train "$train"
	[ "$(service grants)" -ge 20 ] || fail "they have not asked"
	all_is_free
	stop_daemon
}

export LD_PRELOAD="$kernel"
case $1 in
live | few | overtakes | slices | effect | gpus | turns | killed | stopped | without | refused | off) "$1" ;;
turns-lost) turns_lost ;;
turns-refused) turns_refused ;;
*) fail "usage: preempted.sh CASE" ;;
esac
say "ok"
