#!/bin/sh
# Runs on a machine with a GPU, MPS, Python and PyTorch, in the folder that bundle.sh made: what the shim
# costs ResNet-50 inference, two programs on halves of the GPU against each alone on the same half and
# against MPS alone, and how soon jobs start and SMs come back, by the daemon's times.
#
# A line for each program that ran, as JSON, in $OUT/speed.txt (stdout, too).
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
short=${SECONDS_SOLO:-3}
long=${SECONDS_PAIR:-5}

# LABEL: a line of the results.
tell() {
	while read -r line; do
		echo "$1 $line" | tee -a "$out/speed.txt"
	done
}

# LABEL HOW MODE SECONDS [READY GO]
run_one() {
	label=$1
	how=$2
	shift 2
	STARTED_NS=$(date +%s%N)
	export STARTED_NS
	case $how in
	bare) timeout 100 python3 "$here/frameworks/speed.py" "$@" ;;
	shim) managed --task "$label-$1" -- python3 "$here/frameworks/speed.py" "$@" ;;
	esac 2>"$scratch/err-$label-$1" | tell "$label"
	grep -v Warning "$scratch/err-$label-$1" | tail -n 3 >&2
}

# LABEL HOW MODE MODE: both at the same time.
run_pair() {
	rm -f "$scratch"/ready-* "$scratch/go"
	run_one "$1" "$2" "$3" "$long" "$scratch/ready-a" "$scratch/go" &
	first=$!
	run_one "$1" "$2" "$4" "$long" "$scratch/ready-b" "$scratch/go" &
	second=$!
	until [ -e "$scratch/ready-a" ] && [ -e "$scratch/ready-b" ]; do
		if ! kill -0 "$first" || ! kill -0 "$second"; then
			break
		fi
		sleep 0.05
	done 2>/dev/null
	: >"$scratch/go"
	wait "$first" "$second"
}

# LABEL: quantiles of what the trace of this part says. Waited: from a job's request to its grant.
# Handed on: from a job's end to the next grant, where a job asked before that end.
times_of() {
	tool "$ctl" trace export --format csv "$scratch/trace-$1" | tail -n +2 |
		sed 's/"[^"]*"/x/g' >"$scratch/jobs-$1.csv"
	awk -F, '$12 != "" && $11 != "" { print ($12 - $11) / 1000 }' "$scratch/jobs-$1.csv" |
		quantiles "jobs of $1: us from request to grant"
	sort -t, -k12,12n "$scratch/jobs-$1.csv" | awk -F, '$12 != "" && $13 != "" {
			for (i = n; i > n - 4 && i > 0; i--) {
				if ($11 < end[i] && $12 >= end[i]) { print ($12 - end[i]) / 1000; break }
			}
			end[++n] = $13
		}' | quantiles "jobs of $1: us from a job's last operation to the next one's grant"
}

quantiles() {
	sort -n | awk -v what="$1" '{ v[NR] = $1 } END {
		if (NR) printf "%s: n %d, p50 %.1f, p99 %.1f, max %.1f\n", what, NR, v[int((NR + 1) / 2)],
			v[int((NR * 99 + 99) / 100)], v[NR] }' | tee -a "$out/speed.txt"
}

: >"$out/speed.txt"
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader | tell gpu
start_mps

# What the shim costs a program that has the GPU for itself, in turns.
start_daemon --policy fcfs --sharing mps
record_trace "$scratch/trace-fcfs"
for _ in 1 2 3; do
	run_one bare bare infer "$short"
	run_one fcfs shim infer "$short"
done
stop_trace
times_of fcfs

# Two jobs in turns on the whole GPU: how soon the next one has it.
record_trace "$scratch/trace-turns"
run_pair turns shim infer train
stop_trace
times_of turns
stop_daemon

start_daemon --policy even --sharing mps
record_trace "$scratch/trace-halves"
for mode in infer train copy multiply; do
	run_one half shim "$mode" "$short"
done
stop_trace
times_of halves
run_pair halves shim infer train
run_pair halves shim copy multiply
run_pair halves shim copy copy
run_pair halves shim multiply multiply
tool "$ctl" status >"$out/status.txt"
stop_daemon
run_pair mps bare infer train
run_pair mps bare copy multiply

# The daemon's own part, with nothing of a GPU in it.
if [ -x "$here/bin/bench-grant" ]; then
	SBEETD="$here/bin/sbeetd" tool timeout 40 "$here/bin/bench-grant" 5000 | tell grant
fi
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps -czf "$out/speed.tar.gz" .
