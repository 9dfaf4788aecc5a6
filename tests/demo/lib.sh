# shellcheck shell=sh
# lib.sh: what tests/demo.sh and tests/sim.sh share. Sourced by them in the project's root; $me is the
# name in messages, which go to stderr. With $SBEET_BUILD, a build folder that is complete, nothing is
# installed or built.
build=${SBEET_BUILD:-build}
case $build in /*) build_path=$build ;; *) build_path=$PWD/$build ;; esac
ctl=$build_path/client/sbeetctl

note() {
	printf '%s\n' "$me: $*" >&2
}

die() {
	note "$*"
	exit 1
}

# LOG MESSAGE: the end of the log, then die.
die_with() {
	tail -n 30 "$1" >&2
	die "$2, see $1"
}

# TARGET: installs what is missing, configures if need be, and builds. Tells how far it is.
prepare() {
	[ -z "${SBEET_BUILD:-}" ] || return 0
	sh tests/prepare.sh -q >&2 || exit 1
	mkdir -p "$build"
	log=$build/$me-build.log
	if [ "$1" = demo ] || [ ! -f "$build/build.ninja" ]; then
		sh tests/configure.sh "$build" >"$log" 2>&1 || die_with "$log" "cannot configure"
	fi
	ninja -C "$build" "$1" >"$log" 2>&1 &
	maker=$!
	ticks=0
	while kill -0 "$maker" 2>/dev/null; do
		sleep 0.2
		ticks=$((ticks + 1))
		if [ $((ticks % 10)) -eq 0 ]; then
			note "building $(tail -n 1 "$log" | sed -n 's/^\(\[[0-9]*\/[0-9]*\]\).*/\1/p')"
		fi
	done
	wait "$maker" || die_with "$log" "building failed"
}

# PID LOG: until sbeetd answers.
wait_for_daemon() {
	tries=0
	until "$ctl" status --json >/dev/null 2>&1; do
		kill -0 "$1" 2>/dev/null || die_with "$2" "sbeetd ended"
		tries=$((tries + 1))
		[ "$tries" -le 600 ] || die_with "$2" "sbeetd does not answer"
		sleep 0.1
	done
}
