#!/bin/sh
# Runs on a machine with a GPU (or on the simulated one) in the folder that bundle.sh made: which part of a CPU
# sbeetd takes under policy steer while programs run so many jobs a second in all. A JSON line, also in
# $OUT/daemon-cpu.txt: programs, jobs a second that sbeetd counted, seconds, sbeetd_cpu_percent, and how often it
# woke for each job, which a busy machine does not change.
#
# Each program is bin/periodic with empty kernels and copies of 4 bytes.
#
# RATE (1000 jobs a second in all), PROGRAMS (10), SECONDS_LONG (10), LEAD (5, before it is measured).
# Exit 1 if fewer than nine tenths of the jobs ran.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
rate=${RATE:-1000}
n=${PROGRAMS:-10}
seconds=${SECONDS_LONG:-10}
lead=${LEAD:-5}
started=

# Nanoseconds of CPU time of sbeetd, all threads.
cpu_ns() {
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); printf "%.0f\n", ($12 + $13) * 1e9 / hz }' "/proc/$daemon/stat"
}

# CLOCK_MONOTONIC, which programs go by.
now_ns() {
	tool "$ctl" status --json=short | sed -n 's/.*"now_ns": *\([0-9]*\).*/\1/p'
}

# How often sbeetd has slept.
sleeps() {
	awk '$1 == "voluntary_ctxt_switches:" { n += $2 } END { print n }' "/proc/$daemon"/task/*/status
}

jobs_done() {
	tool "$ctl" status --json=short | sed -n 's/.*"jobs_done": *\([0-9]*\).*/\1/p'
}

start_mps
start_daemon --policy steer --sharing mps
period=$((1000000000 * n / rate))
export PERIODIC_EMPTY=1
start=$(($(now_ns) + 3000000000))
i=0
while [ $i -lt "$n" ]; do
	echo "$start" | managed --task "cpu-$i" --class realtime --period "${period}ns" --deadline "${period}ns" \
		--require -- "$here/bin/periodic" vecadd 1 "$period" "$period" $((period * i / n)) \
		$(((lead + seconds + 2) * 1000000000)) >"$scratch/periodic-$i" 2>&1 &
	started="$started $!"
	i=$((i + 1))
done
sleep $((3 + lead))
jobs=$(jobs_done)
time=$(now_ns)
cpu=$(cpu_ns)
sleeps=$(sleeps)
sleep "$seconds"
cpu=$(($(cpu_ns) - cpu))
sleeps=$(($(sleeps) - sleeps))
time=$(($(now_ns) - time))
jobs=$(($(jobs_done) - jobs))
awk -v n="$n" -v jobs="$jobs" -v time="$time" -v cpu="$cpu" -v sleeps="$sleeps" 'BEGIN {
	printf "{\"bench\":\"daemon-cpu\",\"programs\":%d,\"jobs_per_s\":%.0f,\"seconds\":%.1f,\"sbeetd_cpu_percent\":%.2f,\"wake_ups_per_job\":%.2f}\n",
		n, jobs * 1e9 / time, time / 1e9, 100 * cpu / time, sleeps / (jobs ? jobs : 1) }' | tee "$out/daemon-cpu.txt"
# shellcheck disable=SC2086 # several
kill $started 2>/dev/null
# shellcheck disable=SC2086
wait $started 2>/dev/null
stop_daemon
[ $((jobs * 10)) -ge $((rate * seconds * 9)) ] || {
	echo "daemon-cpu.sh: $jobs jobs, expected $((rate * seconds))" >&2
	cat "$scratch"/periodic-* >&2
	exit 1
}
