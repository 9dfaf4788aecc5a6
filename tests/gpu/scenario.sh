#!/bin/sh
# Runs on a machine with a GPU, MPS and PyTorch (or on the simulated one, SCALE=0), in the folder that
# bundle.sh made: an inference with a deadline, or two of them, beside one other program, under each way of sharing.
#
# usage: scenario.sh FOLDER     has scenario.csv; what is there is not measured again
#
# Columns: alone            without MPS, nothing beside it
#          none             without MPS
#          mps, mps-N       MPS; with CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=N for each
#          priority         MPS; CUDA_MPS_CLIENT_PRIORITY=1 for the other
#          fixed-N          MPS; the urgent ones on N SMs, the other on the rest (green contexts of their own)
#          preempt          without MPS, under policy steer, which preempts the other for the urgent one
#          steer ...        that policy of sbeetd, under MPS, without profiles; steer+yield=off: with that parameter;
#                           steer+dependent=on: kernels are launched as dependent ones
# Cells: OTHER:MODE:PERIOD_MS:DEADLINE_MS, see frameworks/scenario.py; `none` is the urgent one with the
# other programs there but idle: alone on the same terms; MODE `idle` is the other one alone. By default all of
# OTHERS (none train products copies inference) x MODES (eager:33:12 graph:33:12 eager:10:6 graph:10:6), and each
# other one alone (idle:0:0). CELLS: these instead.
# OTHER+PERIOD_MS/DEADLINE_MS as OTHER: with a second urgent program. Each has a line, in which the other one is
# part of OTHER: CELLS=train+21/9:graph:33:12 makes train+21/9,graph,33,12 and train+33/12,graph,21,9.
# train+products as OTHER: both; their rates are joined likewise.
#
# All programs of a column start at the same time and stay up for all its cells. SECONDS_CELL (3), LEAD_S
# (0.5). OPTIONS: of sbeetd, such as --profile-dir=FOLDER. BUDGET_S: begin no column that would not be done
# after so many seconds (560). Columns stand side by side only within one call: to split, split OTHERS.
# Exit 1 if a program failed.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
mkdir -p "$1" || exit 2
folder=$(cd "$1" && pwd)
csv=$folder/scenario.csv
seconds=${SECONDS_CELL:-3}
lead=${LEAD_S:-0.5}
others=${OTHERS:-none train products copies inference}
modes=${MODES:-eager:33:12 graph:33:12 eager:10:6 graph:10:6}
began=$(date +%s)
until=$((began + ${BUDGET_S:-560}))
failed=0
program="python3 $here/frameworks/scenario.py serve"
export SCENARIO_PTX="$here/ptx/vecadd.ptx"

say() {
	echo "$(($(date +%s) - began)) s: $*"
}

# The cells that the column still lacks.
cells_of() { # COLUMN
	for cell in ${CELLS:-$(for o in $others; do for m in $modes idle:0:0; do echo "$o:$m"; done; done)}; do
		case $1:$cell in
		*:none:idle:* | *:*/*:idle:*) continue ;;
		alone:none:* | alone:*:idle:*) ;;
		alone:*) continue ;;
		esac
		grep -q "^$1,$(echo "$cell" | tr : ,)," "$csv" || echo "$cell"
	done
}

# COLUMN NAME: its command, for scenario.py drive. Both urgent programs are of kind urgent.
command_of() {
	plain="env LD_LIBRARY_PATH='$libraries'"
	kind=$2
	options="--task $2"
	level=1
	case $2 in
	urgent*)
		kind=urgent
		options="$options --class realtime --period 33ms --deadline 12ms"
		level=0
		;;
	esac
	case $1 in
	mps-*) echo "$2 $plain CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=${1#mps-} $program $kind" ;;
	priority) echo "$2 $plain CUDA_MPS_CLIENT_PRIORITY=$level $program $kind" ;;
	fixed-*) echo "$2 $plain $program $kind ${1#fixed-}" ;;
	alone | none | mps) echo "$2 $plain $program $kind" ;;
	*)
		echo "$2 env LD_LIBRARY_PATH='$tools_path' $ctl run $options --" \
			"$plain LD_PRELOAD=$SBEET_SHIM${PRELOAD:+:$PRELOAD} $program $kind"
		;;
	esac
}

# COLUMN CELLS
run_column() {
	{
		command_of "$1" urgent
		echo "$2" | cut -d : -f 1 | tr + '\n' | sed '/^none$/d; s|.*/.*|urgent2|' | sort -u | while read -r name; do
			command_of "$1" "$name"
		done
	} >"$scratch/programs"
	case $1 in
	alone | none | preempt) stop_mps ;;
	*) [ "$mps" = true ] || start_mps ;;
	esac
	unset SCENARIO_CTL
	case $1 in
	alone | none | mps | mps-* | priority | fixed-*) ;;
	*)
		# shellcheck disable=SC2086 # several words
		if [ "$1" = preempt ]; then
			start_daemon --policy steer --log-level debug ${OPTIONS:-}
		else
			start_policy "$1" ${OPTIONS:-} || failed=1
		fi
		export SCENARIO_CTL="env LD_LIBRARY_PATH='$tools_path' $ctl"
		;;
	esac
	# shellcheck disable=SC2086 # several cells
	timeout -k 20 500 python3 "$here/frameworks/scenario.py" drive "$folder" "$1" "$seconds" "$lead" $2 \
		<"$scratch/programs" || failed=1
	[ -n "$daemon" ] || return 0
	stop_daemon
	cp "$scratch/sbeetd.log" "$folder/sbeetd-$1.log"
	[ "$1" != preempt ] || say "$(grep "preempted .* refused" "$scratch/sbeetd.log" | tail -n 1)"
}

[ -s "$csv" ] || echo "column,other,mode,period_ms,deadline_ms,seconds,released,missed,skipped,p50_ms,p99_ms,max_ms,other_per_s" >"$csv"
for column in ${COLUMNS:-alone none steer mps mps-50 priority fixed-64 fixed-32 fixed-16}; do
	cells=$(cells_of "$column")
	[ -n "$cells" ] || continue
	takes=$(echo "$cells" | awk -v s="$seconds" -v l="$lead" 'END { printf "%d", 12 + NR * (s + l + 0.3) }')
	if [ $(($(date +%s) + takes)) -gt $until ]; then
		say "$column: no time left for its $(echo "$cells" | wc -l) cells ($takes s)"
		continue
	fi
	say "$column: $(echo "$cells" | wc -l) cells, about $takes s"
	run_column "$column" "$cells"
done
python3 "$here/frameworks/scenario.py" summary "$csv" | tee "$folder/scenario.md"
[ $failed -eq 0 ]
