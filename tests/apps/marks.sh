#!/bin/sh
# Examples that mark their jobs, in C and in Python, on the simulated GPU: each frame is a job, and
# without sbeet marks do nothing.
#
# usage: marks.sh POLICY [PYTHON MODULES]  PYTHON: the example in Python, with the folder of sbeet.py
. "$(dirname "$0")/lib.sh"
here=$(dirname "$0")

export SIMGPU=32:mps
policy=$1
if [ $# -gt 1 ]; then
	export PYTHONPATH="$3" PYTHONDONTWRITEBYTECODE=1
	set -- "$2" "$here/marked.py" "$here/ptx/vecadd.ptx" 5
else
	set -- "$apps/marked" --frames 5 --json
fi

"$@" >"$scratch/alone.out" 2>"$scratch/alone.err" || fail "alone: exit code $?"
results_ok alone

start_daemon --policy "$policy"
export SBEET_JOB=marks
start marked "$@"
ended_well marked "$pid"
all_is_free
status_is done "" -eq 5 || fail "five frames are not five jobs"
status_is launched "" -eq 10 || fail "a launch is missing"

export SBEET_JOB=auto
start unmarked "$@"
ended_well unmarked "$pid"
all_is_free
# A wait ends a job there, and each frame has two; a slow machine may split more.
status_is done "" -ge 15 || fail "five frames without --job=marks are not ten jobs at least"
stop_daemon
say "ok"
