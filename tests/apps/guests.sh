#!/bin/sh
# Programs that know nothing of sbeet end under it as without: the guests of a subject (guests/), each plain on the
# simulated GPU and then under each policy, on half of the GPU. Whatever differs is told.
#
# usage: guests.sh MODE SUBJECT [GUEST...]     MODE: the GPU's sharing mode, mps or exclusive
. "$(dirname "$0")/lib.sh"

mode=$1
subject=$2
shift 2
guests=$SBEET_BUILD/tests/apps/guests
kept=$scratch
. "$(dirname "$0")/guests/compare.sh"

export SIMGPU="32:$mode,32:$mode"
# Those that it can be compared for.
names=
for guest in ${*:-$(guests_of "$subject")}; do
	# shellcheck disable=SC2046 # several words
	keep "$kept/plain-$subject-$guest" $(command_of "$subject") "$guest"
	! judge_plain "$subject" "$guest" || names="$names $guest"
done
[ -n "$(guests_of "$subject")" ] || fail "no guests"
for policy in ${POLICIES:-fcfs even steer}; do
	start_daemon --policy "$policy"
	for guest in $names; do
		# shellcheck disable=SC2046
		keep "$kept/$policy-$subject-$guest" "$ctl" run --task guest --max-sms 16 -- \
			$(command_of "$subject") "$guest"
		judge "$policy" "$subject" "$guest" || :
	done
	all_is_free
	stop_daemon
done
summary
[ "$differing" -eq 0 ] || exit 1
say "ok"
