#!/bin/sh
# sbeetctl gpu examine on simulated GPUs, which schedule by the rules of the TX2 paper: it must find
# that they do, by the GPU's own clock alone, and how they share programs. The example of sbeetctl(1)
# is run here, one study at a time.
# Usage: test-examine.sh SBEETCTL IS-JSON SIMGPU-FOLDER
sbeetctl=$1 is_json=$2 simgpu=$3
scratch=$(mktemp -d)
export SIMGPU_DIR="$scratch/none" LD_LIBRARY_PATH="$simgpu"
trap 'stop; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 1

stop() {
	for SIMGPU_DIR in "$scratch"/gpu-*; do
		"$simgpu/simgpud" --stop >/dev/null 2>&1
	done
}

wrong() {
	echo "$*" >&2
	cat out err >&2 2>/dev/null
	exit 1
}

# GPU: another one, beside those that there are
simulate() {
	SIMGPU_DIR=$scratch/gpu-$1
	mkdir "$SIMGPU_DIR"
	SIMGPU=$1 "$simgpu/simgpud" || exit 1
}

# STATUS ARGUMENTS...
ends() {
	status=$1
	shift
	"$sbeetctl" gpu examine --time-limit 2min "$@" >out 2>err
	is=$?
	[ "$is" -eq "$status" ] || wrong "gpu examine $*: ended with $is, not $status"
}

has() {
	grep -q -e "$1" out err || wrong "'$1' is missing"
}

# Without a GPU, and with one that is not there.
LD_LIBRARY_PATH= ends 1 rules
has "cannot load CUDA's driver\|cuInit\|cannot start"
simulate 2@1000khz
ends 1 rules -g 3
has "there is no GPU 3: CUDA knows 1"
ends 2 colours
has "'colours' is not a study: expected rules, memory or sharing"

# Every rule holds, and each is tested. Processes are preempted.
ends 0 rules -o report
for rule in G2 X1 R2 R3 C1 C2 N1 N2 A1 A2; do
	has "^$rule  *holds "
done
has "Two processes: processes preempt each other"
for i in 1 2 3 4 5 6 7 8; do
	grep -q "</svg>" "report/rules-$i.svg" || wrong "report/rules-$i.svg is no picture"
	grep -q "rules-$i.svg" report/report.md || wrong "report.md does not show it"
done
grep -q "K1:4" report/rules-1.svg || wrong "blocks have no names in the picture"
grep -q "^X1 " report/report.md || wrong "report.md has no rules"

# The TX1 paper's studies.
ends 0 memory sharing --size 1 --steps 200 --runs 2 -o report --json=short
"$is_json" <out || wrong "no JSON"
has '"walk": *"in order", *"memory": *"zero-copy"\|"walk":"in order"'
has '"way": *"preempted"'
for name in walk-random walk-in-order sharing-total sharing-kernel sharing-block; do
	grep -q "</svg>" "report/$name.svg" || wrong "report/$name.svg is no picture"
done

# A configuration of the cuda_scheduling_examiner: in one stream K2 begins when K1 has ended.
cat >config.json <<'END'
{"name": "mine", "max_iterations": 2, "max_time": 0, "cuda_device": 0, "pin_cpus": true, "benchmarks": [
 {"filename": "./bin/timer_spin.so", "label": "spin", "thread_count": 1024, "block_count": 4,
  "data_size": 0, "additional_info": 2000000},
 {"filename": "./bin/multikernel.so", "label": "both", "thread_count": 0, "block_count": 0, "data_size": 0,
  "release_time": 0.001, "additional_info": [
  {"kernel_label": "K1", "duration": 2000000, "block_count": 2, "thread_count": 512, "copy_out_count": 4096},
  {"kernel_label": "K2", "duration": 1000000, "block_count": 1, "thread_count": 256}]}]}
END
ends 0 -c config.json -o report
has "^spin  *spin  *1 "
has "^both  *K1 out  *0 "
awk '$1 == "both" && $2 == "K1" && $3 != "out" { end[$3] = $6 }
	$1 == "both" && $2 == "K2" { n++; if ($5 < end[$3]) exit 1 }
	END { exit n != 2 }' out || wrong "K2 began before K1 had ended"
grep -q "</svg>" report/experiment.svg || wrong "no picture of the experiment"
ends 0 -c - --json=short <config.json
"$is_json" <out || wrong "no JSON"
ends 2 rules -c config.json
has "leave 'rules' out"
sed 's/timer_spin/mandelbrot/' config.json >other.json
ends 1 -c other.json
has "other.json:2: benchmarks\[0\].filename: expected timer_spin.so"

# Under MPS, processes run side by side.
simulate 2@1000khz:mps
ends 0 rules
has "Two processes: blocks of two processes run side by side"
