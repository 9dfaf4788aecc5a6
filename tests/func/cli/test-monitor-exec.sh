#!/bin/sh
# test-monitor-exec.sh SBEETCTL SBEETD: `sbeetctl monitor --exec`: what the command is given, that nobody
# waits for it, and that it is said what it was not given.
set -eu
. "$(dirname "$0")/../../lib.sh"

sbeetctl=$1
sbeetd=$2
scratch=$(mktemp -d)
logs="$scratch/out $scratch/err $scratch/given $scratch/log"
daemon=
monitor=
clean_up() {
	for pid in $monitor $daemon; do
		kill "$pid" 2>/dev/null || true
	done
	rm -rf "$scratch"
}
trap clean_up EXIT
cd "$scratch"
export SBEET_RUNTIME_DIR="$scratch" SBEET_EVENT_TASK=stale

# FILE N: it has so many lines.
has_lines() {
	[ -f "$1" ] && [ "$(wc -l <"$1")" -eq "$2" ]
}

# ARGUMENT...: a monitor of GPUs that listens; what it prints is in out and err.
watch() {
	: >out
	: >err
	rm -f given
	"$sbeetctl" monitor --json -k gpu "$@" >out 2>err &
	monitor=$!
	until_true "monitor listens" has_lines out 1 # GPU 0 is there already
}

ends_well() {
	wait "$monitor" || fail "monitor ended with $?"
	monitor=
}

"$sbeetd" --gpus 8 2>log &
daemon=$!
until_true "sbeetd answers" "$sbeetctl" status --json

# The event as it is printed, and the main of it as variables; nothing for what was there before.
watch --number=3 --exec 'cat >>given; echo "$SBEET_EVENT $SBEET_EVENT_GPU ${SBEET_EVENT_TASK-none} $SBEET_EVENT_DROPPED" >>variables' --exec-max=1
"$sbeetctl" gpu drain 0
until_true "the first command has ended" has_lines variables 1
"$sbeetctl" gpu resume 0
ends_well
grep -q '"before":true' out || fail "the GPU is not told"
grep -v '"before":true' out | cmp -s - given || fail "the command is given something else"
printf 'gpu-drain 0 none 0\ngpu-resume 0 none 0\n' | cmp -s - variables || fail "variables: $(cat variables)"

# Two of it hang: all events are told even so, and three are dropped.
mkfifo hold
watch --number=7 --exec-max=2 -x 'echo "$SBEET_EVENT_DROPPED" >>given; cat hold'
for n in 1 2 3 4 5; do
	if [ $((n % 2)) -eq 1 ]; then "$sbeetctl" gpu drain 0; else "$sbeetctl" gpu resume 0; fi
done
until_true "all events are told" has_lines out 6
grep -q 'not given to the command: 2 of it ran already' err || fail "nothing is said of dropped events"
until_true "two commands run" has_lines given 2
exec 3<>hold # both come to their end
exec 3>&-
until_true "the commands have ended" sh -c "! pgrep -P $monitor"
"$sbeetctl" gpu resume 0
until_true "the third command runs" has_lines given 3
: >hold
ends_well
[ "$(paste -sd ' ' given)" = "0 0 3" ] || fail "dropped: $(paste -sd ' ' given)"

# Without lines, of a command that reads nothing and fails.
: >out
"$sbeetctl" monitor -q -d 300ms -k gpu-resume --exec 'exit 3' >out 2>err || fail "monitor fails with its command"
[ ! -s out ] || fail "--quiet prints events"

for wrong in --exec-max=0 --exec-max=33 --exec; do
	code=0
	"$sbeetctl" monitor "$wrong" >out 2>err || code=$?
	[ "$code" -eq 2 ] || fail "$wrong: exit code $code"
done
