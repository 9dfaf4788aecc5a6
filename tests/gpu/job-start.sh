#!/bin/sh
# Runs on a machine with a GPU and Python (or on the simulated one) in the folder that bundle.sh made: what a job's
# start, a launch inside it and its end cost under libsbeet.so, against the same program without it, in turns of
# some milliseconds within one process (bench/job-start.c). JSON lines in $OUT/job-start.txt, and a summary, also in
# $OUT/job-start-summary.txt.
#
# Conditions: asked (policy fcfs: each job asks sbeetd), terms (policy steer, whole GPU), terms-set (policy
# steer, a green context of MAX_SMS SMs). Each back to back and with 1 ms between jobs.
#
# Where a process happens to lie counts, so each is measured in several of them. At the end, for each condition,
# pause and operation, the median of what the processes say, its 95 % interval (order statistics; of fewer than
# six the least and the most), and the same of the p99.
#
# CONDITIONS (asked terms terms-set), PAUSES ("0 1000", in us), PROCESSES (20), ROUNDS (200; of four turns, by all
# processes together), JOBS (50 and, with pauses, 10 in a turn), MAX_SMS (64), CPUS (4-7 where there are 8): the
# defaults take a minute or two. IMAGE=FOLDER/nothing.cubin: machine code instead of PTX.
# Exit 1 if jobs did not run as the condition says.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
failed=0
processes=${PROCESSES:-20}
rounds=$((${ROUNDS:-200} / processes))
[ "$rounds" -gt 0 ] || {
	echo "job-start.sh: ROUNDS must be at least PROCESSES ($processes)" >&2
	exit 2
}
on=
[ "$(nproc)" -lt 8 ] || on="taskset -c ${CPUS:-4-7}"

# The program, which lives until we close its input, is kept to a set.
await_set() {
	tries=0
	until tool "$ctl" task explain job-start 2>/dev/null | grep -q "SMs [0-9]"; do
		tries=$((tries + 1))
		if ! kill -0 "$program" 2>/dev/null || [ "$tries" -gt 200 ]; then
			echo "job-start.sh: the program had no set" >&2
			return 1
		fi
		sleep 0.05
	done
}

# CONDITION PAUSE OPTIONS...: by one process; of `sbeetctl run`.
measure_process() {
	condition=$1
	pause=$2
	shift 2
	jobs=${JOBS:-50}
	[ "$pause" -eq 0 ] || jobs=${JOBS:-10}
	# shellcheck disable=SC2086 # several words
	managed --task job-start "$@" --require -- \
		$on "$here/bin/job-start" "$condition" "$here/lib/libbypass.so" "$pause" "$rounds" "$jobs" hold \
		<"$scratch/hold" >"$scratch/lines" &
	program=$!
	measured=0
	exec 9>"$scratch/hold"
	[ "$condition" != terms-set ] || await_set || measured=1
	exec 9>&-
	wait "$program" || measured=1
	# A first turn, and half of the others, two jobs of each to warm up: the shim sees nothing of the rest.
	seen=$((seen + (1 + 2 * rounds) * (jobs + 2)))
	cat "$scratch/lines" >>"$out/job-start.txt"
	return $measured
}

# CONDITION OPTIONS...
measure() {
	kind=$1
	shift
	for pause in ${PAUSES:-0 1000}; do
		process=0
		while [ $process -lt "$processes" ]; do
			measure_process "$kind" "$pause" "$@" || {
				failed=1
				break
			}
			process=$((process + 1))
		done
	done
}

# All jobs with the shim were seen and no others, and asked for all, or for none.
# shellcheck disable=SC2317 # within() calls it
ran_as() { # CONDITION
	tool "$ctl" status --json=short >"$scratch/status"
	jobs=$(sed -n 's/.*"jobs_done": *\([0-9]*\).*/\1/p' "$scratch/status")
	grants=$(sed -n 's/.*"grants": *\([0-9]*\).*/\1/p' "$scratch/status")
	[ "$1" = asked ] && wanted=$jobs || wanted=0
	[ "${jobs:-0}" -eq "$seen" ] && [ "${grants:-0}" -eq "$wanted" ]
}

# sbeetd may hear us before it hears the program's last words.
check() { # CONDITION
	within 10 ran_as "$1" || {
		echo "job-start.sh: $1: $jobs jobs instead of $seen, $grants of them were asked for" >&2
		failed=1
	}
}

: >"$out/job-start.txt"
mkfifo "$scratch/hold"
start_mps
for condition in ${CONDITIONS:-asked terms terms-set}; do
	seen=0
	case $condition in
	asked)
		start_daemon --policy fcfs --sharing mps
		measure asked
		;;
	terms)
		start_daemon --policy steer --sharing mps
		measure terms
		;;
	terms-set)
		start_daemon --policy steer --sharing mps
		measure terms-set --max-sms "${MAX_SMS:-64}"
		;;
	*)
		echo "job-start.sh: no condition '$condition'" >&2
		failed=1
		continue
		;;
	esac
	check "$condition"
	stop_daemon
done
python3 "$here/frameworks/job-start.py" <"$out/job-start.txt" | tee "$out/job-start-summary.txt"
exit $failed
