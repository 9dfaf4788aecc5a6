#!/bin/sh
# What is said of programs after their end, by `run --summary` and `task history`: also of one that was
# killed, and where sbeetd was started again meanwhile.
#
# usage: summary.sh counts POLICY | frames POLICY | killed POLICY | restarted SIGNAL POLICY | children | unreached
. "$(dirname "$0")/lib.sh"

export SIMGPU=16:mps

# OPTIONS...: a command that ends with a summary as JSON in a file.
summed() {
	"$ctl" run --summary="$scratch/summary.json" --json=short "$@" \
		>"$scratch/summed.out" 2>"$scratch/summed.err"
}

# KEY: its number in the summary of one task.
told() {
	sed -n "s/.*\"$1\":\\([0-9]*\\).*/\\1/p" "$scratch/summary.json"
}

says() { # TEXT
	grep -qF -e "$1" "$scratch/summary.json" || fail "no $1 in $(cat "$scratch/summary.json")"
}

# TASK COLUMN: of its last run.
history() {
	"$ctl" task history "$1" --columns="$2" --no-legend | tail -n 1 | tr -d ' '
}

ended_as() { # TASK HOW
	[ "$(history "$1" ended)" = "$2" ]
}

in_order() {
	[ "$(told p50_response_ns)" -gt 0 ] || fail "no median"
	[ "$(told p50_response_ns)" -le "$(told p99_response_ns)" ] || fail "p50 above p99"
	[ "$(told p99_response_ns)" -le "$(told max_response_ns)" ] || fail "p99 above the maximum"
}

# Every job has missed a deadline of 1 us; what the program launched is what was counted.
counts() { # POLICY
	start_daemon --policy "$1"
	summed --task camera --deadline 1us -- "$apps/hotspot" --frames 6 --json ||
		fail "exit code $?"
	results_ok summed
	says '"task":"camera"'
	says '"program":"hotspot"'
	says '"exit_code":0'
	says '"ended":"exit"'
	says '"processes":1'
	[ "$(told jobs)" -gt 0 ] || fail "no jobs"
	[ "$(told misses)" -eq "$(told jobs)" ] || fail "$(told misses) of $(told jobs) jobs late"
	[ "$(told launches)" -eq "$(launches_of summed)" ] ||
		fail "$(told launches) launches of $(launches_of summed)"
	[ "$(told gpu_ns)" -gt 0 ] || fail "no time on the GPU"
	in_order
	[ "$(history camera jobs)" = "$(told jobs)" ] || fail "the history counts other jobs"
	"$ctl" run --summary -- "$apps/hotspot" --frames 2 >/dev/null 2>"$scratch/text.err"
	for figure in jobs misses "started late" "response .*p50" "response .*p99" "response .*max" \
		"GPU time"; do
		grep -q "$figure" "$scratch/text.err" || fail "the text has no $figure"
	done
	stop_daemon
	start_daemon --policy "$1"
	[ "$(history camera ended)" = exit ] || fail "the history is lost with sbeetd"
	[ "$(history camera jobs)" = "$(told jobs)" ] || fail "the history has changed"
	[ "$("$ctl" task history --no-legend | wc -l)" -eq 2 ] || fail "there must be two runs"
	all_is_free
	stop_daemon
}

# A frame with a synchronisation in its middle is two jobs: the summary, status and explain say so. With
# marks, or without a synchronisation, it is one, and they say nothing.
frames() { # POLICY
	start_daemon --policy "$1"
	summed --task two --period 500ms -- "$apps/marked" --period 500ms --frames 6 --json ||
		fail "exit code $?"
	[ "$(told jobs_within_period)" -ge 4 ] || fail "$(told jobs_within_period) jobs within a period"
	summed --task one --period 500ms --job marks -- "$apps/marked" --period 500ms --frames 6 --json ||
		fail "exit code $?"
	[ "$(told jobs)" -eq 6 ] || fail "$(told jobs) marked jobs"
	[ "$(told jobs_within_period)" -eq 0 ] || fail "marked frames are split"
	"$ctl" run --summary --task two --period 500ms -- "$apps/marked" --period 500ms --frames 6 \
		>"$scratch/text.out" 2>"$scratch/text.err" || fail "exit code $?"
	grep -q 'began within the period of another one' "$scratch/text.err" || fail "the text says nothing"
	"$ctl" run --task two --period 500ms -- "$apps/marked" --period 500ms --frames 1000 \
		>/dev/null 2>"$scratch/long.err" &
	pid=$!
	until_true 'status tells of split frames' status_says 'began within the period of another one'
	"$ctl" task explain two >"$scratch/explain.out" || fail "exit code $?"
	grep -q 'mark the frames' "$scratch/explain.out" || fail "explain says nothing"
	kill "$pid"
	wait "$pid"
	stop_daemon
}

status_says() { # TEXT
	"$ctl" status | grep -q -e "$1"
}

has_jobs() { # TASK NUMBER
	[ "$("$ask" "$ctl" jobs "$1")" -ge "$2" ]
}

# A program without end under task "long"; $pid is that of sbeetctl.
start_long() {
	"$ctl" run --summary="$scratch/summary.json" --json=short --task long --log info -- \
		"$apps/hotspot" --frames 1000000 >"$scratch/long.out" 2>"$scratch/long.err" &
	pid=$!
	started="$started $pid"
	until_true "the program has jobs" has_jobs long 5
	program=$("$ctl" session list --columns=pid --no-legend)
	started="$started $program"
}

killed() { # POLICY
	start_daemon --policy "$1"
	start_long
	kill -KILL "$program" || fail "the program does not live"
	wait "$pid"
	code=$?
	[ "$code" -eq 137 ] || fail "exit code $code of a program that was killed"
	says '"signal":9'
	says '"ended":"killed"'
	[ "$(told jobs)" -ge 5 ] || fail "jobs are missing"
	in_order
	until_true "the history says so" ended_as long killed
	all_is_free
	stop_daemon
}

# Jobs of the program under both count, in one run.
restarted() { # SIGNAL POLICY
	start_daemon --policy "$2"
	start_long
	kill -"$1" "$daemon"
	wait "$daemon" 2>/dev/null
	before=$("$SBEET_BUILD/tests/demo/ask" "$ctl" jobs long 2>/dev/null || echo 5)
	start_daemon --policy "$2"
	until_true "the program has jobs again" has_jobs long 3
	kill -TERM "$pid" || fail "sbeetctl does not live"
	wait "$pid"
	code=$?
	[ "$code" -eq 143 ] || fail "exit code $code of a program that was ended"
	says '"signal":15'
	says '"restarted":true'
	says '"processes":1'
	[ "$(told jobs)" -ge 8 ] || fail "the jobs before are missing: $(told jobs)"
	[ "$("$ctl" task history long --no-legend | wc -l)" -eq 1 ] || fail "there must be one run"
	all_is_free
	stop_daemon
}

# Two processes of one task, and one of another, that a shell has started; one program beside counts
# for itself.
children() {
	start_daemon --policy even
	"$ctl" run --task camera -- "$apps/hotspot" --frames 2 >/dev/null || fail "a program failed"
	summed -- sh -c "SBEET_TASK=camera $apps/hotspot --frames 2; SBEET_TASK=camera $apps/hotspot --frames 3
		$apps/matmul --frames 2" || fail "exit code $?"
	says '"task":"camera"'
	says '"processes":2'
	says '"task":"matmul"'
	[ "$("$ctl" task history camera --no-legend | wc -l)" -eq 3 ] || fail "there must be three runs"
	all_is_free
	stop_daemon
}

# The program ends as it would have.
unreached() {
	summed -- sh -c 'exit 7'
	code=$?
	[ "$code" -eq 7 ] || fail "exit code $code"
	grep -q 'there is no summary: cannot reach sbeetd' "$scratch/summed.err" ||
		fail "nothing is said of that"
	"$ctl" run --json -- true 2>"$scratch/usage.err" && fail "--json without --summary"
	grep -q -e --summary "$scratch/usage.err" || fail "it does not say what is missing"
	start_daemon
	summed -- sh -c 'exit 7'
	code=$?
	[ "$code" -eq 7 ] || fail "exit code $code"
	says '"tasks":[]'
	stop_daemon
}

"$@"
