# shellcheck shell=sh
# compare.sh: runs guests and compares how they end with sbeet and without. Sourced by guests.sh here and by that of
# tests/gpu. The sourcing script sets $guests, the folder with the programs, and $kept, a folder for what they say.

guest_seconds=${GUEST_SECONDS:-60} # of which a guest takes one or two; longer is a hang
ulimit -c 0
differing=0
compared=0
skipped=

export GUEST_LIBRARIES="$guests"

# SUBJECT: its guests.
guests_of() {
	case $1 in
	*.py) python3 "$guests/$1" --list ;;
	*) "$guests/guest-$1" --list ;;
	esac
}

# SUBJECT: what it is started by.
command_of() {
	case $1 in
	*.py) echo "python3 $guests/$1" ;;
	*) echo "$guests/guest-$1" ;;
	esac
}

# FILE COMMAND...: what it says and how it ends, in files.
keep() {
	file=$1
	shift
	timeout -k 5 "$guest_seconds" "$@" >"$file.out" 2>"$file.err" </dev/null
	case $? in
	124 | 137) echo "hangs" ;; # no guest ends so by itself
	*) echo "ends with $?" ;;
	esac >"$file.end"
}

# FILE: without what libsbeet.so, sbeetctl and the simulated GPU say.
errors_of() {
	grep -v -e '^sbeet:' -e '^sbeetctl: warning:' -e '^simgpu' "$1.err"
}

# WHERE SUBJECT GUEST: says what differs from the run without sbeet, and fails then.
judge() {
	as=$kept/plain-$2-$3
	is=$kept/$1-$2-$3
	compared=$((compared + 1))
	errors_of "$as" >"$as.said"
	errors_of "$is" >"$is.said"
	if cmp -s "$as.end" "$is.end" && cmp -s "$as.out" "$is.out" && cmp -s "$as.said" "$is.said"; then
		return
	fi
	differing=$((differing + 1))
	echo "DIFFERENT: $2 $3 under $1: $(cat "$is.end"), without sbeet it $(cat "$as.end")"
	for what in out said; do
		for side in '<' '>'; do
			diff "$as.$what" "$is.$what" | sed -n "s/^$side/    &/p" | head -n 4
		done
	done
	grep '^sbeet:' "$is.err" | sed 's/^/    /' | head -n 4
	return 1
}

# SUBJECT GUEST: how it ended without sbeet. Fails if there is nothing to compare.
judge_plain() {
	as=$kept/plain-$1-$2
	case $(cat "$as.end") in
	"ends with 77")
		skipped="$skipped
$1 $2: $(sed -n 's/^skipped: //p' "$as.out" | head -n 1)"
		return 1
		;;
	"ends with 2" | "ends with 1" | hangs) ;;
	*) grep -qE '(^|[:,] )[1-9][0-9]* (of [0-9]+ )?(values |words )?wrong|^FAILED' "$as.out" || return 0 ;;
	esac
	differing=$((differing + 1))
	echo "BROKEN: $1 $2 without sbeet: $(cat "$as.end")"
	head -n 8 "$as.out" "$as.err" | sed 's/^/    /'
	return 1
}

summary() {
	[ -z "$skipped" ] || echo "skipped:$skipped"
	echo "$compared runs compared, $differing differ"
}
