#!/bin/sh
# Programs that know nothing of sbeet end under it as without, on a machine with a GPU (or on the simulated one), in the
# folder that bundle.sh made: all guests of tests/apps/guests, and those that need a real GPU (tests/gpu/guests), plain
# and then under each policy, with MPS and without. Several run at a time; one that differs is run again alone, and is
# told only if it differs then, too. A table at the end, also in $OUT/guests.txt.
#
# usage: guests.sh [POLICY[-mps][-dependent]...]     all of $columns, below; -dependent: with SBEET_DEPENDENT=1
#
# AT_ONCE (8): how many run at a time. SUBJECTS: those of $OUT's guests/ that are run (all). MAX_SMS (40): of each.
# Exit 1 if one differs.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
columns=${*:-steer-mps steer-mps-dependent even-mps fcfs-mps steer even fcfs}
guests=$here/guests
kept=$scratch/kept
mkdir "$kept"
. "$guests/compare.sh"
table=$out/guests.txt
: >"$table"

# SUBJECT:GUEST: not beside others. It wants all memory, or looks how much is free; or it faults or ends in the middle of
# its work, which under MPS the others feel.
is_alone() {
	case $1 in
	memory:nearly-all | memory:sizes | memory:errors | linked:fault | process:end-* | process:exec-* | \
		hostfn:exits-in-call) return 0 ;;
	esac
	return 1
}

# What ends in another way on a real GPU than on the simulated one, without sbeet too: the driver's threads keep a process
# whose main thread has ended, it is not there any more at exit, and it is initialised in one namespace alone.
simulated='process:end-main-thread
process:end-main-thread-idle
process:end-last-thread
process:works-at-exit
lookup:two-namespaces'

# Every guest, as SUBJECT:GUEST.
list_all() {
	for subject in ${SUBJECTS:-$(cd "$guests" && ls guest-* ./*.py | sed 's|^\./||; s/^guest-//')}; do
		guests_of "$subject" | sed "s/^/$subject:/" | grep -vxF "$simulated"
	done
}

# COLUMN SUBJECT:GUEST
run_one() {
	of=${2%%:*}
	called=${2#*:}
	kept_as=$kept/$1-$of-$called
	# shellcheck disable=SC2046 # several words
	case $1 in
	plain*) keep "$kept_as" env LD_PRELOAD="${PRELOAD:-}" $(command_of "$of") "$called" ;;
	*)
		# As managed(), of which timeout knows nothing.
		keep "$kept_as" env LD_LIBRARY_PATH="$tools_path" "$ctl" run --task guest --max-sms "${MAX_SMS:-40}" -- \
			env LD_LIBRARY_PATH="$libraries" LD_PRELOAD="$SBEET_SHIM${PRELOAD:+:$PRELOAD}" \
			$(command_of "$of") "$called"
		;;
	esac
}

# COLUMN SUBJECT:GUEST...: all of them, several at a time.
run_all() {
	column=$1
	shift
	running=
	for guest in "$@"; do
		! is_alone "$guest" || continue
		run_one "$column" "$guest" &
		running="$running $!"
		# shellcheck disable=SC2086 # words
		set_of_running $running
	done
	# shellcheck disable=SC2086
	[ -z "$running" ] || wait $running
	for guest in "$@"; do
		! is_alone "$guest" || run_one "$column" "$guest"
	done
}

# PID...: into $running, those that run; waits while there are too many.
set_of_running() {
	while :; do
		running=
		for pid in "$@"; do
			! kill -0 "$pid" 2>/dev/null || running="$running $pid"
		done
		# shellcheck disable=SC2086
		[ "$(echo $running | wc -w)" -ge "${AT_ONCE:-8}" ] || return 0
		sleep 0.02
	done
}

# COLUMN SUBJECT:GUEST...: one line of the table, and what differs.
column() {
	name=$1
	shift
	policy=${name%%-*}
	compared=0
	differing=0
	case $name in *-dependent) export SBEET_DEPENDENT=1 ;; esac
	# shellcheck disable=SC2086
	start_daemon --policy "$policy" --sharing $sharing
	run_all "$name" "$@"
	for guest in "$@"; do
		plain_as "$guest"
		if judge "$name" "${guest%%:*}" "${guest#*:}" >/dev/null; then
			continue
		fi
		differing=$((differing - 1))
		compared=$((compared - 1))
		run_one "$name" "$guest"
		judge "$name" "${guest%%:*}" "${guest#*:}" || :
	done
	stop_daemon
	unset SBEET_DEPENDENT
	echo "$name: $compared compared, $differing differ" | tee -a "$table"
	[ "$differing" -eq 0 ] || failed=1
}

# SUBJECT:GUEST: judge() compares with the plain run of this sharing mode.
plain_as() {
	for what in out err end; do
		cp "$kept/plain-$sharing-${1%%:*}-${1#*:}.$what" "$kept/plain-${1%%:*}-${1#*:}.$what"
	done
}

# MODE: of all columns that have it.
columns_of() {
	for name in $columns; do
		case $name in
		*-mps*) [ "$1" = exclusive ] || echo "$name" ;;
		*) [ "$1" = mps ] || echo "$name" ;;
		esac
	done
}

failed=0
all=$(list_all)
for sharing in mps exclusive; do
	[ -n "$(columns_of $sharing)" ] || continue
	[ $sharing = exclusive ] || start_mps
	began=$(date +%s)
	# shellcheck disable=SC2086 # words
	run_all plain-$sharing $all
	names=
	for guest in $all; do
		plain_as "$guest"
		! judge_plain "${guest%%:*}" "${guest#*:}" || names="$names $guest"
	done
	[ "$differing" -eq 0 ] || failed=1
	echo "plain, $sharing: $(echo "$names" | wc -w) to compare, $differing broken, $(($(date +%s) - began)) s" | tee -a "$table"
	for name in $(columns_of $sharing); do
		# shellcheck disable=SC2086
		column "$name" $names
	done
	differing=0
	stop_mps
done
[ -z "$skipped" ] || echo "skipped:$skipped" | sort -u
cat "$table"
tar -C "$scratch" -czf "$out/guests.tar.gz" kept
exit $failed
