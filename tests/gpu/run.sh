#!/bin/sh
# Runs on a machine with a GPU, in the folder that bundle.sh made: the sample programs under the shim,
# alone and three at a time; two threads on disjoint SM sets; what the shim costs a launch.
#
# A short table on stdout and in $OUT/table.txt; everything else (each program's own summary, logs) in
# $OUT/details.tar.gz. OUT is this folder's out/ if it is not set. Exit 0 if everything was as promised.
set -u

here=$(cd "$(dirname "$0")" && pwd)
results=${OUT:-$here/out}
mkdir -p "$results"
scratch=$(mktemp -d)
out=$scratch/details
mkdir "$out"
export SBEET_RUNTIME_DIR="$scratch/run"
mkdir -m 700 "$SBEET_RUNTIME_DIR"
export LD_LIBRARY_PATH="$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export SBEET_SHIM="$here/lib/libsbeet.so"
ctl=$here/bin/sbeetctl
apps=$here/apps
daemon=
mps=false
failed=0

say() {
	printf '%s\n' "$*" | tee -a "$out/table.txt"
}

# WHAT OK? DETAIL: a line of the table.
row() {
	if [ "$2" = yes ]; then
		verdict=ok
	else
		verdict=FAILED
		failed=1
	fi
	say "$(printf '%-44s %-7s %s' "$1" "$verdict" "$3")"
}

stop_daemon() {
	[ -n "$daemon" ] || return 0
	kill -TERM "$daemon" 2>/dev/null
	wait "$daemon"
	code=$?
	daemon=
	[ "$code" -eq 0 ] || row "sbeetd stops" no "exit code $code"
}

stop_mps() {
	[ "$mps" = true ] && echo quit | nvidia-cuda-mps-control >>"$out/mps.log" 2>&1
	mps=false
}

clean_up() {
	[ -n "$daemon" ] && kill "$daemon" 2>/dev/null
	stop_mps
	cp "$out/table.txt" "$results/"
	tar -C "$scratch" -czf "$results/details.tar.gz" details
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM INT

# OPTIONS...
start_daemon() {
	"$here/bin/sbeetd" "$@" >>"$out/sbeetd.log" 2>&1 &
	daemon=$!
	tries=0
	until "$ctl" status >/dev/null 2>&1; do
		tries=$((tries + 1))
		if ! kill -0 "$daemon" 2>/dev/null || [ "$tries" -gt 300 ]; then
			tail -n 20 "$out/sbeetd.log"
			say "sbeetd does not answer (options: $*)"
			exit 1
		fi
		sleep 0.1
	done
}

# NAME COMMAND...: under the shim, summary into $out/NAME.json.
managed() {
	name=$1
	shift
	# shellcheck disable=SC2086 # several words
	"$ctl" run --task "$name" $run_options -- "$@" --json >"$out/$name.json" 2>"$out/$name.err"
}

# NAME: the program said that all its results are right.
right() {
	grep -q '"ok":true' "$out/$1.json"
}

# FILE LANE KEY: a number of one lane.
lane() {
	tr '{' '\n' <"$out/$1.json" | sed -n "s/^\"lane\":$2,.*\"$3\":\\([0-9]*\\).*/\\1/p"
}

# FILE: the sets of SMs that the frames of each lane really ran on, as the kernel itself recorded them.
lane_sets() {
	tr '{' '\n' <"$out/$1.json" | sed -n 's/^"sms":"\([^"]*\)".*/\1/p' | sort -u
}

start_watch() {
	rm -f "$scratch/watching"
	mkfifo "$scratch/watching"
	"$here/bin/watch" "$ctl" 20 <"$scratch/watching" >"$out/$1.seen" 2>>"$out/watch.log" &
	watcher=$!
	exec 9>"$scratch/watching"
}

stop_watch() {
	exec 9>&-
	wait "$watcher"
}

run_options=
all="vecadd matmul histogram hotspot bfs reduce early volume lanes stubborn"

size_of() {
	case $1 in
	vecadd) echo "--size 4000000 --frames 10" ;;
	matmul) echo "--size 300 --frames 10" ;;
	histogram) echo "--size 8000000 --frames 10" ;;
	hotspot) echo "--size 500 --launches 50 --frames 5" ;;
	bfs) echo "--size 200000 --frames 10" ;;
	reduce) echo "--size 2000000 --frames 10" ;;
	early) echo "--size 20000 --frames 10" ;;
	volume) echo "--size 120 --frames 10" ;;
	lanes) echo "--size 2000 --rounds 20000 --frames 20" ;;
	stubborn) echo "--size 500000 --frames 10" ;;
	esac
}

# PREFIX A B C: three programs at once.
three_at_once() {
	prefix=$1
	shift
	running=
	for app in "$@"; do
		# shellcheck disable=SC2046 # several words
		managed "$prefix-$app" "$apps/$app" $(size_of "$app") 9>&- &
		running="$running $!"
	done
	ok=yes
	for pid in $running; do
		wait "$pid" || ok=no
	done
	for app in "$@"; do
		right "$prefix-$app" || ok=no
	done
	row "three at once: $*" "$ok" "$prefix"
}

: >"$out/table.txt"
say "$(nvidia-smi --query-gpu=name,driver_version,compute_cap --format=csv,noheader 2>/dev/null | head -n 1)"

# Each sample as it is: the reference for all that follows.
for app in $all; do
	# shellcheck disable=SC2046
	"$apps/$app" $(size_of "$app") --json >"$out/bare-$app.json" 2>"$out/bare-$app.err"
	right "bare-$app" || row "$app without the shim" no "see bare-$app.err"
done

# Each kernel against its twin: random grids and SM sets, memory byte for byte, each block once.
ok=yes
SBEET_TEST_PTX="$here/ptx" "$here/bin/test-twin-driver" 20 >"$out/twins.txt" 2>&1 || ok=no
row "kernels and twins give the same memory" "$ok" "$(grep -c ' 0 failed' "$out/twins.txt") of $(grep -c ' failed$' "$out/twins.txt") kernels"

start_daemon --policy even --sharing exclusive
for app in $all; do
	ok=yes
	# shellcheck disable=SC2046
	managed "alone-$app" "$apps/$app" $(size_of "$app") || ok=no
	right "alone-$app" || ok=no
	row "$app under the shim (even)" "$ok" \
		"$("$ctl" ptx --json=short "$apps/$app" 2>/dev/null | tr ',' '\n' | grep -c '"confinable":true') kernels confinable"
done
start_watch exclusive
three_at_once exclusive matmul hotspot histogram
three_at_once exclusive bfs lanes volume
three_at_once exclusive vecadd reduce early
stop_watch

# Two threads of one process. Solo and together in turns, three times; the middle one counts. A program
# that is alone gets the whole GPU after some jobs: solo it is held to the half that each thread has.
gpu_sms=$("$ctl" status --json=short | tr ',{' '\n' | sed -n 's/^"n_sms":\([0-9]*\).*/\1/p' | head -n 1)
half="--max-sms $((${gpu_sms:-2} / 2))"
start_watch threads
work="--size 4096 --rounds 400000 --launches 1 --frames 15"
for turn in 1 2 3; do
	run_options="--scope thread $half"
	# shellcheck disable=SC2086 # several words
	managed "solo$turn" "$apps/lanes" --lanes 1 $work || failed=1
	run_options="--scope thread"
	# shellcheck disable=SC2086
	managed "pair$turn" "$apps/lanes" --lanes 2 $work || failed=1
done
stop_watch
run_options=

# Blocks in a second, the middle of three turns. PREFIX LANE
rate() {
	for turn in 1 2 3; do
		echo "$(lane "$1$turn" "$2" blocks) $(lane "$1$turn" "$2" gpu_ns)"
	done | awk '$2 > 0 { print $1 / $2 * 1e9 }' | sort -n | sed -n 2p
}

solo=$(rate solo 0)
for l in 0 1; do
	both=$(rate pair $l)
	percent=$(awk -v a="${both:-0}" -v b="${solo:-0}" 'BEGIN { printf "%.1f", (b > 0 ? 100 * a / b : 0) }')
	ok=$(awk -v p="$percent" 'BEGIN { print (p >= 97 ? "yes" : "no") }')
	row "thread $l beside the other, rate against solo" "$ok" "$percent % of $solo blocks/s"
done
ok=yes
for turn in 1 2 3; do
	right "solo$turn" && right "pair$turn" || ok=no
done
row "their results" "$ok" ""

# In each run: the sets that sbeetd granted, and the SMs that the kernels recorded.
for run in solo1 pair1 solo2 pair2 solo3 pair3; do
	promised=$(awk -v task=$run '$1 == "set" && $2 == task { print $4 }' "$out/threads.seen" | sort -u)
	used=$(lane_sets $run)
	ok=no
	[ -n "$used" ] && [ "$promised" = "$used" ] && ok=yes
	# shellcheck disable=SC2086 # several words
	row "$run: SMs used are exactly the SMs granted" "$ok" \
		"granted: $(printf '%s ' $promised); used: $(printf '%s ' $used)"
done
# Blocks that the twins had to run outside.
outside=$(awk '$1 == "task" { n += $6 } END { print n + 0 }' "$out/threads.seen")
ok=no
[ "$outside" -eq 0 ] && ok=yes
row "blocks outside the set" "$ok" "$outside"
pair=$(awk '$1 == "pair" && $2 == "threads" && $6 == "smid" { print $4, $5; exit }' "$out/threads.seen")
ok=no
[ -n "$pair" ] && ok=yes
row "two threads side by side, smid" "$ok" "$pair"
stop_daemon

# What the shim costs a launch inside a job: empty launches, bare and managed by turns. The driver's own
# speed changes from one second to the next by more than what is measured: so many short turns, and
# the middle one of the ratios within each.
launches="--lanes 1 --size 1 --rounds 0 --launches 20000 --frames 2"
turns="1 2 3 4 5 6 7 8 9 10 11"
middle() {
	sort -n | awk '{ v[NR] = $1 } END { print NR ? v[int((NR + 1) / 2)] : 0 }'
}
per_launch() { # FILE: nanoseconds
	echo "$(lane "$1" 0 gpu_ns) $(lane "$1" 0 blocks)" | awk '$2 > 0 { print $1 / $2 }'
}
for policy in fcfs even; do
	start_daemon --policy $policy --sharing exclusive
	: >"$out/ratios-$policy.txt"
	for turn in $turns; do
		# shellcheck disable=SC2086
		"$apps/lanes" $launches --json >"$out/rate-bare.json"
		# shellcheck disable=SC2086
		managed rate-managed "$apps/lanes" $launches || failed=1
		# bare, managed: nanoseconds a launch; percent of the bare rate
		echo "$(per_launch rate-bare) $(per_launch rate-managed)" |
			awk 'NF == 2 { print $1, $2, 100 * $1 / $2 }' >>"$out/ratios-$policy.txt"
	done
	stop_daemon
	percent=$(awk '{ printf "%.1f\n", $3 }' "$out/ratios-$policy.txt" | middle)
	bare=$(awk '{ printf "%.0f\n", $1 }' "$out/ratios-$policy.txt" | middle)
	added=$(awk '{ printf "%.0f\n", $2 - $1 }' "$out/ratios-$policy.txt" | middle)
	detail="$percent % (bare $bare ns, added $added ns)"
	if [ $policy = even ]; then
		# An empty kernel is the worst case of a twin: its blocks cost more to claim than to run. A
		# figure to know, with no promise about it.
		say "$(printf '%-44s %-7s %s' "confined empty kernels, rate against bare" - "$detail")"
		continue
	fi
	ok=$(awk -v p="$percent" 'BEGIN { print (p >= 95 ? "yes" : "no") }')
	row "launches inside a job, rate against bare" "$ok" "$detail"
done

# Between processes, under MPS, where the machine has it.
if command -v nvidia-cuda-mps-control >/dev/null 2>&1; then
	export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$out/mps"
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	if nvidia-cuda-mps-control -d >>"$out/mps.log" 2>&1; then
		mps=true
		start_daemon --policy even --sharing mps
		start_watch mps
		three_at_once mps matmul hotspot histogram
		three_at_once mps bfs lanes volume
		three_at_once mps vecadd reduce early
		run_options=$half
		# shellcheck disable=SC2086
		managed mps-first "$apps/lanes" --lanes 1 $work 9>&- &
		first=$!
		# shellcheck disable=SC2086
		managed mps-second "$apps/lanes" --lanes 1 $work 9>&-
		wait "$first"
		run_options=
		stop_watch
		ok=no
		right mps-first && right mps-second && ok=yes
		row "two processes on two halves under MPS" "$ok" ""
		for p in first second; do
			a=$(lane mps-$p 0 blocks)
			t=$(lane mps-$p 0 gpu_ns)
			say "  $p: $(awk -v a="${a:-0}" -v t="${t:-1}" -v s="${solo:-1}" \
				'BEGIN { printf "%.1f %% of the solo rate on one half", 100 * a / t * 1e9 / s }')"
		done
		# By green contexts, or by numbers of SMs where the driver has none.
		pair=$(awk '$1 == "pair" && $2 == "processes" && ($6 == "green" || $6 == "count") {
			print $6, $4, $5; exit }' "$out/mps.seen")
		ok=no
		[ -n "$pair" ] && ok=yes
		row "two processes side by side" "$ok" "$pair"
		stop_daemon
		stop_mps
	else
		say "MPS does not start here: see mps.log"
	fi
else
	say "no MPS on this machine: what needs it was not run"
fi

if grep -hE '^(overlap|inexact) ' "$out"/*.seen; then
	row "no SM granted twice" no "see above"
else
	row "no SM granted twice" yes ""
fi
[ "$failed" -eq 0 ]
