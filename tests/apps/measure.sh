#!/bin/sh
# sbeetctl profile run and gpu calibrate on a simulated GPU, whose times and power are known.
#
# usage: measure.sh calibrate|profile|copies|warm-up|resume|failures|ends|blind|default
#
# The GPU's clock is so slow that kernels take tenths of a second: times are the model's, whatever this
# machine does meanwhile. matmul --size 96 has 36 blocks that are all alike, so 2, 3 and 6 SMs are busy
# to the end of each kernel, as the model of power wants it.
. "$(dirname "$0")/lib.sh"

export SIMGPU=t400@100khz:mps
load="$apps/matmul --size 96"

# FILE KEY: the number of this key in a JSON file with a line for each.
number_of() {
	sed -n "s/.*\"$2\": *\"\{0,1\}\([0-9.]*\).*/\1/p" "$1" | head -n 1
}

# WHAT VALUE TRUTH PER_CENT
is_near() {
	awk "BEGIN { d = $2 - $3; exit !(d * d <= ($3 * $4 / 100) ^ 2) }" ||
		fail "$1 is $2, more than $4 % from $3"
	say "$1: $2 (within $4 % of $3)"
}

# The shortest time on so many SMs in a profile, in ms.
best_on() { # FILE SMS
	awk -v want="$2," '$1 == "\"sms\":" { sms = $2 }
		$1 == "\"best\":" && sms == want { gsub(/[",]/, "", $2); print $2 }' "$1" |
		sed -n 's/ms$//p'
}

# ARGUMENTS...: profile run with --output; again where a busy machine has held up so many jobs of one
# number of SMs that it can't be true. Its output is in mm.out and mm.err.
measure() {
	until "$ctl" profile run "$@" >"$scratch/mm.out" 2>"$scratch/mm.err"; do
		grep -q "call again .* to measure anew" "$scratch/mm.err" || return 1
	done
}

# SMS: the time of a frame in ms by the program's own clock, into own.ms, of a run in which a busy
# machine held up no frame.
own_time() {
	tries=0
	# shellcheck disable=SC2086 # words
	until "$ctl" run --task alone --max-sms "$1" -- $load --frames 3 --json >"$scratch/own.out" &&
		sed 's/.*"elapsed_ns":\([0-9]*\),"longest_frame_ns":\([0-9]*\).*/\1 \2/' "$scratch/own.out" |
		awk '{ print $1 / 3e6; exit $2 * 3 > $1 * 1.05 }' >"$scratch/own.ms"; do
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || fail "the program can't be run on $1 SMs, or never steadily"
	done
}

# PID: ended, whether or not anybody has taken note of it.
is_gone() {
	! kill -0 "$1" || grep -q '^State:.Z' "/proc/$1/status"
}

# MESSAGE EXIT-CODE OPTIONS... -- PROGRAM...: profile run ends so.
fails_with() {
	message=$1
	wanted=$2
	shift 2
	"$ctl" profile run --task t --power-time 100ms "$@" >"$scratch/run.out" 2>"$scratch/run.err"
	code=$?
	[ "$code" -eq "$wanted" ] || fail "$*: exit code $code, expected $wanted"
	grep -q "$message" "$scratch/run.err" || fail "$*: says nothing of '$message'"
	[ ! -s "$scratch/run.out" ] || fail "$*: there is a result"
}

case $1 in
calibrate)
	# Whether a job of the program was held up: they are all alike.
	spoiled() {
		"$ctl" task history sbeet-calibrate --json=pretty | tr -d , |
			awk '$1 == "\"mean_response_ns\":" { mean = $2 }
				$1 == "\"max_response_ns\":" && $2 > mean * 1.02 { found = 1 }
				END { exit !found }'
	}
	tries_max=8
	# A straight line through few points shows what a busy machine adds to each kernel six times over.
	export SIMGPU=t400@50khz:mps
	start_daemon --policy fcfs
	# shellcheck disable=SC2086 # words
	"$ctl" gpu calibrate --sms 2,3,6 --runs 3 --json=pretty -o "$scratch/gpu.json" -- $load --frames 4 \
		>"$scratch/model.out" 2>"$scratch/model.err" || fail "not calibrated"
	# What tests/simgpu/config.c gives this GPU.
	is_near "static power" "$(number_of "$scratch/gpu.json" static_w)" 8 5
	is_near "power of an unused SM" "$(number_of "$scratch/gpu.json" idle_w_per_sm)" 0.652 5
	is_near "power of a busy SM" "$(number_of "$scratch/model.out" load_w_per_sm)" 0.81 5
	[ ! -e "$scratch/gpu.json.part" ] || fail "what was kept meanwhile is still there"
	stop_daemon
	mkdir "$scratch/profiles"
	mv "$scratch/gpu.json" "$scratch/profiles"
	start_daemon --profile-dir "$scratch/profiles"
	grep -q "ignoring" "$scratch/sbeetd.log" && fail "sbeetd can't read what was written"
	;;
profile)
	start_daemon --policy fcfs
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 2,3,6 --runs 4 --idle-w-per-sm 0.652 --power-time 1s \
		-o "$scratch/mm.json" -- $load --frames 5 || fail "not measured"
	grep -q "^  *2  " "$scratch/mm.out" && grep -q "m_opt" "$scratch/mm.out" || fail "no table"
	for sms in 2 3 6; do
		own_time $sms
		is_near "ms on $sms SMs" "$(best_on "$scratch/mm.json" $sms)" "$(cat "$scratch/own.ms")" 10
	done
	"$ctl" profile show "$scratch/mm.json" mm >"$scratch/show.out" || fail "the profile can't be read"
	;;
copies)
	# matmul hands over its copy back behind its kernel, then waits for both. Its 36,864 bytes take 147 ms.
	export SIMGPU_HOST_RATE=250
	copy=147.456
	start_daemon --policy fcfs
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 6 --runs 4 --power-time 100ms -o "$scratch/mm.json" -- $load --frames 5 ||
		fail "not measured"
	awk '$1 == 6 { found = $9 ~ /ms$/ } END { exit !found }' "$scratch/mm.out" || fail "the table has no copy back"
	export SBEET_MEASURE=0
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 6 --runs 4 --power-time 100ms -o "$scratch/all.json" -- \
		$load --frames 5 || fail "not measured without copies"
	own_time 6
	[ "$(number_of "$scratch/all.json" copy_out)" = 0 ] || fail "a copy is measured without being asked for"
	is_near "ms of a job" "$(best_on "$scratch/all.json" 6)" "$(cat "$scratch/own.ms")" 10
	is_near "ms of its kernel" "$(best_on "$scratch/mm.json" 6)" \
		"$(awk -v copy=$copy '{ print $1 - copy }' "$scratch/own.ms")" 10
	awk -v out="$(number_of "$scratch/mm.json" copy_out)" -v copy=$copy 'BEGIN { exit !(out >= copy) }' ||
		fail "the copy back took $(number_of "$scratch/mm.json" copy_out) ms, and moves its bytes in $copy ms"
	;;
warm-up)
	# It begins with two jobs that get all SMs, whoever asks for fewer.
	printf '%s --frames 2\nexec %s --frames "$1"\n' "$apps/stubborn" "$load" >"$scratch/loads.sh"
	start_daemon --policy fcfs
	fails_with "different numbers of SMs" 1 --sms 3 --runs 3 -- sh "$scratch/loads.sh" 1000
	fails_with "no job of 'sh' began after its warm-up, 1min" 1 --sms 3 --warm-up 1min --time-limit 2min -- \
		sh "$scratch/loads.sh" 1
	fails_with "with 0 of 30 jobs measured after its warm-up" 6 --sms 3 --warm-up 1s --time-limit 1100ms -- \
		sh -c "$apps/stubborn --frames 1; sleep 1000"
	fails_with "shorter than --time-limit" 2 --sms 3 --warm-up 1min -- true
	measure --task mm --sms 3 --runs 3 --warm-up 2s --power-time 1s --json=pretty -- sh "$scratch/loads.sh" 1000 ||
		fail "not measured"
	[ "$(number_of "$scratch/mm.out" jobs)" -ge 3 ] || fail "too few jobs are measured"
	# 8 W, six SMs at 0.652 W, and 0.158 W more for each that is busy
	is_near "power on 3 SMs" "$(number_of "$scratch/mm.out" gpu_w)" 12.386 15
	# Runs that end by themselves: each has a warm-up.
	measure --task mm --sms 3 --runs 12 --warm-up 300ms --power-time 1s --json=pretty -- $load --frames 8 ||
		fail "not measured in several runs"
	is_near "power on 3 SMs, in several runs" "$(number_of "$scratch/mm.out" gpu_w)" 12.386 15
	;;
resume)
	start_daemon --policy fcfs
	command="$ctl profile run --task mm --sms 2,3,6 --runs 3 --power-time 1s -o $scratch/mm.json -- $load"
	$command --frames 4 >"$scratch/1.out" 2>"$scratch/1.err" &
	pid=$!
	started="$started $pid"
	until_true "one number of SMs is measured" test -e "$scratch/mm.json.part"
	kill -TERM $pid
	wait $pid && fail "an interrupted run ends well"
	[ ! -e "$scratch/mm.json" ] || fail "an interrupted run has a result"
	# its copy comes before
	first=$(sed -n 's/.*"min_ns": \([0-9]*\).*/\1/p' "$scratch/mm.json.part" | sed -n 2p)
	$command --frames 3 2>"$scratch/other.err" && fail "another program goes on"
	grep -q "of another run" "$scratch/other.err" || fail "it is not said why"
	# shellcheck disable=SC2086 # words
	"$ctl" profile run --task mm --sms 2,3,6 --runs 3 --power-time 1s --warm-up 1s -o "$scratch/mm.json" -- \
		$load --frames 4 2>"$scratch/other.err" && fail "another warm-up goes on"
	grep -q "of another run" "$scratch/other.err" || fail "it is not said why another warm-up does not go on"
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 2,3,6 --runs 3 --power-time 1s -o "$scratch/mm.json" -- $load --frames 4 ||
		fail "it does not go on"
	grep -q "going on" "$scratch/mm.err" || fail "it does not say that it goes on"
	[ ! -e "$scratch/mm.json.part" ] || fail "what was kept meanwhile is still there"
	[ "$(grep -c '"sms"' "$scratch/mm.json")" -eq 3 ] || fail "there are not three points"
	[ -n "$(best_on "$scratch/mm.json" 6)" ] || fail "the last point is missing"
	# all digits: the first point was not measured again
	is_near "the first point" "$(best_on "$scratch/mm.json" 2)" "$(echo "$first" | awk '{ printf "%.6f", $1 / 1e6 }')" 0.0001
	;;
failures)
	start_daemon --policy fcfs
	fails_with "failed with exit code 3" 1 --sms 3 -- sh -c 'exit 3'
	fails_with "ended by signal 9" 1 --sms 3 -- sh -c 'kill -9 $$'
	fails_with "cannot find the program" 127 --sms 3 -- "$scratch/nothing"
	fails_with "has no GPU job" 1 --sms 3 -- true
	fails_with "launches no kernel" 1 --sms 3 -- "$apps/copies" --frames 2
	# It leaves a process that its end does not reach.
	cat >"$scratch/leaves.sh" <<-END
		setsid sh -c 'echo \$\$ >$scratch/left; exec "\$0" --frames 1000000' "$apps/vecadd" &
		until [ "\$("$ask" "$ctl" sessions t)" = 1 ]; do sleep 0.05; done
	END
	fails_with "of its processes go on" 1 --sms 3 -- sh "$scratch/leaves.sh"
	kill -9 "$(cat "$scratch/left")"
	until_true "no session is left" status_is sessions "" -eq 0
	fails_with "time limit" 6 --sms 3 --time-limit 500ms -- sleep 1000
	fails_with "cannot be confined" 1 --sms 3 --runs 1 -- "$apps/stubborn" --frames 2
	fails_with "has 6 SMs" 2 --sms 7 -- true
	fails_with "expected rising numbers" 2 --sms 3,2 -- true
	fails_with "there is no GPU 1" 4 --gpu 1 -- true
	fails_with "no program of task 'x' runs" 4 --beside x -- true
	"$ctl" policy even || fail "the policy can't be set"
	fails_with "3 SMs where 6 were asked for, under policy 'even'" 1 --sms 6 --runs 1 -- \
		"$apps/vecadd" --size 4096 --frames 2
	;;
ends)
	# Enough is seen long before it would end by itself: no job of it runs when it is told to.
	start_daemon --policy fcfs
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 2,3,6 --runs 2 --power-time 100ms -o "$scratch/mm.json" -- \
		$load --frames 1000 || fail "not measured"
	grep -q "ended while it ran" "$scratch/mm.err" && fail "it was ended while it ran"
	status_is abandoned "" -eq 0 || fail "a program was ended in the middle of a job"
	status_is done "" -ge 6 || fail "hardly a job was done"
	# Several processes, one of which was not there at first.
	"$ctl" profile run --task pool --sms 6 --runs 2 --power-time 100ms -- \
		sh -c "$load --frames 1000 & sleep 0.3; $load --frames 1000 & wait" \
		>"$scratch/pool.out" 2>"$scratch/pool.err" || fail "a pool is not measured"
	status_is abandoned "" -eq 0 || fail "a process of a pool was ended in the middle of a job"
	until_true "the pool is gone" status_is sessions "" -eq 0
	# One process ends when it is told, the other does not hear of it.
	printf 'trap "" TERM\necho $$ >%s\n%s --frames 1000\nsleep 1000\n' "$scratch/deaf" "$load" >"$scratch/deaf.sh"
	"$ctl" profile run --task deaf --sms 6 --runs 2 --power-time 100ms -- \
		sh -c "sh $scratch/deaf.sh & wait" >"$scratch/deaf.out" 2>"$scratch/deaf.err" ||
		fail "two processes are not measured"
	until_true "no process is left behind" is_gone "$(cat "$scratch/deaf")"
	status_is abandoned "" -eq 0 || fail "it was ended in the middle of a job"
	# Who kills sbeetctl does not leave a program behind.
	"$ctl" profile run --task orphan --sms 6 --runs 1000000 -- "$apps/vecadd" --frames 100000000 \
		>"$scratch/orphan.out" 2>"$scratch/orphan.err" &
	pid=$!
	started="$started $pid"
	until_true "it is measured" status_is jobs orphan -ge 1
	kill -9 "$pid"
	until_true "its program ends with it" status_is sessions orphan -eq 0
	abandoned=$("$ask" "$ctl" abandoned)
	# A kernel that takes longer than anybody waits.
	fails_with "time limit" 6 --sms 3 --time-limit 500ms --drain 200ms -- \
		"$apps/lanes" --lanes 1 --rounds 100000000 --frames 1
	grep -q "ended while it ran" "$scratch/run.err" || fail "it is not said what its end may do"
	status_is abandoned "" -gt "$abandoned" || fail "there was no job that ran"
	# One that deadly signals end on the second number of SMs: the first is kept.
	# shellcheck disable=SC2016 # for the other shell
	fails_with "ended by signal 11" 1 --sms 3,6 --runs 1 -o "$scratch/crash.json" -- \
		sh -c '[ "$SBEET_MAX_SMS" = 3 ] || kill -SEGV $$; exec '"$load --frames 2"
	grep -q "call again to go on" "$scratch/run.err" || fail "nobody says how to go on"
	[ -s "$scratch/crash.json.part" ] && [ ! -e "$scratch/crash.json" ] || fail "the first point is lost"
	;;
blind)
	# NVML without power and energy: times are measured all the same.
	printf no-power >"$SIMGPU_DIR/nvml-fault"
	start_daemon --policy fcfs
	# shellcheck disable=SC2086 # words
	measure --task mm --sms 3,6 --runs 2 --power-time 100ms -o "$scratch/mm.json" -- \
		$load --frames 3 || fail "not measured"
	grep -q "the GPU tells no energy" "$scratch/mm.err" || fail "it is not said that power is missing"
	[ -n "$(best_on "$scratch/mm.json" 6)" ] || fail "there is no time on 6 SMs"
	grep -q "m_opt" "$scratch/mm.out" && fail "an optimum without power"
	# shellcheck disable=SC2086 # words
	"$ctl" gpu calibrate --sms 3,6 --runs 1 --power-time 100ms -- $load --frames 2 \
		>"$scratch/gpu.out" 2>"$scratch/gpu.err" && fail "calibrated without power"
	grep -q "nothing can be fitted" "$scratch/gpu.err" || fail "it is not said why"
	;;
default)
	# Under MPS parts are made of groups of SMs, so not every number can be had.
	export SIMGPU=rtx3070@50khz:mps
	start_daemon --policy fcfs
	"$ctl" gpu show 0 >"$scratch/gpu.out" || fail "the GPU is not shown"
	grep -q "^ *STEP  4$" "$scratch/gpu.out" && grep -q "^ *MIN SMS  4$" "$scratch/gpu.out" ||
		fail "nobody says in which steps SMs are given"
	# shellcheck disable=SC2086 # words
	measure --task mm --runs 2 --power-time 100ms -o "$scratch/mm.json" -- \
		$load --frames 3 || fail "not measured by default"
	[ "$(sed -n 's/^ *"sms": \([0-9]*\).*/\1/p' "$scratch/mm.json" | tr '\n' ' ')" = "4 8 16 20 28 32 46 " ] ||
		fail "measured other numbers than can be had"
	fails_with "say --sms 4,8,...,36,46" 2 --sms 6,46 -- true
	;;
*)
	fail "no such case: $1"
	;;
esac
all_is_free
stop_daemon
say "ok"
