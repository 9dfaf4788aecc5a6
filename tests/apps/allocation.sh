#!/bin/sh
# Programs are kept to the SMs of their cgroup's allocation, whatever they say of themselves, and it is
# counted what they did.
#
# usage: allocation.sh POLICY
mine=/sys/fs/cgroup/freezer/sbeet-test-$$
if ! mkdir $mine $mine/a $mine/b $mine/c 2>/dev/null; then
	rmdir $mine 2>/dev/null
	echo "SKIPPED: cgroups can't be made here (/sys/fs/cgroup/freezer)"
	exit 77
fi
. "$(dirname "$0")/lib.sh"
policy=$1
remove_cgroups() {
	for procs in $mine/*/cgroup.procs; do
		kill -9 $(cat "$procs") 2>/dev/null
	done
	clean_up
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rmdir $mine/a $mine/b $mine/c $mine 2>/dev/null
		[ -d $mine ] || break
		sleep 0.1
	done
}
trap remove_cgroups EXIT

# CGROUP TASK PROGRAM...: as start of lib.sh, in the cgroup.
start_in() {
	cgroup=$mine/$1 name=$2
	shift 2
	sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$cgroup" "$ctl" run --task "$name" --log info -- "$@" \
		>"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

value() { # NAME KEY: of an allocation
	"$ctl" allocation show "$1" --json | sed -n "s/.*\"$2\":\"\{0,1\}\([^,\"}]*\).*/\1/p"
}

value_is() { # NAME KEY VALUE
	[ "$(value "$1" "$2")" = "$3" ]
}

# TASK SMS: the job that it runs is held to just these.
held() {
	"$ctl" job list --json | tr '{' '\n' | grep "\"task\":\"$1\"" | grep "\"sms\":\"$2\"" | grep -q '"exact":true'
}

long="$apps/lanes --lanes 1 --rounds 400 --frames 100000000 --json"
# That a killed program's neighbours fail under MPS is not what is tested here.
export SIMGPU=rtx3070:mps SIMGPU_FAULTS=contained
mkdir "$scratch/profiles"
cat >"$scratch/profiles/known.json" <<'END'
{"profiles": [{"name": "known", "on": {"Simulated GeForce RTX 3070": {"points": [
 {"sms": 4, "worst": "200ms", "watts": 20}, {"sms": 46, "worst": "100ms", "watts": 100}]}}}]}
END
start_daemon --policy "$policy" --profile-dir "$scratch/profiles"

# Both have SMs of their own: 20 are five groups of 4, and the last group has 10.
"$ctl" allocation add a --cgroup "${mine#/sys/fs/cgroup/freezer}/a" --sms 20 || fail "a is not made"
"$ctl" allocation add b --cgroup "${mine#/sys/fs/cgroup/freezer}/b" --sms 20 || fail "b is not made"
"$ctl" allocation add c --cgroup "${mine#/sys/fs/cgroup/freezer}/c" || fail "c is not made"
[ "$(value a sms)" = 0-19 ] || fail "a has SMs $(value a sms)"
[ "$(value b sms)" = 28-45 ] || fail "b has SMs $(value b sms)"

# It lies about what it wants.
export SBEET_MAX_SMS=46 SBEET_MIN_SMS=46
start_in a liar $long
liar=$pid
unset SBEET_MAX_SMS SBEET_MIN_SMS
start_in b honest $long
honest=$pid
until_true "the liar is held to the SMs of a" held liar 0-19
until_true "the other one to those of b" held honest 28-45
until_true "the liar has worked" status_is jobs liar -ge 3
until_true "the other one has worked" status_is jobs honest -ge 3
[ "$("$ctl" job list --json | grep -o '"exact":false' | wc -l)" = 0 ] || fail "a job is not held"
"$ctl" task list --no-legend --columns task,allocation | grep -q '^liar  *a$' || fail "task list does not show the allocation"
"$ctl" session list | grep -q ALLOCATION || fail "session list does not show the allocation"

# sbeetd is killed: the same SMs, and what was counted stays.
before=$(value a jobs)
kill -9 "$daemon"
wait "$daemon" 2>/dev/null
start_daemon --policy "$policy" --profile-dir "$scratch/profiles"
[ "$(value a sms)" = 0-19 ] && [ "$(value b sms)" = 28-45 ] || fail "the allocations are others after the restart"
[ "$(value a jobs)" -ge "$before" ] || fail "$before jobs were counted, now $(value a jobs) are"
until_true "the programs are back" status_is sessions "" -eq 2
until_true "the liar works again" status_is jobs liar -ge 3
until_true "the liar is held again" held liar 0-19

# Two programs of one cgroup have its SMs together.
start_in a second $long
second=$pid
until_true "the second one has worked" status_is jobs second -ge 2
until_true "the second one is held to the same SMs" held second 0-19
kill -9 "$second"

# What runs without SMs of its own is counted, not held; as is what is late.
"$ctl" allocation show c --json | grep -q '"n_sms":null' || fail "c has a number of SMs"
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $mine/c "$ctl" run --task late --deadline 1us -- "$apps/vecadd" --frames 5 --json \
	>"$scratch/late.out" 2>&1 || fail "a program without SMs of its own fails"
results_ok late
"$ctl" allocation remove c --json >"$scratch/c.json" || fail "c is not removed"
"$ctl" task history late --json >"$scratch/late.json"
for key in jobs misses launches gpu_ns; do
	counted=$(sed -n "s/.*\"$key\":\([0-9]*\).*/\1/p" "$scratch/c.json")
	[ "${counted:-0}" -gt 0 ] && grep -q "\"$key\":$counted[,}]" "$scratch/late.json" ||
		fail "$key: the allocation has $counted, the history another number"
done
[ "$(sed -n 's/.*"misses":\([0-9]*\).*/\1/p' "$scratch/c.json")" = "$(sed -n 's/.*"jobs":\([0-9]*\).*/\1/p' "$scratch/c.json")" ] ||
	fail "not all jobs of a deadline of 1 us are late"

# Energy is counted where a profile of the task is known.
"$ctl" allocation add p --cgroup "${mine#/sys/fs/cgroup/freezer}/c" --sms 8 --json >"$scratch/p.json"
grep -q '"n_sms":8}' "$scratch/p.json" && grep -q '"shared":false' "$scratch/p.json" || fail "p has not 8 SMs of its own"
sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' $mine/c "$ctl" run --task known --deadline 10s -- "$apps/vecadd" --frames 5 --json \
	>"$scratch/known.out" 2>&1 || fail "a program of a known task fails"
results_ok known
"$ctl" allocation remove p --json >"$scratch/p.json" || fail "p is not removed"
"$ctl" task history known --json >"$scratch/known.json"
used=$(sed -n 's/.*"energy_j":\([0-9.]*\).*/\1/p' "$scratch/p.json")
[ -n "$used" ] && grep -q "\"energy_j\":$used[,}]" "$scratch/known.json" ||
	fail "the allocation has used '$used' J, the history says another number"

# Nobody removes a, whose programs and cgroup are gone: its SMs are free for the next one.
kill -9 "$liar"
until_true "a's programs are gone" value_is a sessions 0
until_true "a's cgroup is gone" rmdir $mine/a
"$ctl" allocation add d --cgroup "${mine#/sys/fs/cgroup/freezer}/c" --sms 20 --json >"$scratch/d.json"
grep -q '"shared":false' "$scratch/d.json" || fail "d shares SMs though a is over"
"$ctl" allocation add e --cgroup "${mine#/sys/fs/cgroup/freezer}/c" --sms 28 --json >"$scratch/e.json"
grep -q '"shared":true' "$scratch/e.json" || fail "e shares nothing though b and d have 38 of 46 SMs"

# b is removed while its program runs: that is held as before, and its SMs are for others.
"$ctl" allocation remove b || fail "b is not removed"
value_is b removed true || fail "b is not told as removed"
until_true "it is held as before" held honest 28-45
kill -9 "$honest"
until_true "then b is gone" eval '! "$ctl" allocation show b'

# Who may not.
if command -v setpriv >/dev/null && chmod 755 "$scratch" && chmod 711 "$SBEET_RUNTIME_DIR" && chmod 666 "$SBEET_RUNTIME_DIR/control.sock"; then
	setpriv --reuid=65534 --regid=65534 --clear-groups "$ctl" allocation remove d >"$scratch/denied.out" 2>&1
	code=$?
	[ "$code" = 5 ] || [ "$code" = 126 ] || fail "another user may remove an allocation (exit code $code)"
fi
for bad in a/b / /.. /a/../b /a/; do
	"$ctl" allocation add bad --cgroup $bad >"$scratch/bad.out" 2>&1 && fail "'$bad' is accepted as a cgroup"
done
"$ctl" allocation add bad --cgroup /x --gpus 7 >"$scratch/bad.out" 2>&1 && fail "a GPU is accepted that is not there"
grep -q 'there is no GPU 7' "$scratch/bad.out" || fail "nobody says which GPU is not there"
all_is_free
