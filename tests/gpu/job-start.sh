#!/bin/sh
# Runs on a machine with a GPU (or on the simulated one) in the folder that bundle.sh made: what a job's
# start, a launch inside it and its end cost under libsbeet.so, against the same program without it, in turns
# of some milliseconds (bench/job-start.c). JSON lines, also in $OUT/job-start.txt.
#
# Conditions: asked (policy fcfs: each job asks sbeetd), terms (policy steer, whole GPU), terms-set (policy
# steer, a green context of MAX_SMS SMs). Each back to back and with 1 ms between jobs.
#
# CONDITIONS (asked terms terms-set), PAUSES ("0 1000", in us), ROUNDS (100; of four turns), JOBS (50 and, with
# pauses, 10 in a turn), MAX_SMS (64), CPUS (4-7 where there are 8): the defaults take some 40 s.
# Exit 1 if jobs did not run as the condition says.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
failed=0
on=
[ "$(nproc)" -lt 8 ] || on="taskset -c ${CPUS:-4-7}"

# The program, which lives until we close its input, is kept to a set.
await_set() {
	tries=0
	until tool "$ctl" task explain job-start 2>/dev/null | grep -q "SMs [0-9]"; do
		tries=$((tries + 1))
		kill -0 "$program" 2>/dev/null && [ "$tries" -le 200 ] || {
			echo "job-start.sh: the program had no set" >&2
			failed=1
			return
		}
		sleep 0.05
	done
}

# CONDITION OPTIONS...: of `sbeetctl run`.
measure() {
	condition=$1
	shift
	for pause in ${PAUSES:-0 1000}; do
		jobs=${JOBS:-50}
		[ "$pause" -eq 0 ] || jobs=${JOBS:-10}
		# shellcheck disable=SC2086 # several words
		managed --task job-start "$@" --require -- \
			$on "$here/bin/job-start" "$condition" "$pause" "${ROUNDS:-100}" "$jobs" hold \
			<"$scratch/hold" >"$scratch/lines" &
		program=$!
		exec 9>"$scratch/hold"
		[ "$condition" != terms-set ] || await_set
		exec 9>&-
		wait "$program" || failed=1
		tee -a "$out/job-start.txt" <"$scratch/lines"
	done
}

# Jobs ran, and asked for all, or for none.
ran_as() { # CONDITION
	tool "$ctl" status --json=short >"$scratch/status"
	jobs=$(sed -n 's/.*"jobs_done": *\([0-9]*\).*/\1/p' "$scratch/status")
	grants=$(sed -n 's/.*"grants": *\([0-9]*\).*/\1/p' "$scratch/status")
	[ "$1" = asked ] && wanted=$jobs || wanted=0
	[ "${jobs:-0}" -gt 0 ] && [ "${grants:-0}" -eq "$wanted" ]
}

# sbeetd may hear us before it hears the program's last words.
check() { # CONDITION
	tries=0
	until ran_as "$1"; do
		tries=$((tries + 1))
		[ "$tries" -le 200 ] || {
			echo "job-start.sh: $1: $jobs jobs, $grants of them were asked for" >&2
			failed=1
			return
		}
		sleep 0.05
	done
}

: >"$out/job-start.txt"
mkfifo "$scratch/hold"
start_mps
for condition in ${CONDITIONS:-asked terms terms-set}; do
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
exit $failed
