#!/bin/sh
# A program that can run its jobs on two GPUs, in C or Python, on two simulated GPUs: each of its jobs
# goes where sbeetd grants it. One that holds a GPU leaves the other one.
#
# usage: following.sh POLICY SHARING [PYTHON MODULES]
#	SHARING: of the GPUs, mps or exclusive; PYTHON: the example in Python, with the folder of sbeet.py
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")

export SIMGPU=32:$2,32:$2
policy=$1
follow=$apps/following
if [ $# -gt 2 ]; then
	export PYTHONPATH="$4" PYTHONDONTWRITEBYTECODE=1
	follow="$3 $here/following.py $here/ptx/vecadd.ptx"
fi
# For policies that plan with profiles. Jobs of "blocks" want all SMs.
mkdir "$scratch/profiles"
cat >"$scratch/profiles/known.json" <<'END'
{"profiles": [{"name": "follows", "on": {"Simulated GPU with 32 SMs": {"points": [
 {"sms": 8, "worst": "20ms", "watts": 20}, {"sms": 32, "worst": "10ms", "watts": 60}]}}}]}
END

said() { # NAME LINE NUMBER: program NAME has said LINE so often
	[ "$(grep -cx "$2" "$scratch/$1.out")" -eq "$3" ]
}

runs_on() { # TASK GPU
	tr '{' '\n' <"$scratch/jobs.out" | grep "\"task\":\"$1\"" | grep -q "\"gpu\":$2,"
}

# NAME: a job begins, or ends.
tell() {
	echo next >"$scratch/$1.in"
}

# NAME COMMAND...: start(), with a pipe as its input.
start_reading() {
	name=$1
	shift
	start "$name" sh -c 'input=$1; shift; exec "$@" <"$input" 8<&- 9<&-' sh "$scratch/$name.in" "$@"
}

# alone: on the first one
printf 'begin\nend\n' | $follow 1 0 >"$scratch/alone.out" 2>"$scratch/alone.err" || fail "alone: exit code $?"
results_ok alone
said alone "job on 1" 1 || fail "without sbeet it is not the first GPU"

start_daemon --policy "$policy" --profile-dir "$scratch/profiles"
export CUDA_VISIBLE_DEVICES=0,1
mkfifo "$scratch/blocks.in" "$scratch/follows.in"
exec 8<>"$scratch/blocks.in" 9<>"$scratch/follows.in"
start_reading follows $follow 0 1
follows=$pid
for gpu in 0 1 0; do
	SBEET_WHOLE=1 start_reading blocks "$apps/following" "$gpu"
	blocks=$pid
	tell blocks
	until_true "a program has GPU $gpu" said blocks "job on $gpu" 1
	ended=$(grep -c ended "$scratch/follows.out")
	on_other=$(grep -cx "job on $((1 - gpu))" "$scratch/follows.out")
	tell follows
	until_true "the other program's job is where it can be" \
		said follows "job on $((1 - gpu))" $((on_other + 1))
	"$ctl" job list --json=short >"$scratch/jobs.out"
	runs_on blocks "$gpu" && runs_on follows $((1 - gpu)) || fail "job list says another GPU"
	tell follows
	until_true "its job ends" said follows ended $((ended + 1))
	tell blocks
	until_true "the first one's job ends" said blocks ended 1
	exec 8>&-
	ended_well blocks "$blocks"
	exec 8<>"$scratch/blocks.in"
done
exec 9>&-
ended_well follows "$follows"
"$ctl" task history follows --columns gpus --no-legend >"$scratch/history.out" || fail "no history"
said history 0,1 1 || fail "the history says other GPUs"
"$ctl" task history follows --json=short >"$scratch/history.json" || fail "no history in JSON"
grep -q '"gpus":\[0,1\]' "$scratch/history.json" || fail "JSON of the history says other GPUs"

# What is no GPU of the program is refused, and says so.
mkfifo "$scratch/refused.in"
exec 9<>"$scratch/refused.in"
start_reading refused $follow 0 7
tell refused
tell refused
until_true "the job is refused" grep -q "does not see" "$scratch/refused.err"
exec 9>&-
wait "$pid"
grep -q "GPU 7, which this program does not see" "$scratch/refused.err" || fail "nobody says that GPU 7 is not there"
if [ $# -gt 2 ]; then
	grep -q "ValueError: no job can run on GPUs \[0, 7\]" "$scratch/refused.err" || fail "Python says nothing"
else
	said refused "job on -1" 1 || fail "a job is on GPU 7"
fi
all_is_free
stop_daemon
say "ok"
