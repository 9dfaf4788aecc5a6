# shellcheck shell=sh
# lib.sh: what all shell tests share. Sourced by them. $logs: the files, as patterns, that tell what happened.
logs=

# MESSAGE...: ends the test.
fail() {
	echo "FAILED: $*"
	for file in $logs; do
		[ -s "$file" ] || continue
		echo "--- ${file##*/}"
		tail -n 60 "$file"
	done
	exit 1
}

# WHAT COMMAND...: waits until the command succeeds. The limit is only there so that a hang ends in a message.
until_true() {
	what=$1
	shift
	tries=0
	until "$@" >/dev/null 2>&1; do
		tries=$((tries + 1))
		[ "$tries" -le 1200 ] || fail "waited in vain: $what"
		sleep 0.05
	done
}
