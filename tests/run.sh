#!/bin/sh
# Installs what is missing, builds, and runs all tests but the benchmarks.
#
# usage: run.sh [--quick | --threads]
#	--quick		only the main build, not the three others (sanitizers, without cuda.h, release)
#	--threads	only the shim's library and its tests, and the simulated GPU's worker threads, with
#			thread sanitizer, in a build of their own
#
# The last line is "N passed, N failed, N skipped": one count a test, and one for a build that is made
# but not tested. Exit 0 if nothing failed.
set -u

cd "$(dirname "$0")/.." || exit 1
quick=false
threads=false
rebuild=--no-rebuild # what is tested has been built
case ${1:-} in
'') ;;
--quick) quick=true ;;
--threads) threads=true ;;
*)
	echo "usage: $0 [--quick | --threads]" >&2
	exit 2
	;;
esac

clang=$(command -v clang)
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

# Configures if need be and builds. FOLDER OPTIONS...
build() {
	folder=$1
	shift
	mkdir -p "$folder"
	log=$folder/run-build.log
	if sh tests/configure.sh "$folder" "$@" >"$log" 2>&1 && ninja -C "$folder" >>"$log" 2>&1; then
		return 0
	fi
	tail -n 60 "$log"
	echo "Building in $folder/ failed; the whole log is $log"
	failed=$((failed + 1))
	return 1
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
	meson test -C "$folder" $rebuild --print-errorlogs "$@"
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

if [ "$threads" = true ]; then
	rebuild=
	step "tests with thread sanitizer"
	CC=${clang:-cc} sh tests/configure.sh build-tsan -Db_sanitize=thread -Db_lundef=false \
		>/dev/null || exit 1
	TSAN_OPTIONS=halt_on_error=1 run_tests build-tsan shim-linked shim-guest-linked shim-env shim-link \
		shim-records shim-twin shim-wait enforce kernel plan table simgpu-ahead
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
		run_tests build-nocuda --suite apps
	fi
	step "build for release (-O2, no asserts, warnings are errors)"
	if build build-release -Dbuildtype=release -Db_ndebug=true -Dwerror=true; then
		passed=$((passed + 1))
	fi
	step "build with address and undefined-behaviour sanitizers"
	if build build-asan -Db_sanitize=address,undefined -Db_lundef=false; then
		step "unit tests with sanitizers"
		run_tests build-asan --suite unit
	fi
fi

step "done"
finish
