#!/bin/sh
# nvtx.sh POLICY PROGRAM OTHER: ranges of NVTX are the jobs of a program that knows nothing of sbeet, on the simulated
# GPU. PROGRAM: driver/ranges.c, compiled with some header of NVTX. OTHER: a program that does not use NVTX.
. "$(dirname "$0")/lib.sh"

export SIMGPU=32:mps
policy=$1
program=$2
other=$3

# FORM: the program, without --json's line in the way
ranges() {
	RANGES=$1 "$program" --frames 5 --json
}

done_before=0
# NAME: how many jobs there were since the last question
jobs_since() {
	all_is_free
	now=$("$ask" "$ctl" done "") || fail "$1: no status"
	jobs=$((now - done_before))
	done_before=$now
}

# FORM MARK JOBS: five frames of that form are so many jobs, under that --mark
frames_are() {
	RANGES=$1 "$ctl" run --task "$1" --mark "$2" -- "$program" --frames 5 --json >"$scratch/$1.out" \
		2>"$scratch/$1.err" || fail "$1, $2: exit code $?"
	results_ok "$1"
	jobs_since "$1"
	[ "$jobs" -eq "$3" ] || fail "RANGES=$1 under --mark $2: $jobs jobs, expected $3"
}

for form in push start domain wide numbered odd none; do
	ranges $form >"$scratch/alone.out" 2>"$scratch/alone.err" || fail "alone, $form: exit code $?"
	results_ok alone
done

start_daemon --policy "$policy"

for form in push start domain wide; do
	frames_are $form nvtx:frame 5
	[ ! -s "$scratch/$form.err" ] || fail "$form: something is said: $(cat "$scratch/$form.err")"
done
frames_are domain nvtx:frame@camera 5
frames_are numbered 'nvtx:frame*' 5
frames_are odd nvtx:frame 5

# Not one range of that name: no job, and the program says so at its end.
unseen="No NVTX range was seen that SBEET_MARK="
frames_are push nvtx:step 0
grep -qF "$unseen'nvtx:step' names, so this program had no jobs; its first range was 'frame'" "$scratch/push.err" ||
	fail "nobody says that no range was seen: $(cat "$scratch/push.err")"
frames_are push nvtx:frame@camera 0
frames_are none nvtx:frame 0
grep -qF "$unseen'nvtx:frame' names, so this program had no jobs: it does not use NVTX 3" "$scratch/none.err" ||
	fail "nobody says that NVTX is not used: $(cat "$scratch/none.err")"
"$ctl" run --mark nvtx:frame -- "$other" --frames 2 --json >"$scratch/other.out" 2>"$scratch/other.err" || fail "other: $?"
grep -qF "it does not use NVTX 3" "$scratch/other.err" || fail "nobody says that NVTX is not used: $(cat "$scratch/other.err")"
jobs_since other
"$ctl" run --mark nvtx:frame -- sh -c : 2>"$scratch/sh.err" || fail "sh: $?"
[ ! -s "$scratch/sh.err" ] || fail "a program that does not use CUDA says something: $(cat "$scratch/sh.err")"

# Another tool has the ranges, which stays so: jobs are made as ever.
NVTX_INJECTION64_PATH=/opt/tool/libtool.so RANGES=push "$ctl" run --mark nvtx:frame -- "$program" --frames 5 --json \
	>"$scratch/tool.out" 2>"$scratch/tool.err" || fail "tool: exit code $?"
results_ok tool
grep -qF "NVTX ranges go to another tool, which NVTX_INJECTION64_PATH names (/opt/tool/libtool.so)" "$scratch/tool.err" ||
	fail "nobody says that there is another tool: $(cat "$scratch/tool.err")"
[ "$(grep -c "another tool" "$scratch/tool.err")" -eq 1 ] || fail "it is said more than once"
jobs_since tool
[ "$jobs" -ge 10 ] || fail "another tool: $jobs jobs, expected those that waits make"

# Its library, behind that of a sanitizer where there is one.
preload=$("$ctl" run --dry-run -- "$program" | sed -n 's/^LD_PRELOAD=\([^ ]*\) .*/\1/p')
[ -n "$preload" ] || fail "what is preloaded is not known"

# Variables do what the option does, also across shells that have an environment of their own.
for shell in sh bash; do
	command -v $shell >/dev/null || continue
	LD_PRELOAD=$preload SBEET_MARK=nvtx:frame $shell -c "'$program' --frames 5 --json && :" \
		>"$scratch/variable.out" 2>"$scratch/variable.err" || fail "by variables, $shell: exit code $?"
	results_ok variable
	jobs_since variable
	[ "$jobs" -eq 5 ] || fail "by variables, $shell: $jobs jobs, expected 5"
done

# A child that is not preloaded does not become half managed by NVTX alone.
"$ctl" run --mark nvtx:frame -- env -u LD_PRELOAD "$program" --frames 5 --json >"$scratch/child.out" 2>"$scratch/child.err" ||
	fail "without LD_PRELOAD: exit code $?"
results_ok child
jobs_since child
[ "$jobs" -eq 0 ] || fail "without LD_PRELOAD: $jobs jobs"
[ ! -s "$scratch/child.err" ] || fail "without LD_PRELOAD something is said: $(cat "$scratch/child.err")"

# Marks tell the release of the next job where jobs are made as ever.
RANGES=push "$ctl" run --mark nvtx:frame --job auto -- "$program" --frames 5 --json >"$scratch/auto.out" \
	2>"$scratch/auto.err" || fail "auto: exit code $?"
results_ok auto
jobs_since auto
[ "$jobs" -ge 10 ] || fail "--job auto: $jobs jobs, expected those that waits make"

"$ctl" run --mark frame -- "$program" 2>"$scratch/bad.err" && fail "--mark frame is taken"
grep -q "expected nvtx:NAME" "$scratch/bad.err" || fail "nobody says what a mark is: $(cat "$scratch/bad.err")"
SBEET_MARK=frame LD_PRELOAD=$preload "$program" --frames 5 --json >"$scratch/nonsense.out" \
	2>"$scratch/nonsense.err" || fail "nonsense: exit code $?"
grep -q "SBEET_MARK='frame' is not nvtx:NAME or nvtx:NAME@DOMAIN, ignoring" "$scratch/nonsense.err" ||
	fail "nobody says what a mark is: $(cat "$scratch/nonsense.err")"
all_is_free
stop_daemon
say "ok"
