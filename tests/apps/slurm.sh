#!/bin/sh
# Slurm places, sbeetd holds: real munged, slurmctld and slurmd with the files of sbeet-slurm(7), all in
# folders and at ports of this test, on a simulated GPU.
#
# usage: slurm.sh PLUGIN PROLOG EPILOG MANUAL
skip() {
	echo "SKIPPED: $*"
	exit 77
}

for tool in munged slurmctld slurmd srun sbatch scontrol; do
	PATH=$PATH:/usr/sbin command -v $tool >/dev/null 2>&1 ||
		skip "no $tool: 'sh tests/prepare.sh --wishes' installs it (packages munge, slurmctld, slurmd, slurm-client)"
done
[ "$(id -u)" = 0 ] || skip "slurmd has to be started by root"
mkdir /sys/fs/cgroup/freezer/sbeet-test-$$ 2>/dev/null ||
	skip "cgroups of version 1 can't be made here (/sys/fs/cgroup/freezer), and those of version 2 need systemd"
rmdir /sys/fs/cgroup/freezer/sbeet-test-$$

. "$(dirname "$0")/lib.sh"
PATH=$PATH:/usr/sbin
plugin=$1 prolog=$2 epilog=$3 manual=$4
node=sbeet$$
conf=$scratch/etc
control= # slurmctld
agent=   # slurmd
auth=    # munged
export SLURM_CONF="$conf/slurm.conf"

# ---- Slurm ----

free_port() {
	port=$((20000 + ($$ * 7 + ${port:-0}) % 12000))
	while grep -q "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6 2>/dev/null; do
		port=$((port + 1))
	done
	echo $port
}

# FILE: as the manual has it.
manual_file() {
	sed -n "/^\.\\\\\" file $1\$/,/^\.Ed/p" "$manual" | grep -v '^\.'
}

write_configuration() {
	mkdir -p "$conf/bin" "$scratch/state" "$scratch/spool" "$scratch/munge"
	first=$(free_port)
	port=$first
	{
		manual_file slurm.conf | sed -e "s,^\(Prolog=\).*,\1$conf/prolog," -e "s,^\(Epilog=\).*,\1$conf/epilog," \
			-e "s,^SlurmctldHost=.*,SlurmctldHost=localhost," \
			-e "s,^NodeName=gpu1,NodeName=$node NodeHostname=localhost Port=$((first + 1)),"
		cat <<END
SlurmUser=root
SlurmdUser=root
AuthInfo=socket=$scratch/munge/socket
SlurmctldPort=$first
SlurmctldPidFile=$scratch/slurmctld.pid
SlurmdPidFile=$scratch/slurmd.pid
SlurmctldLogFile=$scratch/slurmctld.log
SlurmdLogFile=$scratch/slurmd.log
StateSaveLocation=$scratch/state
SlurmdSpoolDir=$scratch/spool
PlugStackConfig=$conf/plugstack.conf
SlurmdParameters=config_overrides
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
ReturnToService=2
KillWait=1
END
	} >"$conf/slurm.conf"
	manual_file gres.conf >"$conf/gres.conf"
	manual_file plugstack.conf | sed "s,spank_sbeet.so,$plugin shim=$SBEET_BUILD/shim/libsbeet.so prolog=$conf/prolog epilog=$conf/epilog," >"$conf/plugstack.conf"
	printf 'CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\n' >"$conf/cgroup.conf"
	# What goes to the system's log.
	printf '#!/bin/sh\nprintf "%%s\\n" "$*" >>%s/syslog.log\n' "$scratch" >"$conf/bin/logger"
	chmod 755 "$conf/bin/logger"
	# The environment of Slurm's scripts is Slurm's: they have to be told whose sbeetd it is.
	for script in prolog epilog; do
		{
			printf '#!/bin/sh\nexport SBEET_RUNTIME_DIR=%s SLURM_CONF=%s\n' "$SBEET_RUNTIME_DIR" "$SLURM_CONF"
			printf '[ ! -e %s/no-%s ] || [ "${1:-}" = step ] || exit 0\n' "$scratch" $script
			printf 'PATH=%s/bin:%s/client:/usr/bin:/bin:/usr/sbin:/sbin\n' "$conf" "$SBEET_BUILD"
			eval "sed '1d; /^PATH=/d' \"\$$script\""
		} >"$conf/$script"
		chmod 755 "$conf/$script"
	done
}

start_slurmd() {
	slurmd -D -N "$node" -f "$SLURM_CONF" >>"$scratch/slurmd.out" 2>&1 &
	agent=$!
}

node_is_idle() {
	[ "$(sinfo --noheader --format %t)" = idle ]
}

start_slurm() {
	chmod 755 "$scratch"
	(umask 077 && head -c 256 /dev/urandom >"$scratch/munge.key")
	munged --foreground --force --num-threads=1 --key-file="$scratch/munge.key" --socket="$scratch/munge/socket" \
		--pid-file="$scratch/munge.pid" --log-file="$scratch/munged.log" --seed-file="$scratch/munge.seed" \
		>>"$scratch/munged.out" 2>&1 &
	auth=$!
	until_true "munged listens" test -S "$scratch/munge/socket"
	slurmctld -D -f "$SLURM_CONF" >>"$scratch/slurmctld.out" 2>&1 &
	control=$!
	start_slurmd
	until_true "Slurm's node is there" node_is_idle
}

# Steps of jobs have processes of their own.
stop_slurm() {
	for procs in $(find /sys/fs/cgroup/freezer/slurm_$node -name cgroup.procs 2>/dev/null); do
		kill -9 $(cat "$procs") 2>/dev/null
	done
	for pid in $agent $control $auth; do
		kill -9 "$pid" 2>/dev/null
	done
	for try in 1 2 3 4 5 6 7 8 9 10; do
		find /sys/fs/cgroup/freezer/slurm_$node -depth -type d -exec rmdir {} + 2>/dev/null
		[ -d /sys/fs/cgroup/freezer/slurm_$node ] || break
		sleep 0.1
	done
	clean_up
}
trap stop_slurm EXIT

# NAME OPTIONS... -- PROGRAM...: a job of Slurm in the background; $pid is srun's.
slurm_start() {
	name=$1
	shift
	srun --job-name="$name" --sbeet-task="$name" "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

job_state() { # NAME STATE
	[ "$(squeue --noheader --name "$1" --format %T)" = "$2" ]
}

job_id() { # NAME
	squeue --noheader --name "$1" --format %A
}

waits_for_resources() { # NAME
	[ "$(squeue --noheader --name "$1" --format %r)" = Resources ]
}

sms_of() { # ALLOCATION
	"$ctl" allocation show "$1" --json | sed -n 's/.*"sms":"\([^"]*\)".*/\1/p'
}

# TASK SMS: the job that it runs is held to just these.
held() {
	"$ctl" job list --json | tr '{' '\n' | grep "\"task\":\"$1\"" | grep "\"sms\":\"$2\"" | grep -q '"exact":true'
}

both_run() {
	"$ctl" job list --json >"$scratch/jobs.json" &&
		[ "$(grep -o '"state":"running"' "$scratch/jobs.json" | wc -l)" = 2 ]
}

has_account() { # JOB
	scontrol show job --oneliner "$1" | grep -q ' AdminComment=sbeet'
}

node_is_down() {
	sinfo --noheader --format %t | grep -q 'drain\|drng'
}

export SIMGPU=rtx3070:mps SIMGPU_FAULTS=contained
long="$apps/lanes --lanes 1 --rounds 400 --frames 100000000 --json"
write_configuration
start_daemon --policy steer
start_slurm

# ---- options are checked where they are typed, in sbeetctl's words ----

same_names='s/--sbeet-sms/--max-sms/g; s/--sbeet-/--/g'

refused() { # TOOL OPTIONS...: in the words of sbeetctl run OPTIONS
	tool=$1
	shift
	case $tool in
	sbatch) program="--wrap=true" ;;
	*) program=true ;;
	esac
	if $tool --gres=sbeet_sms:20 "$@" $program >"$scratch/refused.out" 2>&1; then
		fail "$tool $*: accepted"
	fi
	plain=$(printf '%s\n' "$@" | sed "$same_names")
	"$ctl" run $plain -- true 2>&1 | sed 's/^sbeetctl: //' >"$scratch/said.out"
	sed "$same_names" "$scratch/refused.out" | grep -qF -- "$(cat "$scratch/said.out")" ||
		fail "$tool $*: other words than sbeetctl's"
}

refused srun --sbeet-period=33
refused srun --sbeet-deadline=0ms
refused salloc --sbeet-priority=high
refused sbatch --sbeet-sms=0
refused srun --sbeet-period=10ms --sbeet-deadline=20ms
refused srun --sbeet-task=-x

# ---- 20 and 20 run side by side, 40 waits in Slurm's queue ----

# It lies about itself.
export SBEET_MAX_SMS=46
slurm_start alpha --gres=sbeet_sms:20 --sbeet-period=900ms --sbeet-deadline=800ms $long
unset SBEET_MAX_SMS
until_true "alpha works" status_is jobs alpha -ge 2
slurm_start beta --gres=sbeet_sms:20 $long
until_true "beta works" status_is jobs beta -ge 2
slurm_start gamma --gres=sbeet_sms:40 $long
until_true "gamma waits in Slurm's queue" job_state gamma PENDING
until_true "for SMs" waits_for_resources gamma
status_is sessions gamma -eq 0 || fail "gamma is connected to sbeetd, but should wait in Slurm's queue"
alpha=slurm-$(job_id alpha)
beta=slurm-$(job_id beta)
# The last group of SMs has 10, the others 4.
[ "$(sms_of "$alpha")" = 0-19 ] || fail "alpha has SMs $(sms_of "$alpha")"
[ "$(sms_of "$beta")" = 28-45 ] || fail "beta has SMs $(sms_of "$beta")"
until_true "alpha is held to its SMs" held alpha 0-19
until_true "beta is held to its SMs" held beta 28-45
until_true "both run at once" both_run
"$ctl" session list --json | tr '{' '\n' | grep '"task":"alpha"' | grep -q '"deadline_ns":800000000' ||
	fail "status does not show the deadline that srun was given"
"$ctl" task list --no-legend --columns task,allocation | grep -q "^alpha  *$alpha\$" || fail "task list does not show the Slurm job"

# ---- sbeetd and slurmd are restarted: the jobs and their SMs stay ----

kill -9 "$daemon"
wait "$daemon" 2>/dev/null
start_daemon --policy steer
kill -9 "$agent"
wait "$agent" 2>/dev/null
start_slurmd
until_true "alpha is back" status_is jobs alpha -ge 2
until_true "beta is back" status_is jobs beta -ge 2
until_true "alpha is held again" held alpha 0-19
job_state alpha RUNNING || fail "slurmd's restart has ended alpha"
status_is sessions gamma -eq 0 || fail "the restarts let gamma pass"

# ---- one ends: its SMs are not enough for the third; both do, and nobody waits for ever ----

scancel "${alpha#slurm-}"
until_true "alpha's SMs are given back" eval '! "$ctl" allocation show "$alpha"'
# Slurm takes no comment on a job that was cancelled, without its database.
until_true "alpha's account is in the log" grep -q "sbeet-epilog job ${alpha#slurm-}: sbeet on $node: jobs=[1-9]" "$scratch/syslog.log"
job_state gamma PENDING || fail "gamma runs though beta has 20 of 46 SMs"

# ---- an epilog that never runs takes no SMs away ----

: >"$scratch/no-epilog"
scancel "${beta#slurm-}"
until_true "gamma works" status_is jobs gamma -ge 2
rm "$scratch/no-epilog"
gamma=slurm-$(job_id gamma)
"$ctl" allocation show "$beta" >/dev/null 2>&1 || fail "beta's epilog has run, but should not have"
"$ctl" allocation show "$gamma" --json | grep -q '"n_sms":40,.*"shared":false' ||
	fail "gamma shares SMs with a job that has ended: $("$ctl" allocation list)"
until_true "gamma is held to its SMs" held gamma "$(sms_of "$gamma")"

# ---- a job is requeued: it has as many SMs again ----

cat >"$scratch/again.sh" <<END
#!/bin/sh
exec srun $long
END
scancel "${gamma#slurm-}"
until_true "gamma's SMs are given back" eval '! "$ctl" allocation show "$gamma"'
sbatch --requeue --job-name=again --gres=sbeet_sms:46 --sbeet-task=again --output="$scratch/again.out" "$scratch/again.sh" \
	>"$scratch/sbatch.out" 2>&1 || fail "sbatch: $(cat "$scratch/sbatch.out")"
until_true "the batch job works" status_is jobs again -ge 2
again=$(job_id again)
scontrol requeue "$again"
until_true "its SMs are given back" eval '! "$ctl" allocation show "slurm-$again"'
# Slurm would let it wait for two minutes: slurmd takes a job that is begun in the second in which it was killed for
# the one that was killed.
killed=$(date +%s)
until_true "a second is over" eval '[ "$(date +%s)" -gt "$killed" ]'
until_true "it starts again" eval 'scontrol update "JobId=$again" StartTime=now; job_state again RUNNING'
until_true "it works again" status_is jobs again -ge 2
"$ctl" allocation show "slurm-$again" --json | grep -q '"n_sms":46,.*"shared":false' || fail "the requeued job has not all SMs: $("$ctl" allocation list --json)"
scancel "$again"
until_true "its SMs are given back again" eval '! "$ctl" allocation show "slurm-$again"'

# ---- what is counted is what was done ----

: >"$scratch/no-prolog" # as if Slurm left it out: the plugin makes up for it
srun --job-name=late --gres=sbeet_sms:20 --sbeet-task=late --sbeet-deadline=1us "$apps/vecadd" --frames 5 --json \
	>"$scratch/late.out" 2>&1 || fail "late: exit code $?"
results_ok late
rm "$scratch/no-prolog"
late=$(scontrol show job --oneliner | sed -n 's/^JobId=\([0-9]*\) JobName=late .*/\1/p')
until_true "its account is in its AdminComment" has_account "$late"
account=$(scontrol show job --oneliner "$late" | sed -n 's/.* AdminComment=\(sbeet on .*energy_j=[a-z0-9.]*\).*/\1/p')
"$ctl" task history late --json >"$scratch/late.json"
for pair in jobs:jobs misses:misses abandoned:abandoned; do
	counted=$(printf '%s\n' "$account" | sed -n "s/.* ${pair%:*}=\([0-9]*\).*/\1/p")
	grep -q "\"${pair#*:}\":${counted:-none}[,}]" "$scratch/late.json" || fail "the account '$account' and the history differ in $pair"
done
printf '%s\n' "$account" | grep -q "^sbeet on $node: jobs=\([1-9][0-9]*\) misses=\1 abandoned=0 gpu_ms=[0-9]* energy_j=unknown" ||
	fail "the account is '$account'"

# ---- sbeetd is gone: no job runs unheld, and Slurm says why ----

stop_daemon
slurm_start stranded --gres=sbeet_sms:20 "$apps/vecadd" --frames 1
until_true "the node is out of service" node_is_down
grep -q "sbeet-prolog job [0-9]*: .*cannot reach sbeetd" "$scratch/syslog.log" || fail "nobody says why"
scancel --name=stranded
start_daemon --policy steer
all_is_free
