#!/bin/sh
# Installs what is missing, builds, and runs all tests but the benchmarks.
#
# usage: run.sh [--quick | --long | --threads]
#	--quick		only the main build, not the others (clang, release, sanitizers, fuzzing)
#	--long		the functional tests with clang too, a minute of fuzzing a target instead of 10 s, ten of
#			an attack on sbeetd instead of one, and the unit tests of a build for arm64 under qemu, where Debian's packages are to be had
#	--threads	only the shim's library and its tests, and the simulated GPU's worker threads, with
#			thread sanitizer, in a build of their own
#
# The last line is "N passed, N failed, N skipped": one count a test, and one for a build that is made
# but not tested, or that can't be made here. Exit 0 if nothing failed.
set -u

cd "$(dirname "$0")/.." || exit 1
quick=false
threads=false
fuzz_s=10
attack_s=30 # under each of two policies
long=
shim_tests="shim-linked shim-daemons-linked shim-guest-linked shim-marks-linked shim-terms-linked"
rebuild=--no-rebuild # what is tested has been built
# Unit tests of other processors that qemu-user can't run, and why.
arm64_without="preempter: the process that it starts filters its system calls by seccomp, and ends at once there
packet: one test finds a file more open than on a real kernel, after descriptors that were cut off
simgpu-memory: freed memory is cleared by madvise(MADV_REMOVE), which qemu-user passes over"
case ${1:-} in
'') ;;
--quick) quick=true ;;
--long)
	fuzz_s=60
	attack_s=300
	long="--suite func"
	;;
--threads) threads=true ;;
*)
	echo "usage: $0 [--quick | --long | --threads]" >&2
	exit 2
	;;
esac

# What tests take for granted, whatever calls this: standard input, files that others may read, a thousand
# descriptors, and a path that LD_PRELOAD can name.
exec </dev/null
umask 022
[ "$(ulimit -n)" = unlimited ] || [ "$(ulimit -n)" -ge 1024 ] || ulimit -S -n 1024 || {
	echo "The tests need 1024 descriptors, and only $(ulimit -H -n) are allowed here" >&2
	exit 1
}
case $PWD in
*[\ :]*)
	echo "$PWD: sbeet can't be tested in a path with a space or a colon, which LD_PRELOAD does not take" >&2
	exit 1
	;;
esac

passed=0
failed=0
skipped=0
began=$(date +%s)

step() {
	printf '== %s (%d s)\n' "$1" $(($(date +%s) - began))
}

finish() {
	if [ "$failed" -gt 0 ]; then
		echo "Logs: build*/meson-logs/testlog.txt and build*/run-*.log in $PWD"
	fi
	echo "$passed passed, $failed failed, $skipped skipped"
	[ "$failed" -eq 0 ]
	exit
}

# FOLDER
build_failed() {
	tail -n 60 "$1/run-build.log"
	echo "Building in $1/ failed; the whole log is $1/run-build.log"
	failed=$((failed + 1))
	return 1
}

# FOLDER OPTIONS...
configure() {
	mkdir -p "$1"
	sh tests/configure.sh "$@" >"$1/run-build.log" 2>&1 || build_failed "$1"
}

# Configures if need be and builds. FOLDER OPTIONS...
build() {
	configure "$@" || return 1
	ninja -C "$1" >>"$1/run-build.log" 2>&1 || build_failed "$1"
}

# How many tests of the last run in FOLDER ended so. FOLDER RESULT...
count() {
	results=$1/meson-logs/testlog.json
	shift
	n=0
	for result in "$@"; do
		n=$((n + $(grep -c "\"result\": \"$result\"" "$results")))
	done
	echo "$n"
}

# FOLDER MESON-TEST-OPTIONS...
run_tests() {
	folder=$1
	shift
	rm -f "$folder/meson-logs/testlog.json"
	# Limits end what hangs. They are no statement on speed: the CPUs may be somebody else's for a while.
	meson test -C "$folder" $rebuild --print-errorlogs --num-processes "$jobs" --timeout-multiplier 4 "$@"
	rc=$?
	if ! [ -f "$folder/meson-logs/testlog.json" ]; then
		echo "meson test in $folder/ left no results (exit code $rc)"
		failed=$((failed + 1))
		return
	fi
	bad=$(count "$folder" FAIL TIMEOUT ERROR INTERRUPT UNEXPECTEDPASS)
	if [ "$rc" -ne 0 ] && [ "$bad" -eq 0 ]; then
		bad=1 # meson saw something fail that is none of the results above
	fi
	passed=$((passed + $(count "$folder" OK EXPECTEDFAIL)))
	failed=$((failed + bad))
	skipped=$((skipped + $(count "$folder" SKIP)))
}

step "what is needed"
sh tests/prepare.sh --wishes || exit 1
clang=$(command -v clang)
jobs=$((3 * $(nproc))) # many tests mostly sleep

if [ "$threads" = true ]; then
	rebuild=
	step "tests with thread sanitizer"
	CC=${clang:-cc} configure build-tsan -Db_sanitize=thread -Db_lundef=false || finish
	TSAN_OPTIONS=halt_on_error=1 run_tests build-tsan shim-linked shim-daemons-linked shim-guest-linked \
		shim-env shim-job shim-link shim-records shim-twin shim-wait enforce kernel plan table simgpu-ahead
	step "done"
	finish
fi

step "build"
if build build; then
	step "tests"
	run_tests build --no-suite bench
fi

if [ "$quick" = false ]; then
	step "build without the toolkit's cuda.h, warnings are errors${clang:+, with clang}"
	if CC=${clang:-cc} build build-nocuda -Dcuda-header=disabled -Dwerror=true; then
		step "unit tests and the shim's functional tests of that build${long:+, and all others}"
		run_tests build-nocuda --suite unit
		# shellcheck disable=SC2086 # several words
		run_tests build-nocuda ${long:---no-suite bench $shim_tests}
	fi
	if [ -z "$clang" ]; then
		echo "There is no clang here: the tests ran with cc once more"
		skipped=$((skipped + 1))
	fi
	step "build for release (-O2, no asserts, warnings are errors)"
	if build build-release -Dbuildtype=release -Db_ndebug=true -Dwerror=true -Dtests=false; then
		passed=$((passed + 1))
	fi
	rebuild= # of the next two, only what is tested is built
	step "unit tests with address and undefined-behaviour sanitizers"
	if configure build-asan -Db_sanitize=address,undefined -Db_lundef=false; then
		run_tests build-asan --suite unit
		step "an attack on sbeetd with these sanitizers"
		export ATTACK_S=$attack_s
		run_tests build-asan daemon-attack
		unset ATTACK_S
	fi
	step "fuzzing, $fuzz_s s a target"
	if ! sh tests/prepare.sh --fuzzer; then
		echo "Nothing is fuzzed here: there is no clang, or it has no libFuzzer"
		skipped=$((skipped + 1))
	elif CC=clang configure build-fuzz -Db_sanitize=address,undefined -Db_lundef=false \
		-Dfuzz=true; then
		jobs=$(nproc) # fuzzers do not sleep
		run_tests build-fuzz --suite fuzz --test-args="-max_total_time=$fuzz_s"
	fi
fi

if [ -n "$long" ]; then
	step "build for arm64, and its unit tests under qemu"
	sh tests/prepare.sh --arm64
	sh tests/arm64.sh build-arm64 >build-arm64-build.log 2>&1
	case $? in
	0)
		rebuild=
		names=$(meson test -C build-arm64 --list --suite unit 2>/dev/null | sed -n 's|.* / ||p')
		for name in $(echo "$arm64_without" | cut -d: -f1); do
			names=$(echo "$names" | grep -vx "$name")
			skipped=$((skipped + 1))
		done
		echo "Left out under qemu:"
		echo "$arm64_without"
		# shellcheck disable=SC2086 # words
		run_tests build-arm64 --suite unit --timeout-multiplier 40 $names
		;;
	77)
		tail -n 1 build-arm64-build.log
		skipped=$((skipped + 1))
		;;
	*)
		tail -n 60 build-arm64-build.log
		failed=$((failed + 1))
		;;
	esac
fi

step "done"
finish
