#!/bin/sh
# Runs on a machine with a GPU, MPS and nvcc, in the folder that bundle.sh made: measures what the GPU
# draws under arithmetic and under copies at some numbers of SMs, predicts from that what it draws at
# other numbers and with both side by side, and compares. A table on stdout and in $OUT/power.txt.
set -u

here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
scratch=$(mktemp -d)
mkdir -p "$out" "$scratch/profiles" "$scratch/mps"
export SBEET_RUNTIME_DIR="$scratch/run" SBEET_SHIM="$here/lib/libsbeet.so"
export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$scratch/mps"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
mkdir -m 700 "$SBEET_RUNTIME_DIR"
ctl=$here/bin/sbeetctl
daemon=

trap '[ -z "$daemon" ] || kill "$daemon"; echo quit | nvidia-cuda-mps-control; rm -rf "$scratch"' EXIT

nvcc -O2 -arch=native -o "$scratch/power" "$here/power.cu" -ldl || exit 1
nvidia-cuda-mps-control -d || exit 1
tries=0
until "$scratch/power" compute 0.1 >/dev/null 2>&1; do # MPS's server comes with the first program
	tries=$((tries + 1))
	[ "$tries" -le 50 ] || exit 1
	sleep 0.2
done

# OPTIONS...
start_daemon() {
	"$here/bin/sbeetd" --sharing mps --profile-dir "$scratch/profiles" "$@" >>"$out/sbeetd.log" 2>&1 &
	daemon=$!
	until "$ctl" status >/dev/null 2>&1; do
		kill -0 "$daemon" || exit 1
		sleep 0.1
	done
}

stop_daemon() {
	kill -TERM "$daemon"
	wait "$daemon"
	daemon=
}

# TASK NAME SMS: measured rows, "SMS WATTS", of watts in all. (Static power differs by some watts from
# minute to minute, as the GPU warms; what is drawn in all, less.)
measure() {
	"$ctl" profile run -q --task "$1" --sms "$3" --runs 4 --power-time 1500ms --json=short \
		-o "$scratch/$2.json" -- "$scratch/power" "$1" >"$out/$2.json" 2>>"$out/profile.log"
	tr '{' '\n' <"$out/$2.json" | sed -n 's/^"sms":\([0-9]*\).*/\1/p' >"$scratch/sms"
	grep -o '"gpu_w":[0-9.]*' "$out/$2.json" | cut -d: -f2 >"$scratch/watts"
	paste -d' ' "$scratch/sms" "$scratch/watts" >"$scratch/$2.rows"
}

# NAME SMS: watts by the straight line between the rows beside.
predict() {
	awk -v m="$2" '{ if ($1 <= m) { a = $1; wa = $2 } else if (!b) { b = $1; wb = $2 } }
		END { print b ? wa + (wb - wa) * (m - a) / (b - a) : wa }' "$scratch/$1.rows"
}

start_daemon --policy fcfs
"$ctl" gpu calibrate -q --sms 16,48,80,112,132 --runs 4 --power-time 1500ms --json=short \
	-o "$scratch/gpu.json" -- "$scratch/power" compute >"$out/gpu.json" 2>>"$out/profile.log"
static=$(grep -o '"static_w":[0-9.]*' "$out/gpu.json" | head -n 1 | cut -d: -f2)
echo "static power: ${static:-?} W" | tee "$out/power.txt"
for task in compute memory; do
	measure $task $task 16,32,64,96,132
	measure $task $task-else 48,80,112
	while read -r sms watts; do
		echo "$task $sms $watts $(predict $task "$sms")"
	done <"$scratch/$task-else.rows" | awk '{
		printf "%-8s on %3d SMs: %6.1f W measured, %6.1f W predicted, %+.1f %%\n", $1, $2, $3, $4,
			100 * ($4 - $3) / $3 }' | tee -a "$out/power.txt"
done
stop_daemon

start_daemon --policy even
"$ctl" run --task compute -- "$scratch/power" compute 8 >"$scratch/one" 2>>"$out/profile.log" &
one=$!
"$ctl" run --task memory -- "$scratch/power" memory 8 >"$scratch/two" 2>>"$out/profile.log" &
two=$!
sleep 4
"$ctl" job list --json >"$out/together.json"
wait "$one" "$two"
sets=$(grep -o '"sms":"[^"]*"' "$out/together.json" | tr '\n' ' ')
both=$(cat "$scratch/one" "$scratch/two" | awk '{ s += $1; n++ } END { print n ? s / n : 0 }')
limit=$(nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits | head -n 1)
echo "$both $(predict compute 64) $(predict memory 68) ${static:-0} ${limit:-0}" | awk -v sets="$sets" '{
	by = $2 + $3 - $4
	if ($5 > 0 && by > $5) { by = $5 } # the GPU slows down rather than draw more
	printf "together (%s): %.1f W measured, %.1f W predicted, %+.1f %%\n", sets, $1, by,
		100 * (by - $1) / $1 }' | tee -a "$out/power.txt"
stop_daemon
