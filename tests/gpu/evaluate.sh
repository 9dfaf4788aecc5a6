#!/bin/sh
# Runs on a machine with a GPU (or on the simulated one), in the folder that bundle.sh made: random
# periodic task sets (Table 3.5) of sample kernels, the same ones under each way of sharing the GPU:
# without a manager (with MPS and without), fcfs, rm, stgm, sbeet, lookahead.
#
# usage: evaluate.sh FOLDER     has the profiles and evaluate.csv; what is there is not measured again
#
# BUDGET_S: begin no cell after so many seconds (500). SETS, TASKS, WINDOW_S, LEAD_S (before it, in which jobs
# run and don't count), UTILISATIONS, COLUMNS, SCALE (0: tiny kernels), SMS, STEP as below. TRACES=yes: keep
# what sbeetd did as trace-COLUMN-U-SET, the task set as tasks-U-SET. The CSV has a line a cell: times are of
# responses, in ms, the p99 that of the worst task; energies in J, of the whole window and a completed job.
# Exit 1 if a result was wrong or a task failed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
mkdir -p "$1" || exit 2
folder=$(cd "$1" && pwd)
csv=$folder/evaluate.csv
sms=${SMS:-16 32 48 64 80 96 112 132}
step=${STEP:-16}
scale=${SCALE:-100}
window_s=${WINDOW_S:-2}
lead_s=${LEAD_S:-1}
until=$(($(date +%s) + ${BUDGET_S:-500}))
failed=0
evaluate=$here/bin/evaluate
periodic=$here/bin/periodic

# Measured times as the profiles of a file for sbeetd and of a scenario for the task sets. Power above
# static, as measured on as many SMs. The worst copies of all SM counts. Fewer SMs take at least as long
# as more: where a GPU says something else, the longer time holds for both.
profiles() {
	tac "$folder/measured.txt" | awk -v gpu="$gpu" -v static="$static_w" '
	function ns(x) { return sprintf("\"%dns\"", x > 0 ? x : 1) }
	{
		if (!($1 in points)) order[n++] = $1
		watts = $7 > static ? $7 - static : 0.001
		if ($5 > worst[$1]) worst[$1] = $5
		points[$1] = sprintf("{\"sms\": %d, \"best\": %s, \"worst\": %s, \"watts\": %.3f}", $2, \
			ns($4), ns(worst[$1]), watts) (points[$1] ? ", " : "") points[$1]
		if ($3 > into[$1]) into[$1] = $3
		if ($6 > from[$1]) from[$1] = $6
	}
	END {
		for (i = n - 1; i >= 0; i--)
			printf "%s{\"name\": \"%s\", \"on\": {\"%s\": {\"copy_in\": %s, \"copy_out\": %s, " \
				"\"points\": [%s]}}}", i < n - 1 ? ",\n" : "", order[i], gpu, ns(into[order[i]]),
				ns(from[order[i]]), points[order[i]]
	}'
}

measure_profiles() {
	# With a context, but nothing to do: a GPU that nobody uses takes less. It leaves at end of file.
	mkfifo "$scratch/idle"
	"$periodic" vecadd "$scale" 1000000 1000000 0 1000000 <"$scratch/idle" >"$scratch/idle.out" &
	exec 8>"$scratch/idle"
	tries=0
	until grep -q ready "$scratch/idle.out" || [ $tries -gt 600 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	before=$("$evaluate" meter || echo 0)
	start=$("$evaluate" now)
	sleep 0.3
	after=$("$evaluate" meter || echo 0)
	static_w=$(echo "$before $after $start $("$evaluate" now)" |
		awk '{ printf "%.1f", ($2 - $1) * 1e6 / ($4 - $3) }')
	exec 8>&-
	wait $!
	# shellcheck disable=SC2086 # several numbers
	"$periodic" profile "$scale" "${RUNS:-20}" "${POWER_MS:-300}" $sms >"$folder/measured.txt" || exit 1
	model="\"static_w\": $static_w, \"idle_w_per_sm\": 0"
	mkdir -p "$folder/profiles"
	printf '{"gpus": [{"name": "%s", "step": %d, %s}],\n"profiles": [%s]}\n' "$gpu" "${GRANULE:-8}" \
		"$model" "$(profiles)" >"$folder/profiles/measured.json"
	printf '{"gpus": [{"name": "%s", "sms": %d, %s}],\n"profiles": [%s]}\n' "$gpu" "${sms##* }" \
		"$model" "$(profiles)" >"$folder/scenario.json"
}

# COLUMN I PROFILE PERIOD DEADLINE OFFSET PRIORITY: a task, which then waits for the start.
start_task() {
	column=$1 i=$2 name=$3
	set -- "$4" "$5" "$6" "$7"
	command="$periodic $name $scale $1 $2 $3 $((window_s * 1000000000)) $((lead_s * 1000000000))"
	mkfifo "$scratch/start-$i"
	case $column in
	mps | none) env $command ;;
	*) managed --task "$name" --class realtime --period "$1ns" --deadline "$2ns" \
		--priority "$4" -- $command ;;
	esac <"$scratch/start-$i" >"$scratch/task-$i" 2>"$scratch/task-$i.err" &
	pids="$pids $!"
}

all_ready() {
	[ "$(cat "$scratch"/task-*[0-9] 2>/dev/null | grep -c ready)" -eq "$1" ]
}

# COLUMN U SEED
run_cell() {
	rm -f "$scratch"/start-* "$scratch"/task-*
	"$evaluate" tasks "$folder/scenario.json" "$step" "${TASKS:-6}" "$2" "$3" >"$scratch/tasks" || exit 1
	pids=
	n=0
	while read -r name period deadline offset priority; do
		n=$((n + 1))
		start_task "$1" "$n" "$name" "$period" "$deadline" "$offset" "$priority"
	done <"$scratch/tasks"
	i=0
	while [ $i -lt "$n" ]; do
		i=$((i + 1))
		(tries=0
		until all_ready "$n" || [ $tries -gt 1200 ]; do
			sleep 0.05
			tries=$((tries + 1))
		done
		until [ -s "$scratch/begin" ]; do sleep 0.01; done
		cat "$scratch/begin") >"$scratch/start-$i" &
	done
	tries=0
	until all_ready "$n" || [ $tries -gt 1200 ]; do
		sleep 0.05
		tries=$((tries + 1))
	done
	[ -z "${TRACES:-}" ] || [ -z "$daemon" ] || record_trace "$folder/trace-$1-$2-$3"
	"$evaluate" now | awk '{ printf "%.0f\n", $1 + 1e8 }' >"$scratch/begin.new"
	mv "$scratch/begin.new" "$scratch/begin"
	sleep "$(echo "$lead_s" | awk '{ print $1 + 0.1 }')"
	before=$("$evaluate" meter || echo 0)
	for pid in $pids; do
		wait "$pid" || failed=1
	done
	rm "$scratch/begin"
	after=$("$evaluate" meter || echo 0)
	[ -z "$recorder" ] || stop_trace
	[ -z "${TRACES:-}" ] || cp "$scratch/tasks" "$folder/tasks-$2-$3"
	cat "$scratch"/task-*[0-9] | awk -v head="$1,$2,$3,$n,$window_s" -v mj=$((after - before)) '
		NF == 7 { r += $1; c += $2; m += $3; sum += $4 * $2; if ($5 > p) p = $5; if ($6 > x) x = $6; k++ }
		END { if (k > 0) printf "%s,%d,%d,%d,%.3f,%.3f,%.3f,%.3f,%.4f\n", head, r, c, m,
			c ? sum / c / 1e6 : 0, p / 1e6, x / 1e6, mj / 1e3, c ? mj / 1e3 / c : 0 }' >>"$csv"
	cat "$scratch"/task-*.err >>"$folder/errors.txt"
}

# COLUMN SEED: all utilisations, as far as they are not there.
run_column() {
	for u in ${UTILISATIONS:-0.4 0.6 0.8 1.0 1.2 1.4 1.6}; do
		if grep -q "^$1,$u,$2," "$csv" || [ "$(date +%s)" -ge "$until" ]; then
			continue
		fi
		case $1 in
		none | mps) ;;
		*) [ -n "$daemon" ] || start_daemon --policy "$1" --sharing mps --profile-dir "$folder/profiles" ;;
		esac
		run_cell "$1" "$u" "$2"
	done
	[ -z "$daemon" ] || stop_daemon
}

gpu=${GPU_NAME:-$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)}
[ -s "$folder/scenario.json" ] || measure_profiles
[ -s "$csv" ] || echo "column,utilisation,set,tasks,window_s,released,completed,missed,mean_ms,p99_ms,max_ms,energy_j,j_per_job" >"$csv"
set=0
while [ $set -lt "${SETS:-3}" ] && [ "$(date +%s)" -lt "$until" ]; do
	set=$((set + 1))
	for column in ${COLUMNS:-none mps fcfs rm stgm sbeet lookahead}; do
		[ "$column" = none ] || [ "$mps" = true ] || start_mps
		run_column "$column" $set
	done
	stop_mps
done
"$evaluate" plot "$csv" >"$folder/evaluate.svg" || failed=1
[ $failed -eq 0 ]
