#!/bin/sh
# job-start.sh on the simulated GPU: each condition has a line for each operation and pause, jobs ask or don't
# as it says, those without the shim are not seen, and where there is no set to be had, that is told. What the
# numbers are is not looked at.
#
# usage: test-job-start.sh SOURCE [benchmark]; $SBEET_BUILD is the build folder.
set -eu
. "$1/../lib.sh"

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/bench/job-start; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$SBEET_BUILD/tests/bench/libbypass.so" "$folder/lib/"
cp "$gpu/job-start.sh" "$gpu/manage.sh" "$folder/"
ln -s "$gpu/frameworks" "$folder/"
export SIMGPU=32:mps SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu" MAX_SMS=16
export PYTHONDONTWRITEBYTECODE=1
[ "${2:-}" = benchmark ] || export PROCESSES=2 ROUNDS=2 JOBS=20
lines=$folder/out/job-start.txt
logs="$folder/log $lines"

sh "$folder/job-start.sh" >"$folder/log" 2>&1 || fail "exit code $?"
for condition in asked terms terms-set; do
	for pause in 0 1000; do
		[ "${2:-}" = benchmark ] || grep -q "^$condition, after $pause us: launch inside: .* in 2 processes" "$folder/log" ||
			fail "$condition, $pause: no summary"
		n=$(grep "\"case\":\"$condition\",\"pause_us\":$pause," "$lines" |
			grep -c '"with_p50_ns":[1-9].*"with_p99_ns":[1-9]') || :
		[ "$n" -eq $((3 * ${PROCESSES:-20})) ] || fail "$condition, $pause: $n operations"
	done
done
[ "${2:-}" != benchmark ] || {
	cat "$lines"
	exit 0
}
# A GPU that is too small for groups of SMs.
! SIMGPU=t400:mps CONDITIONS=terms-set sh "$folder/job-start.sh" >"$folder/log" 2>&1 || fail "a set of nothing"
grep -q "had no set" "$folder/log" || fail "nothing is said"
