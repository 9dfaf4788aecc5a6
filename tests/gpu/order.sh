#!/bin/sh
# The order of work in streams, on a machine with a GPU and MPS (or on the simulated one), in the folder that bundle.sh
# made: random work in streams of every kind (order), and a CUDA graph (graph), whose results say whether the order was
# kept. Without sbeet, then two of each beside each other under each policy, while their SM sets change all the time.
# A line for each run, also in $OUT/order.txt; what a program said is beside it.
#
# FRAMES (400): of each program. SEED (1): of the first of each two, the second one has the next; the same in each run.
# POLICIES (steer even). PROGRAMS ("order graph").
# SBEET_DEPENDENT=1: under the shim kernels are launched as dependent ones; without it code is left alone.
# Exit 1 if a result was wrong.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
failed=0
frames=${FRAMES:-400}
seed=${SEED:-1}
programs=${PROGRAMS:-order graph}
table=$out/order.txt
: >"$table"

field() { # NAME FILE
	sed -n "s/.*\"$1\":\([0-9a-z]*\).*/\1/p" "$2" | tail -n 1
}

# PROGRAM N: its command.
command_of() {
	echo "$here/bin/$1 --frames $frames --seed $((seed + $2 - 1)) --json"
}

# RUN
report() {
	wrong=$(field wrong "$out/$1.txt")
	[ "$(field ok "$out/$1.txt")" = true ] || failed=1
	echo "$1: ${wrong:-no} results wrong in $frames frames" | tee -a "$table"
}

any_runs() {
	for pid in $running; do
		! kill -0 "$pid" 2>/dev/null || return 0
	done
	return 1
}

start_mps
for program in $programs; do
	for n in 1 2; do
		# shellcheck disable=SC2046 # several words
		plain $(command_of "$program" $n) >"$out/plain-$program-$n.txt" 2>&1
		report "plain-$program-$n"
	done
done
for policy in ${POLICIES:-steer even}; do
	start_daemon --policy "$policy" --sharing mps
	running=
	tasks=
	for program in $programs; do
		for n in 1 2; do
			tasks="$tasks $program-$n"
			# shellcheck disable=SC2046 # several words
			managed --task "$program-$n" -- $(command_of "$program" $n) \
				>"$out/$policy-$program-$n.txt" 2>&1 &
			running="$running $!"
		done
	done
	flips=0
	while any_runs; do
		# shellcheck disable=SC2086 # several words
		flip_sets $tasks
		flips=$((flips + 1))
	done
	for pid in $running; do
		wait "$pid"
	done
	for program in $programs; do
		report "$policy-$program-1"
		report "$policy-$program-2"
	done
	echo "$policy: other sets $((flips * 2)) times for each" | tee -a "$table"
	stop_daemon
done
exit $failed
