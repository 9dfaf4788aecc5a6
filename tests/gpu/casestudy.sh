#!/bin/sh
# Chapter 4's case study (Table 4.4) and its overhead (Table 4.3) on this GPU, without MPS, in the folder
# that bundle.sh made. The tasks compute on pinned CPUs, then on the GPU; C, G, T and CPU are those of the
# table in ms, G in kernels of KERNEL_US with copies around them.
#
# usage: casestudy.sh [FOLDER [COLUMN...]]	FOLDER: ./out; it gets casestudy.txt and all numbers
#
# COLUMN: unmanaged, or POLICY-WAIT with a policy of sbeetd and busy or suspend. By default unmanaged-busy
# gpu-kthread-busy gpu-ioctl-busy gpu-ioctl-suspend.
#
# The first table has what a call costs and what it takes until a task of lower priority is off the GPU:
# by how much longer a short segment takes beside an endless task than alone without sbeet; then the same
# beside BESIDE of them, each of which must go. The longest of that is epsilon for the bounds, which are
# those of `sbeetctl response-time`; a segment has it once more for each time slice of 20 ms that ends in
# it, for then the others have the GPU until they are preempted. In the other tables CPU
# priorities are SCHED_FIFO's where the system grants that, else nice values, so the bounds may be
# exceeded for want of a CPU: "cpu" marks a response above its bound, "GPU" one that is above it even
# without the CPU delay, compared with the bound without its part for other tasks on the CPU. Behind the
# table stands where the time went of each task's ABOVE jobs that were furthest above, see above.awk; the
# logs of all jobs are in FOLDER/COLUMN.
#
# WINDOW_S (56), COST_S (2): seconds of a column and of a line of the first table. KERNEL_US (1000), QUEUE
# (2): a task's kernels and how many of them it queues, see segments.c: what is queued is not stopped.
# ROUNDS: of arithmetic in a kernel; EPSILON_US: both are measured if not given. RANKS=no: no CPU priorities.
# BESIDE (4), ABOVE (2): see above.
set -u

here=$(cd "$(dirname "$0")" && pwd)
OUT=${1:-${OUT:-./out}}
[ $# -eq 0 ] || shift
. "$here/manage.sh"
out=$(cd "$out" && pwd)
window=${WINDOW_S:-56}
cost=${COST_S:-2}
kernel_us=${KERNEL_US:-1000}
beside=${BESIDE:-4}
above=${ABOVE:-2}
slice_us=20000
table=$out/casestudy.txt
go=$scratch/go
running=
columns=${*:-unmanaged-busy gpu-kthread-busy gpu-ioctl-busy gpu-ioctl-suspend}
: >"$table"

# Table 4.4: name, C, G, T in ms, CPU, priority.
tasks="histogram 5 14 100 1 99
mmul_cpu_1 116 0 200 1 98
dxtc 17 37 250 0 97
mmul_gpu_2 14 90 400 1 96
mmul_cpu_2 66 0 500 0 95
mmul_gpu_1 2 49 250 0 0
mmul_cpu_3 66 0 800 1 0
texture 0 16 0 2 0"

say() {
	echo "$*" | tee -a "$table"
}

milli() { # SECONDS
	awk -v s="$1" 'BEGIN { printf "%d", s * 1000 }'
}

# HOW NAME OPTIONS -- KEY=VALUE...: in the background; how: plain, or managed with these options.
start() {
	starter=$1
	started=$2
	[ "$1" = plain ] || starter="managed --task $2 --job marks $3 --"
	shift 4
	# shellcheck disable=SC2086 # several words
	$starter "$here/bin/segments" go="$go" rounds="$rounds" queue="${QUEUE:-2}" "$@" \
		>"$scratch/$started.out" 2>"$scratch/$started.err" &
	running="$running $!"
	names="$names $started"
}

await_all() {
	for started in $names; do
		within 60 grep -qs ready "$scratch/$started.out" || {
			say "$started does not start: $(tail -n 3 "$scratch/$started.err")"
			# shellcheck disable=SC2086 # several words
			kill $running
			exit 1
		}
	done
}

# All that were started: from when all are ready until they end; the endless ones last.
go_on() {
	await_all
	touch "$go"
	sleep "$1"
	rm -f "$go"
	for pid in $running; do
		wait "$pid" || failed=1
	done
	for started in $names; do
		[ "$(wc -l <"$scratch/$started.out")" -eq 2 ] ||
			say "$started FAILED: $(tail -n 3 "$scratch/$started.err")"
	done
	running=
	names=
}

# NAME FIELD: a number of its last line, see segments.c.
number() {
	tail -n 1 "$scratch/$1.out" | cut -d ' ' -f "$2"
}

# ---- Table 4.3 ----

# HOW [NUMBER]: a short segment, beside so many endless tasks, each above the one before.
short() {
	short_for=$(milli "$cost")
	i=0
	while [ $i -lt "${2:-0}" ]; do
		class="--class realtime --priority $i"
		[ $i -gt 0 ] || class="--class best-effort"
		start "$1" "lower-$i" "$class" -- kernels=16
		i=$((i + 1))
	done
	start "$1" short "--class realtime --period 20ms --deadline 20ms --priority 99" -- \
		kernels=1 period_us=20000 time_ms="$short_for"
	go_on "$cost"
}

# POLICY
cost_of() {
	start_daemon --policy "$1"
	short managed
	calls="$(number short 11) $(number short 12) $(number short 13)"
	short managed 1
	tool "$ctl" status --json=short >"$out/status-$1.json"
	one="$(number short 3) $(number short 4) $(number short 5)"
	[ "$1" = steer ] || short managed "$beside"
	echo "$1 $calls $one $alone $(number short 3) $(number short 4) $(number short 5)" |
		tee -a "$out/costs" |
		awk '{
			printf "%-12s %8.1f %8.1f %8.1f | %8.0f %8.0f %8.0f", $1, $2, $3, $4, $5 - $8, $6 - $8, $7 - $8
			printf "%s\n", $1 == "steer" ? "" : sprintf(" | %8.0f %8.0f %8.0f", $9 - $8, $10 - $8, $11 - $8)
		}' |
		tee -a "$table"
	[ "$1" != steer ] || preemptions
	stop_daemon
}

key() { # FILE KEY
	tr ',{' '\n\n' <"$1" | sed -n "s/^\"$2\":\([0-9]*\).*/\1/p" | head -n 1
}

preemptions() {
	f=$out/status-steer.json
	echo "$(key "$f" preempt_min_ns) $(key "$f" preempt_mean_ns) $(key "$f" preempt_ns) $(key "$f" preemptions)" |
		awk '{ printf "one ioctl    %8.1f %8.1f %8.1f | of %d preemptions\n", $1 / 1e3, $2 / 1e3, $3 / 1e3, $4 }' |
		tee -a "$table"
}

# ---- Table 4.4 ----

kernels_of() { # MS
	awk -v ms="$1" -v us="$kernel_us" 'BEGIN { n = int(ms * 1000 / us); print (ms > 0 && n < 1 ? 1 : n) }'
}

# Each GPU task alone: longest segment, CPU time in it, in us, to $out/alone.
measure_alone() {
	: >"$out/alone"
	echo "$tasks" | grep -v ' 0 [0-9]* [01] ' | while read -r name c g _; do
		[ "$name" != texture ] || continue
		start plain "$name" "" -- kernels="$(kernels_of "$g")" copy="$copy" time_ms=$((g * 6))
		go_on 0.1 >&2
		echo "$name $(number "$name" 9) $(number "$name" 10)" >>"$out/alone"
	done
}

alone_of() { # NAME FIELD
	awk -v name="$1" -v f="$2" '$1 == name { print $f }' "$out/alone"
}

# EPSILON_US: what `sbeetctl response-time` reads.
write_set() {
	echo "$tasks" | awk -v epsilon="$1" -v slice="$slice_us" -v alone="$out/alone" '
		BEGIN {
			while ((getline line <alone) > 0) {
				split(line, a, " ")
				g[a[1]] = a[2] + int(a[2] / slice) * epsilon
				m[a[1]] = a[3]
			}
			printf "{\"cpus\": 4, \"kernel_thread_cpu\": 3, \"epsilon\": \"%dus\", \"tasks\": [", epsilon
		}
		{
			printf "%s\n{\"name\": \"%s\", \"cpu\": %d, \"priority\": %d, \"period\": \"%dms\", \"segments\": [", \
				(NR > 1 ? "," : ""), $1, $5, $6, ($4 > 0 ? $4 : 1000)
			if ($2 > 0) printf "{\"cpu\": \"%dms\"}%s", $2, ($3 > 0 ? ", " : "")
			if ($4 == 0) printf "{\"misc\": \"0ms\", \"exec\": \"forever\"}"
			else if ($3 > 0) printf "{\"misc\": \"%dus\", \"exec\": \"%dus\", \"total\": \"%dus\"}", m[$1], g[$1], g[$1]
			printf "]}"
		}
		END { print "]}" }'
}

# COLUMN: a line for each task: name, bound, its part for others on the CPU, in us; 0: none.
bounds() {
	case $1 in
	unmanaged-*) return ;;
	gpu-kthread-*) method=safe-kthread ;;
	*-busy) method=safe-busy ;;
	*) method=safe-suspend ;;
	esac
	policy=${1%-*}
	epsilon=$(awk -v p="$policy" '$1 == p { printf "%d", ($11 > $7 ? $11 : $7) - $8 }' "$out/costs")
	epsilon=${EPSILON_US:-$epsilon}
	[ -n "$epsilon" ] || return 0
	write_set "$epsilon" >"$out/set-$1.json"
	tool "$ctl" response-time -m "$method" --json=short "$out/set-$1.json" >"$out/bounds-$1.json"
	sed 's/{"task":/\n&/g' "$out/bounds-$1.json" | sed -n \
		's/^{"task":"\([^"]*\)".*"safe_bound_ns":\([0-9]*\).*"cpu_ns":\([0-9]*\).*/\1 \2 \3/p' |
		awk '{ print $1, $2 / 1000, $3 / 1000 }'
}

# COLUMN
column() {
	policy=${1%-*}
	busy=0
	case $1 in *-busy) busy=1 ;; esac
	say ""
	[ "$policy" = unmanaged ] || start_daemon --policy "$policy"
	shares=
	for pid in $daemon $(pgrep -P "${daemon:-none}" 2>/dev/null); do # with the process that preempts
		taskset -acp "3-$(($(nproc) - 1))" "$pid" >/dev/null 2>&1 || shares=1
	done
	[ -z "$shares" ] || say "sbeetd shares the tasks' CPUs"
	bounds "$1" >"$out/bounds"
	rm -rf "$scratch"/*.out "${out:?}/$1"
	mkdir "$out/$1"
	while read -r name c g t cpu rank; do
		class="--class best-effort"
		[ "$rank" -eq 0 ] || class="--class realtime --period ${t}ms --deadline ${t}ms --priority $rank"
		how=managed
		if [ "$policy" = unmanaged ] || [ "$g" -eq 0 ]; then
			how=plain
		fi
		start $how "$name" "$class" -- cpu_us=$((c * 1000)) kernels="$(kernels_of "$g")" copy="$copy" \
			busy=$busy period_us=$((t * 1000)) time_ms="$([ "$t" -eq 0 ] && echo 0 || milli "$window")" pin="$cpu" \
			log="$out/$1/$name.log" alone_us="$(alone_of "$name" 2 | grep . || echo 0)" $([ "${RANKS:-yes}" = no ] || echo "rank=$rank")
	done <<-END
		$tasks
	END
	await_all
	if [ -n "$daemon" ]; then
		tool "$ctl" status --json=short >"$out/status-$1.json"
		[ "$(tr '{' '\n' <"$out/status-$1.json" | grep -c '"task":')" -eq 5 ] || say "FAILED: not all are managed"
	fi
	go_on "$window"
	[ -z "$daemon" ] || tool "$ctl" status --json=short >"$out/status-after-$1.json"
	[ -z "$daemon" ] || stop_daemon
	say "$1: CPU priorities: $(head -qn 1 "$scratch"/*.out | cut -d ' ' -f 3 | sort | uniq -c | tr -s ' \n' ' ')"
	say "task         jobs missed |  alone   bound    mean     max | CPU delay GPU delay | above"
	echo "$tasks" | while read -r name c g t cpu rank; do
		echo "$name $c $rank $(alone_of "$name" 2 | grep . || echo 0) $(grep "^$name " "$out/bounds" || echo - 0 0) $(number "$name" 1-)"
	done | tee "$out/$1.numbers" | awk '{
		bound = $6; cpu = $7; max = $12; less = $15
		above = bound > 0 && max > bound ? (less > bound - cpu ? "GPU" : "cpu") : ""
		printf "%-12s %4d %6s | %6.1f %7s %7.1f %7.1f | %9.1f %9.1f | %s\n", $1, $8, ($3 > 0 ? $9 : "-"), \
			$2 + $4 / 1e3, (bound > 0 ? sprintf("%.1f", bound / 1e3) : "-"), $11 / 1e3, max / 1e3, \
			$13 / 1e3, $14 / 1e3, above
	}' | tee -a "$table"
	awk -v us="$kernel_us" -f "$here/above.awk" "$out/$1.numbers" "$out/$1"/*.log | sort -k 1.2nr >"$out/$1.above"
	awk -v n="$above" '++seen[$2] <= n' "$out/$1.above" | tee -a "$table"
}

failed=0
names=
copy=${COPY:-33554432}
if pgrep -x nvidia-cuda-mps-control >/dev/null 2>&1; then
	say "MPS is running; stop it first (echo quit | nvidia-cuda-mps-control)"
	exit 1
fi
rounds=${ROUNDS:-$(plain "$here/bin/urgent" rounds "$kernel_us")} || exit 1
: >"$out/costs"
short plain
alone=$(number short 4)
say "A segment of one kernel of $kernel_us us, alone: $(number short 3) $alone $(number short 5) us; its calls $(number short 11) $(number short 12) $(number short 13) us"
short plain 1
say "beside an endless task, by time slices: $(number short 3) $(number short 4) $(number short 5) us"
say "us              calls: min, mean, max | until a lower task is off: min, mean, max | until $beside are"
for policy in $(for c in $columns; do echo "${c%-*}"; done | grep -v unmanaged | sort -u) steer; do
	grep -q "^$policy " "$out/costs" || cost_of "$policy"
done
measure_alone
for c in $columns; do
	column "$c"
done
[ $failed -eq 0 ] && ! grep -q FAILED "$table"
