#!/bin/sh
# Runs on a machine with a GPU and Python with PyTorch, in the folder that bundle.sh made: frames that PyTorch
# marks by ranges of NVTX are jobs, and the results are those without sbeet.
#
# usage: ranges.sh      POLICIES ("steer even"), PROGRAM (python3 frameworks/ranges.py), FRAMES (40)
#
# PROGRAM marks each of its FRAMES by a range "frame", waits twice within it, and tells its results in a line
# "report ...", or "ok":true in JSON.
#
# A line for each policy is in $OUT/ranges.txt (stdout, too). Exit 0 if all are as they should be.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
program=${PROGRAM:-python3 $here/frameworks/ranges.py}
frames=${FRAMES:-40}

results() { # NAME
	sed -n 's/^report //p; s/.*"ok":\([a-z]*\).*/\1/p' "$scratch/$1.out"
}

# NAME OPTION...: under the shim; $jobs: how many it had
marked() {
	name=$1
	shift
	before=$(jobs_done)
	# shellcheck disable=SC2086 # several words
	managed "$@" -- $program >"$scratch/$name.out" 2>"$scratch/$name.err" || echo "exit code $?" >>"$scratch/$name.out"
	until [ -z "$(tool "$ctl" session list --no-legend --quiet)" ]; do # all is told when it is gone
		sleep 0.05
	done
	jobs=$(($(jobs_done) - before))
}

jobs_done() {
	tool "$ctl" status --json=short | sed -n 's/.*"jobs_done": *\([0-9]*\).*/\1/p'
}

verdict() { # POLICY
	[ -n "$(results bare)" ] && [ "$(results range)" = "$(results bare)" ] && [ "$(results misspelt)" = "$(results bare)" ] ||
		{ echo "FAILED: the results are others"; return; }
	[ "$of_range" -eq "$frames" ] && [ "$of_misspelt" -eq 0 ] || { echo "FAILED: expected $frames and 0"; return; }
	grep -q "its first range was 'frame'" "$scratch/misspelt.err" || { echo "FAILED: nobody says so"; return; }
	echo "ok"
}

start_mps
# shellcheck disable=SC2086
plain $program >"$scratch/bare.out" 2>"$scratch/bare.err" || tail -n 5 "$scratch/bare.err"
for policy in ${POLICIES:-steer even}; do
	start_daemon --policy "$policy" --sharing mps
	marked range --task range --mark nvtx:frame
	of_range=$jobs
	marked misspelt --task misspelt --mark nvtx:frames
	of_misspelt=$jobs
	marked without --task without
	stop_daemon
	echo "$policy: $frames frames are $of_range jobs by ranges, $of_misspelt by a name that no range has," \
		"$jobs without marks: $(verdict "$policy")"
	tail -n 3 "$scratch/range.err" >&2
done | tee "$out/ranges.txt"
! grep -q FAILED "$out/ranges.txt"
