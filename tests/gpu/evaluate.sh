#!/bin/sh
# Runs on a machine with a GPU (or on the simulated one), in the folder that bundle.sh made: random
# periodic task sets (Table 3.5) of sample kernels, the same ones under each way of sharing the GPU.
#
# usage: evaluate.sh FOLDER     has the profiles and the results; what is there is not measured again
#
# Columns:  none            without a manager, without MPS
#           mps, mps-N      MPS; with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=N for every task
#           mps-level       MPS; each task's stream priority by its deadline: -5, -4, ...
#           host            MPS; empty kernels and copies of 4 bytes: what the host alone misses
#           fcfs, steer ... that policy of sbeetd, under MPS
#           steer+guard=off ... likewise, with that parameter of the policy; steer+dependent=on: kernels are launched
#                           as dependent ones. COLUMNS="steer steer+dependent=on" has both.
# Families: mixed           kernels and copies of 1 to 8 ms
#           long            kernels with blocks of 1 ms, and networks of 100 small kernels
#
# FOLDER gets evaluate.csv, a line a cell (times are of responses, in ms, the p99 that of the worst task;
# energies in J, of the whole window and a completed job; stolen: CPU time that the hypervisor took in the
# window, of all CPUs); tasks.csv, a line a task (times in ns);
# summary.txt; a plot of each family; the programs' messages as errors.txt.
#
# A set runs under all COLUMNS, one after the other. BUDGET_S: begin no set that would not be done after so
# many seconds (560), going by the one that took longest. SETS (3), FAMILIES, UTILISATIONS, TASKS (6),
# WINDOW_S (2), LEAD_S (3: before the window; jobs run and don't count), SETTLE_S (14: the same for steer,
# which plans while they run, and tries what it has planned; the others do the same at all times). TURNS (1): so often
# each set runs under all of them, in the other order each time; from the second turn on a set's name has two digits more.
# Where few jobs are late a single turn is luck. SEED: of the first set, the next
# has one more (made from the commit that the bundle is of, so nobody has run these sets before). SCALE (0:
# tiny kernels), SMS, STEP, RUNS, POWER_MS: for the profiles. TRACES=yes: keep what sbeetd did as
# trace-FAMILY-COLUMN-U-SET, and the task sets as tasks-FAMILY-U-SET. CAUSES=yes: what the time of each
# missed job went into, as late.csv (in ns, see periodic.c), and the causes as causes.txt; CAUSES=all:
# a line for each job that counts. SECONDS_CSV=yes: a line for each second since the programs began, as
# seconds.csv: jobs released in it, and those of them that were late, also of the lead. PREDICT=yes: each
# cell's energy beside what `sbeetctl simulate` predicts of its task set, policy and profiles, as energy.csv
# and energy.txt (Table 3.6).
# CODE=yes: the kernels are machine code, as those of frameworks, instead of PTX.
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
lead_s=${LEAD_S:-3}
settle_s=${SETTLE_S:-14}
n_tasks=${TASKS:-6}
columns=${COLUMNS:-none mps mps-25 mps-33 mps-50 mps-75 mps-level host fcfs sbeet lookahead steer}
began=$(date +%s)
until=$((began + ${BUDGET_S:-560}))
commit=$(cut -c 1-7 "$here/commit" 2>/dev/null)
seed=${SEED:-$((0x${commit:-1}))}
failed=0
evaluate=$here/bin/evaluate
periodic=$here/bin/periodic
[ "${CODE:-no}" = no ] || export PERIODIC_CODE="$here/code"

say() {
	echo "$(($(date +%s) - began)) s: $*"
}

ns_of() { # SECONDS
	awk -v s="$1" 'BEGIN { printf "%.0f", s * 1e9 }'
}

works_of() { # FAMILY
	case $1 in
	mixed) echo vecadd stream matmul matmul-small hotspot histogram compute compute-long ;;
	long) echo block block-long network network-large ;;
	esac
}

# COPIES: measured times as the profiles of a file for sbeetd (COPIES: one for each task that may do that
# work, named WORK-1 and so on) or of a scenario for the task sets (0). Power above static, as measured on as
# many SMs. Copies need no SMs: of the longest of each count, sbeetd is told the shortest, for what is longer is
# the host's; the task sets are made with the longest. Fewer SMs take at least as long as more: where a GPU
# says something else, the longer time holds for both.
profiles() {
	tac "$folder/measured.txt" | awk -v gpu="$gpu" -v static="$static_w" -v copies="$1" '
	function ns(x) { return sprintf("\"%dns\"", x > 0 ? x : 1) }
	function profile(name, of) {
		printf "%s{\"name\": \"%s\", \"on\": {\"%s\": {\"copy_in\": %s, \"copy_out\": %s, " \
			"\"points\": [%s]}}}", printed++ ? ",\n" : "", name, gpu, ns(into[of]), ns(from[of]), points[of]
	}
	{
		if (!($1 in points)) order[n++] = $1
		watts = $7 > static ? $7 - static : 0.001
		if ($5 > worst[$1]) worst[$1] = $5
		points[$1] = sprintf("{\"sms\": %d, \"best\": %s, \"worst\": %s, \"watts\": %.3f}", $2, \
			ns($4), ns(worst[$1]), watts) (points[$1] ? ", " : "") points[$1]
		if (!into[$1] || (copies ? $3 < into[$1] : $3 > into[$1])) into[$1] = $3
		if (!from[$1] || (copies ? $6 < from[$1] : $6 > from[$1])) from[$1] = $6
	}
	END {
		for (i = n - 1; i >= 0; i--) {
			if (copies == 0) profile(order[i], order[i])
			for (c = 1; c <= copies; c++) profile(order[i] "-" c, order[i])
		}
	}'
}

# Under MPS, as the columns run. With a context, but nothing to do: a GPU that nobody uses takes less power.
measure() {
	say "measuring profiles on $sms SMs"
	echo "exec $periodic vecadd $scale 1000000000 1000000000 900000000 700000000 100000000" |
		tool "$evaluate" cell 100000000 500000000 >"$scratch/idle" || exit 1
	awk '$1 == "energy" && $3 > 0 { w = $2 * 1e6 / $3 } END { printf "%.1f\n", w }' \
		"$scratch/idle" >"$folder/static.txt"
	# shellcheck disable=SC2086 # several numbers
	timeout 300 "$periodic" profile "$scale" "${RUNS:-10}" "${POWER_MS:-100}" $sms >"$scratch/measured.txt" || exit 1
	mv "$scratch/measured.txt" "$folder/measured.txt"
}

write_profiles() {
	static_w=$(cat "$folder/static.txt")
	model="\"static_w\": $static_w, \"idle_w_per_sm\": 0"
	mkdir -p "$folder/profiles"
	printf '{"gpus": [{"name": "%s", "step": %d, %s}],\n"profiles": [%s]}\n' "$gpu" "${GRANULE:-8}" \
		"$model" "$(profiles "$n_tasks")" >"$folder/profiles/measured.json"
	printf '{"gpus": [{"name": "%s", "sms": %d, %s}],\n"profiles": [%s]}\n' "$gpu" "${sms##* }" \
		"$model" "$(profiles 0)" >"$folder/scenario.json"
}

lead_of() { # COLUMN
	case $1 in
	steer*) echo "$settle_s" ;;
	*) echo "$lead_s" ;;
	esac
}

# COLUMN I: the command of the task whose line of $scratch/tasks is on standard input.
command_of() {
	read -r work period deadline offset priority level
	command="$periodic $work $scale $period $deadline $offset $(ns_of "$window_s") $(ns_of "$(lead_of "$1")")"
	plain="env LD_LIBRARY_PATH='$libraries'"
	[ -z "${CAUSES:-}" ] || plain="$plain PERIODIC_LATE='$scratch/late-$2'"
	[ -z "${SECONDS_CSV:-}" ] || plain="$plain PERIODIC_SECONDS='$scratch/seconds-$2'"
	[ "${CAUSES:-}" != all ] || plain="$plain PERIODIC_ALL=1"
	case $1 in
	none | mps) command="$plain $command" ;;
	mps-level) command="$plain PERIODIC_PRIORITY=$level $command" ;;
	mps-*) command="$plain CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=${1#mps-} $command" ;;
	host) command="$plain PERIODIC_EMPTY=1 $command" ;;
	*) command="env LD_LIBRARY_PATH='$tools_path' $ctl run --task $work-$2 --class realtime \
--period ${period}ns --deadline ${deadline}ns --priority $priority -- $plain $command" ;;
	esac
	echo "exec $command 2>>'$scratch/errors'"
}

# FAMILY COLUMN U SEED
run_cell() {
	label="$1 $2 U $3 set $4"
	: >"$scratch/errors"
	rm -f "$scratch"/late-* "$scratch"/seconds-*
	i=0
	while [ $i -lt "$n_tasks" ]; do
		i=$((i + 1))
		sed -n ${i}p "$scratch/tasks" | command_of "$2" $i
	done >"$scratch/commands"
	[ -z "${TRACES:-}" ] || [ -z "$daemon" ] || record_trace "$folder/trace-$1-$2-$3-$4"
	tool "$evaluate" cell "$(ns_of "$(lead_of "$2")")" "$(ns_of "$window_s")" <"$scratch/commands" \
		>"$scratch/cell" 2>>"$scratch/errors" || {
		failed=1
		tail -n 3 "$scratch/errors"
	}
	[ -z "$recorder" ] || stop_trace
	{ echo "$label"; cat "$scratch/errors"; } >>"$folder/errors.txt"
	awk -v head="$1,$2,$3,$4" -v tasks="$n_tasks" -v window="$window_s" -v lines="$folder/tasks.csv" -v cells="$csv" '
		NR == FNR { work[NR] = $1; period[NR] = $2; deadline[NR] = $3; next }
		$1 == "energy" && $3 > 0 { j = $2 / 1e3 * window * 1e9 / $3 }
		$1 == "stolen" { stolen = $2 }
		$1 == "task" && NF == 10 {
			printf "%s,%d,%s,%d,%d,%d,%d,%d,%d,%d,%d,%d\n", head, $2, work[$2], period[$2], deadline[$2], \
				$3, $4, $5, $6, $7, $8, $9 >>lines
			r += $3; c += $4; m += $5; sum += $6 * $4; n++
			if ($8 > p) p = $8
			if ($9 > x) x = $9
		}
		END {
			if (n == tasks) printf "%s,%d,%s,%d,%d,%d,%.3f,%.3f,%.3f,%.3f,%.4f,%d\n", head, n, window, r, c, m, \
				c ? sum / c / 1e6 : 0, p / 1e6, x / 1e6, j, c ? j / c : 0, stolen >>cells
		}' "$scratch/tasks" "$scratch/cell"
	[ -z "${CAUSES:-}" ] || awk -v head="$1,$2,$3,$4" '
		NR == FNR { work[NR] = $1; deadline[NR] = $3; next }
		{ i = FILENAME; sub(/.*late-/, "", i); gsub(/ /, ","); print head "," i "," work[i] "," deadline[i] "," $0 }' \
		"$scratch/tasks" "$scratch"/late-* >>"$folder/late.csv"
	[ -z "${SECONDS_CSV:-}" ] || awk -v head="$1,$2,$3,$4" '
		{ released[FNR] += $1; missed[FNR] += $2; if (FNR > n) n = FNR }
		END { for (i = 1; i <= n; i++) printf "%s,%d,%d,%d\n", head, i, released[i], missed[i] }' \
		"$scratch"/seconds-* >>"$folder/seconds.csv"
	say "$label: $(tail -n 1 "$csv" | awk -F, '{ printf "%d of %d missed", $9, $7 }')"
}

# FAMILY COLUMN U SEED: the cell just run, simulated with the lead, whose energy a second is the window's.
predict() {
	{
		sed "1s/\"step\"/\"sms\": ${sms##* }, &/; \$s/}\$//" "$folder/profiles/measured.json"
		awk '
			{
				printf "%s{\"name\": \"%s-%d\", \"profile\": \"%s-%d\", \"period\": \"%sns\", " \
					"\"deadline\": \"%sns\", \"offset\": \"%sns\", \"priority\": %d}", \
					NR == 1 ? ", \"tasks\": [" : ",\n", $1, NR, $1, NR, $2, $3, $4, $5
			}
			END { print "]}" }' "$scratch/tasks"
	} >"$folder/predict-$1-$3-$4.json"
	lasts=$(awk -v l="$(lead_of "$2")" -v w="$window_s" 'BEGIN { print l + w }')
	tool "$ctl" simulate -p "${2%%+*}" -d "${lasts}s" --param=sequential=on --param=exec=drawn \
		--columns=energy_j --no-legend "$folder/predict-$1-$3-$4.json" >"$scratch/predicted" || failed=1
	awk -F, -v cell="$1,$2,$3,$4" -v lasts="$lasts" '
		NR == FNR { if (FNR == 1) j = $1; next }
		$1 "," $2 "," $3 "," $4 == cell && $13 > 0 { m = $13; p = j * $6 / lasts }
		END { if (m && p) printf "%s,%.3f,%.3f,%.2f\n", cell, m, p, 100 * (p - m) / m }' \
		"$scratch/predicted" "$csv" >>"$folder/energy.csv"
}

reversed() { # WORDS
	echo "$@" | awk '{ for (i = NF; i > 0; i--) printf "%s ", $i }'
}

# FAMILY U SEED TURN: under all columns, as far as they are not there.
run_set() {
	name=$3
	order=$columns
	[ "$4" -eq 1 ] || name=$3$(printf %02d "$4")
	# shellcheck disable=SC2086 # several words
	[ $(($4 % 2)) -eq 1 ] || order=$(reversed $columns)
	# shellcheck disable=SC2046 # several words
	tool "$evaluate" tasks "$folder/scenario.json" "$step" "$n_tasks" "$2" "$3" $(works_of "$1") \
		>"$scratch/tasks" || exit 1
	[ -z "${TRACES:-}" ] || cp "$scratch/tasks" "$folder/tasks-$1-$2-$name"
	for column in $order; do
		! grep -q "^$1,$column,$2,$name," "$csv" || continue
		case $column in
		none) stop_mps ;;
		*) [ "$mps" = true ] || start_mps ;;
		esac
		case $column in
		none | mps | mps-* | host) ;;
		*) # shellcheck disable=SC2086 # several words
			start_policy "$column" --profile-dir "$folder/profiles" ${DAEMON_OPTIONS:-} || failed=1 ;;
		esac
		run_cell "$1" "$column" "$2" "$name"
		case ${PREDICT:-}:$column in
		yes:none | yes:host) ;;
		yes:*) predict "$1" "$column" "$2" "$name" ;;
		esac
		[ -z "$daemon" ] || {
			stop_daemon
			{ echo "$1 $column U $2 set $name"; cat "$scratch/sbeetd.log"; } >>"$folder/sbeetd.log"
		}
	done
}

gpu=${GPU_NAME:-$(nvidia-smi --query-gpu=name --format=csv,noheader | head -n 1)}
[ -s "$csv" ] || echo "family,column,utilisation,set,tasks,window_s,released,completed,missed,mean_ms,p99_ms,max_ms,energy_j,j_per_job,stolen_ms" >"$csv"
[ -s "$folder/tasks.csv" ] || echo "family,column,u,set,task,work,period,deadline,released,completed,missed,mean,p50,p99,max" >"$folder/tasks.csv"
[ -z "${SECONDS_CSV:-}" ] || [ -s "$folder/seconds.csv" ] || echo "family,column,u,set,second,released,missed" >"$folder/seconds.csv"
[ -z "${CAUSES:-}" ] || [ -s "$folder/late.csv" ] ||
	echo "family,column,u,set,task,work,deadline,before,wake_up,first_call,copy_in,kernels,copy_out,return,response" >"$folder/late.csv"
[ -z "${PREDICT:-}" ] || [ -s "$folder/energy.csv" ] ||
	echo "family,column,utilisation,set,measured_j,predicted_j,error_percent" >"$folder/energy.csv"
[ -s "$folder/measured.txt" ] || { start_mps; measure; }
write_profiles
# What a set takes, until one has shown it.
longest=$(for column in $columns; do lead_of "$column"; done |
	awk -v w="$window_s" '{ sum += $1 + w + 1.5 } END { printf "%d", sum }')
last=$((seed + ${SETS:-3}))
while [ "$seed" -lt $last ]; do
	for u in ${UTILISATIONS:-0.8 1.2 1.6 2.0}; do
		for family in ${FAMILIES:-mixed long}; do
			turn=0
			while [ $turn -lt "${TURNS:-1}" ]; do
				turn=$((turn + 1))
				from=$(date +%s)
				if [ $((from + longest)) -gt $until ]; then
					say "$family U $u set $seed turn $turn: no time left"
					break
				fi
				run_set "$family" "$u" "$seed" $turn
				took=$(($(date +%s) - from))
				[ $took -le "$longest" ] || longest=$took
			done
		done
	done
	seed=$((seed + 1))
done
for family in ${FAMILIES:-mixed long}; do
	tool "$evaluate" plot "$csv" "$family" >"$folder/evaluate-$family.svg" || failed=1
done
tool "$evaluate" summary "$folder/tasks.csv" | tee "$folder/summary.txt"
[ ! -s "$folder/late.csv" ] ||
	awk -f "$here/causes.awk" "$folder/measured.txt" "$folder/late.csv" | tee "$folder/causes.txt"
[ ! -s "$folder/energy.csv" ] || awk -F, '
	NR == 1 { printf "%-8s %4s %10s  %-10s %11s %11s %8s\n", "FAMILY", "U", "SET", "POLICY", "MEASURED J", "PREDICTED J", "ERROR %"; next }
	{
		printf "%-8s %4s %10s  %-10s %11.1f %11.1f %+8.2f\n", $1, $3, $4, $2, $5, $6, $7
		e = $7 < 0 ? -$7 : $7; sum += e; n++
		if (e > most) most = e
	}
	END { if (n) printf "error of %d cells: mean %.2f %%, max %.2f %%\n", n, sum / n, most }' \
	"$folder/energy.csv" | tee "$folder/energy.txt"
[ $failed -eq 0 ]
