#!/bin/sh
# Three periodic programs that know nothing of sbeet, on two simulated GPUs: under policies that plan
# with profiles each gets the GPU that suits, all deadlines are met, and the energy that NVML counts is
# what the scheduler predicted. Under fcfs all three take GPU 0, as they do by themselves, and the long
# one makes the others late.
#
# usage: planned.sh POLICY
#
# The GPUs' clocks are so slow that kernels of few instructions take seconds; so the times below are
# the model's, whatever this machine does meanwhile. The copies of 100 ms in the profiles are for what
# the machine may add: deadlines are planned with 0.2 s to spare for each job, and met with 0.5 s and
# more. 'big' holds GPU 0 for so long that under fcfs each of the others must miss a deadline, whenever
# it began: the first job released while 'big' runs is so within 1350 ms, has to wait for its end, and
# is due 1350 ms later.
. "$(dirname "$0")/lib.sh"

policy=$1
energy=$SBEET_BUILD/tests/apps/energy
export SIMGPU=8@10khz:mps,4@10khz:mps

# Measured one by one; on a part of a GPU kernels run as persistent threads, which costs time.
# NAME POINTS-ON-8-SMS POINTS-ON-4-SMS
profile() {
	copies='"copy_in": "100ms", "copy_out": "100ms", "watts_per_sm": 1.52'
	printf '  {"name": "%s", "on": {\n' "$1"
	printf '    "Simulated GPU with 8 SMs": {%s, "points": [%s]},\n' "$copies" "$2"
	printf '    "Simulated GPU with 4 SMs": {%s, "points": [%s]}}}' "$copies" "$3"
}
point() {
	printf '{"sms": %d, "worst": "%dms"}' "$1" "$2"
}
mkdir "$scratch/profiles"
{
	echo '{"gpus": ['
	echo '  {"name": "Simulated GPU with 8 SMs", "static_w": 7.484, "idle_w_per_sm": 0},'
	echo '  {"name": "Simulated GPU with 4 SMs", "static_w": 3.742, "idle_w_per_sm": 0}],'
	echo ' "profiles": ['
	profile big "$(point 4 6340), $(point 8 2781)" "$(point 4 5565)"
	echo ,
	profile mid "$(point 4 1190), $(point 8 361)" "$(point 2 2138), $(point 4 722)"
	echo ,
	profile low "$(point 4 780), $(point 8 64)" "$(point 2 1126), $(point 4 126)"
	echo ']}'
} >"$scratch/profiles/all.json"

# Deadlines are real time: 0.5 s without a CPU is too long.
spoiled() {
	[ "$policy" != fcfs ]
}

# NAME PERIOD COMMAND...: a real-time task whose deadline is its period.
start_task() {
	name=$1
	period=$2
	shift 2
	"$ctl" run --task "$name" --class realtime --period "$period" --log info -- \
		"$@" --period "$period" --json >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
	until_true "sbeetd knows '$name'" status_is sessions "$name" -eq 1
}

start_daemon --policy "$policy" --profile-dir "$scratch/profiles"
# shellcheck disable=SC2046 # two numbers
set -- $("$energy" "$ctl" meter) || fail "no energy can be read"
began_ns=$1
began_mj=$2

start_task big 4200ms "$apps/matmul" --size 128 --frames 2
big=$pid
start_task mid 1350ms "$apps/matmul" --size 64 --frames 5
mid=$pid
start_task low 1350ms "$apps/vecadd" --size 8192 --frames 5
low=$pid
ended_well big "$big"
ended_well mid "$mid"
ended_well low "$low"
all_is_free
status_is done "" -eq 12 || fail "not all of the 12 jobs are done"

if [ "$policy" = fcfs ]; then
	status_is missed "" -ge 2 || fail "no deadline is missed: the test shows nothing"
	stop_daemon
	say "ok"
	exit 0
fi

status_is missed "" -eq 0 || fail "deadlines are missed"
for name in mid low; do
	grep -q "sbeetd has chosen GPU-.*01$" "$scratch/$name.err" || fail "'$name' is not on GPU 1"
done
grep -q "sbeetd has chosen GPU-.*00$" "$scratch/big.err" || fail "'big' is not on GPU 0"

# shellcheck disable=SC2046 # two numbers
set -- $("$energy" "$ctl" meter) || fail "no energy can be read"
took_ms=$((($1 - began_ns) / 1000000))
static_mj=$(((7484 + 3742) * took_ms / 1000))
measured_mj=$(($2 - began_mj))
predicted_mj=$("$energy" "$ctl" predicted 3) || fail "the decisions can't be read"
say "$took_ms ms: $measured_mj mJ measured, $static_mj static + $predicted_mj mJ predicted"
# The part that depends on decisions is compared: static power would hide errors in it.
active_mj=$((measured_mj - static_mj))
[ $((active_mj * 10)) -ge $((predicted_mj * 9)) ] && [ $((active_mj * 10)) -le $((predicted_mj * 11)) ] ||
	fail "the energy above static power, $active_mj mJ, is not within 10 % of $predicted_mj mJ"
# And what sbeetd itself makes of it, at the time of a reading.
for gpu in 0 1; do
	"$ctl" gpu show $gpu --json=short >"$scratch/gpu$gpu.out" || fail "GPU $gpu is not shown"
	model_mj=$(sed -n 's/.*"model_mj": *\([0-9]*\).*/\1/p' "$scratch/gpu$gpu.out")
	counter_mj=$(sed -n 's/.*"energy_mj": *\([0-9]*\).*/\1/p' "$scratch/gpu$gpu.out")
	say "GPU $gpu: $counter_mj mJ counted, ${model_mj:-nothing} by the model"
	[ $((model_mj * 20)) -ge $((counter_mj * 19)) ] && [ $((model_mj * 20)) -le $((counter_mj * 21)) ] ||
		fail "GPU $gpu: the model is more than 5 % from the counter"
done
stop_daemon
say "ok"
