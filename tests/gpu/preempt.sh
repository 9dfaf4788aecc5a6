#!/bin/sh
# Preemption between programs without MPS, in the folder that bundle.sh made: an urgent kernel of 79 us,
# or of 4 ms, beside 1, 2, 4 other programs of endless kernels whose blocks take 680 us, alone, by the
# GPU's time slices, under sbeet, and under sbeet with turns. Some 100 s; the table is on $OUT/preempt.txt, too.
#
# Columns: us from the wake-up to the result, of the short and of the long kernel; the others' rate, in
# percent of what the time that no urgent job was open allows (1 - open) of their rate alone.
#
# usage: preempt.sh [NUMBER...]		how many others; 1 2 4 if not given
#
# WINDOW_S, WARM_S, SHORT_US, LONG_US, BLOCK_US: seconds of each cell and before it, kernels. TURN (20ms): how long
# turns are. WAYS (slices sbeet turns): those measured. ROUNDS="SHORT LONG BLOCK": as
# rounds of arithmetic instead. PRELOAD: more libraries for sbeetd and all programs. JOBS=yes: each urgent job's
# time and response on $OUT/jobs-*.txt.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
window=${WINDOW_S:-3}
page=$scratch/page
lower=

say() {
	echo "$*" | tee -a "$out/preempt.txt"
}

urgent() {
	plain "$here/bin/urgent" "$@"
}

# HOW OPTIONS... -- ARGUMENTS...
run() {
	how=$1
	shift
	if [ "$how" = sbeet ] || [ "$how" = turns ]; then
		options=
		while [ "$1" != -- ]; do
			options="$options $1"
			shift
		done
		shift
		# shellcheck disable=SC2086 # several words
		managed $options -- "$here/bin/urgent" "$@"
	else
		while [ "$1" != -- ]; do
			shift
		done
		shift
		urgent "$@"
	fi
}

start_lower() { # HOW NUMBER
	: >"$page"
	rm -f "$page"
	i=0
	while [ $i -lt "$2" ]; do
		run "$1" --task "lower-$i" -- lower "$page" $i "$block_rounds" >>"$scratch/lower.log" 2>&1 &
		lower="$lower $!"
		i=$((i + 1))
	done
}

stop_lower() {
	urgent stop "$page"
	for pid in $lower; do
		wait "$pid" || say "a program ended with $?: $(tail -n 3 "$scratch/lower.log")"
	done
	lower=
}

# HOW NUMBER: a line of the table.
row() {
	how=$1
	number=$2
	start_lower "$how" "$number"
	# sbeetd finds out with the first jobs what it can do, and whose turn it is: nobody counts them.
	warm=0
	[ "$how" != sbeet ] && [ "$how" != turns ] || warm=${WARM_S:-0.5}
	[ -z "${JOBS:-}" ] || export URGENT_LOG="$out/jobs-$how-$number-short.txt"
	short=$(run "$how" --task camera --class realtime --period 2500us -- \
		jobs "$page" "$number" "$short_rounds" 2500 "$window" "$warm")
	[ -z "${JOBS:-}" ] || export URGENT_LOG="$out/jobs-$how-$number-long.txt"
	long=$(run "$how" --task camera --class realtime --period 16ms -- \
		jobs "$page" "$number" "$long_rounds" 16000 "$window" "$warm")
	stop_lower
	echo "$short $long" | awk -v how="$how" -v n="$number" -v alone="$rate_alone" '{
		printf "%-12s %6d | %6d %6d %6d | %6d %6d %6d |", how, n, $2, $3, $4, $8, $9, $10
		if (n > 0 && alone > 0) {
			printf " %6.1f %% %6.1f %%", 100 * $5 / alone / (1 - $6 / 100), \
				100 * $11 / alone / (1 - $12 / 100)
		}
		print ""
	}' | tee -a "$out/preempt.txt"
}

: >"$out/preempt.txt"
[ $# -gt 0 ] || set -- 1 2 4
if pgrep -x nvidia-cuda-mps-control >/dev/null 2>&1; then
	say "MPS is running; stop it first (echo quit | nvidia-cuda-mps-control)"
	exit 1
fi
if [ -n "${ROUNDS:-}" ]; then
	# shellcheck disable=SC2086 # three words
	read -r short_rounds long_rounds block_rounds <<-END
		$ROUNDS
	END
else
	short_rounds=$(urgent rounds "${SHORT_US:-79}") && long_rounds=$(urgent rounds "${LONG_US:-4000}") &&
		block_rounds=$(urgent rounds "${BLOCK_US:-680}") || exit 1
fi
rate_alone=0
start_lower alone 1
rate_alone=$(urgent idle "$page" 1 "$window")
stop_lower
say "one other alone: $rate_alone kernels a second; rounds $short_rounds $long_rounds $block_rounds"
say "how          others |  short p50, p99, max |   long p50, p99, max | others: short, long"
row alone 0
for way in ${WAYS:-slices sbeet turns}; do
	case $way in
	sbeet) start_daemon --policy steer --log-level debug ;;
	turns) start_daemon --policy steer --turn "${TURN:-20ms}" --log-level debug ;;
	esac
	for number; do
		row "$way" "$number"
	done
	[ "$way" = slices ] || {
		stop_daemon
		grep -h "preempted\|time slices\|turns" "$scratch/sbeetd.log" | tail -n 6 | tee -a "$out/preempt.txt"
	}
done
