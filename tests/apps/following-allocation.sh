#!/bin/sh
# A program that can run its jobs on two GPUs, in a cgroup whose allocation has one of them: a job that
# names the other one is refused, and says why. Its work then runs where it may.
mine=/sys/fs/cgroup/freezer/sbeet-test-$$
if ! mkdir $mine 2>/dev/null; then
	echo "SKIPPED: cgroups can't be made here (/sys/fs/cgroup/freezer)"
	exit 77
fi
. "$(dirname "$0")/lib.sh"
remove_cgroup() {
	kill -9 $(cat $mine/cgroup.procs) 2>/dev/null
	clean_up
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rmdir $mine 2>/dev/null
		[ -d $mine ] || break
		sleep 0.1
	done
}
trap remove_cgroup EXIT

export SIMGPU=32:mps,32:mps CUDA_VISIBLE_DEVICES=0,1
start_daemon --policy fcfs
"$ctl" allocation add other --cgroup /sbeet-test-other-$$ --sms 16 --gpus 1 || fail "the other allocation is not made"
"$ctl" allocation add own --cgroup "${mine#/sys/fs/cgroup/freezer}" --sms 16 --gpus 0 || fail "the own allocation is not made"
printf 'begin\nend\nbegin\nend\n' >"$scratch/input"
start refused sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" 0 1 <"$3"' sh $mine "$apps/following" "$scratch/input"
ended_well refused "$pid"
[ "$(grep -cx 'job on -1' "$scratch/refused.out")" -eq 2 ] || fail "its jobs are not refused"
grep -q "is for GPU 1, which allocation 'own' does not have" "$scratch/refused.err" || fail "nobody says why"

start allowed sh -c 'echo $$ >"$1/cgroup.procs" && exec "$2" 0 <"$3"' sh $mine "$apps/following" "$scratch/input"
ended_well allowed "$pid"
[ "$(grep -cx 'job on 0' "$scratch/allowed.out")" -eq 2 ] || fail "jobs on its own GPU are refused"
status_is done "" -eq 2 || fail "two jobs are not two"
all_is_free
stop_daemon
say "ok"
