#!/bin/sh
# daemon-cpu.sh on the simulated GPU: it counts the jobs of its programs and the CPU time of sbeetd, and says so
# when jobs are missing. What the number is is not looked at.
#
# usage: test-daemon-cpu.sh SOURCE [benchmark]; $SBEET_BUILD is the build folder.
set -eu
. "$1/../lib.sh"

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/gpu/periodic; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
cp "$gpu/daemon-cpu.sh" "$gpu/manage.sh" "$folder/"
export SIMGPU=32:mps SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu"
[ "${2:-}" = benchmark ] || export RATE=20 PROGRAMS=2 SECONDS_LONG=2 LEAD=1
logs=$folder/log

sh "$folder/daemon-cpu.sh" >"$folder/log" 2>&1 || fail "exit code $?"
grep -q '"programs":[1-9][0-9]*,"jobs_per_s":[1-9].*"sbeetd_cpu_percent":[0-9]' "$folder/log" || fail "no numbers"
[ "${2:-}" != benchmark ] || {
	cat "$folder/log"
	exit 0
}
# Programs that don't run.
rm "$folder/bin/periodic"
! sh "$folder/daemon-cpu.sh" >"$folder/log" 2>&1 || fail "jobs of nobody"
grep -q "expected" "$folder/log" || fail "nothing is said"
