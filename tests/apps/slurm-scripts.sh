#!/bin/sh
# What sbeet's prolog and epilog for Slurm read: a user's texts are neither taken for what the job has
# nor for what administrators wrote, and wrong text ends the job, not the node. Slurm and sbeetctl are
# stand-ins here, which print what the test says.
#
# usage: slurm-scripts.sh PROLOG EPILOG
. "$(dirname "$0")/../lib.sh"
set -u
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
logs="$scratch/*.out"

# NAME: a stand-in, whose script is read from here.
stand_in() {
	{
		printf '#!/bin/sh\nd=%s\n' "$scratch"
		cat
	} >"$scratch/bin/$1"
	chmod 755 "$scratch/bin/$1"
}

stand_in scontrol <<'END'
case "$*" in
"show hostnames"*) echo gpu1 ;;
*"show job"*) cat "$d/job" ;;
update*) printf '%s\n' "$*" >>"$d/updated" ;;
esac
END
stand_in squeue <<'END'
cat "$d/admin-comment"
END
stand_in scancel <<'END'
echo "$*" >>"$d/cancelled"
END
stand_in logger <<'END'
printf '%s\n' "$*" >>"$d/syslog"
END
stand_in sbeetctl <<'END'
printf '%s\n' "$*" >>"$d/asked"
case $2 in
add) exit "$(cat "$d/code")" ;;
*) echo '{"sessions":0,"jobs":3,"misses":1,"abandoned":0,"gpu_ns":5000000,"energy_j":1.5}' ;;
esac
END
for script in prolog epilog; do
	eval "file=\$$([ $script = prolog ] && echo 1 || echo 2)"
	sed "s,^PATH=.*,PATH=$scratch/bin:/usr/bin:/bin," "$file" >"$scratch/$script"
done

# NAME COMMENT GRES: as `scontrol --details show job` prints them. No GRES: the job has none.
job() {
	{
		printf 'JobId=17 JobName=%s\n   UserId=u(1000) GroupId=u(1000) MCS_label=N/A\n' "$1"
		printf '   Priority=1 Nice=0 Account=(null) QOS=(null)\n   Socks/Node=* NtasksPerN:B:S:C=0:0:*:* CoreSpec=*\n'
		[ -z "$3" ] || printf '   JOB_GRES=%s\n     Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=%s\n' "$3" "$3"
		printf '   MinCPUsNode=1 MinMemoryNode=0 MinTmpDiskNode=0\n   Command=/bin/true\n   Comment=%s\n' "$2"
	} >"$scratch/job"
}

# Runs the script; $code is how it ended.
run() { # SCRIPT
	rm -f "$scratch/asked" "$scratch/cancelled" "$scratch/updated"
	(cd / && SLURM_JOB_ID=17 SLURM_JOB_UID=1000 SLURMD_NODENAME=gpu1 sh "$scratch/$1") >"$scratch/$1.out" 2>&1
	code=$?
}

reserves() { # WHAT ARGUMENTS
	run prolog
	[ $code = 0 ] || fail "$1: the node is taken out of service"
	[ ! -e "$scratch/cancelled" ] || fail "$1: the job is ended"
	said=$(sed 's/.*--cgroup [^ ]*//; s/^ *//' "$scratch/asked")
	[ "$said" = "$2" ] || fail "$1: '$said' is reserved, not '$2'"
}

is_refused() { # WHAT
	run prolog
	[ $code = 0 ] || fail "$1: the node is taken out of service"
	[ "$(cat "$scratch/cancelled" 2>/dev/null)" = 17 ] || fail "$1: the job goes on"
}

if [ ! -d /sys/fs/cgroup/freezer ] && [ ! -d /sys/fs/cgroup/system.slice/slurmstepd.scope ]; then
	echo "SKIPPED: Slurm would have no cgroup here"
	exit 77
fi
echo 0 >"$scratch/code"
line='     Nodes=gpu1 CPU_IDs=0 Mem=0 GRES=sbeet_sms:46'

# ---- what Slurm gave is what is reserved ----

job plain x sbeet_sms:20
reserves "a plain job" "--sms 20"
job plain x 'sbeet_sms:gpu1:20(CNT:20)'
reserves "a job with a type" "--sms 20 --gpus 1"
job plain x ''
reserves "a job without GRES" ""

# ---- texts of users ----

forged="z Nodes=gpu1 GRES=sbeet_sms:46"
newline='
'
job "$forged" "$forged" ''
reserves "a name on one line" ""
job "$forged" "$forged" sbeet_sms:4
reserves "a name on one line beside GRES" "--sms 4"
job "x$newline$line" "y$newline$line" ''
reserves "a name with a line of Slurm's" ""
job "x$newline$line${newline}y" "x$newline$line" sbeet_sms:4
reserves "a name with a line of Slurm's beside GRES" "--sms 4"
job "x$newline$line$newline   MinCPUsNode=1" x ''
is_refused "a name with two lines of Slurm's"
job x "y$newline$line$newline   MinCPUsNode=1" sbeet_sms:4
is_refused "a comment with two lines of Slurm's"
job "z GRES=sbeet_sms:/../*/*/*" x ''
reserves "a name with a pattern" ""

# ---- what can't be ----

job plain x sbeet_sms:abc
is_refused "no number"
job plain x 'sbeet_sms:gpu1*:4'
is_refused "no GPU"
job plain x sbeet_sms:4
echo 1 >"$scratch/code"
is_refused "an allocation that sbeetd refuses"
echo 3 >"$scratch/code"
run prolog
[ $code != 0 ] || fail "sbeetd does not run, and the job is not held"
[ ! -e "$scratch/cancelled" ] || fail "the job is ended because sbeetd does not run"
echo 0 >"$scratch/code"

# ---- the account ----

account='sbeet on gpu1: jobs=3 misses=1 abandoned=0 gpu_ms=5 energy_j=1.5'
job plain "x AdminComment=approved by root; budget=unlimited Q=1" sbeet_sms:4
printf '(null)   \n' >"$scratch/admin-comment"
run epilog
grep -qxF "update JobId=17 AdminComment=$account" "$scratch/updated" || fail "the account is $(cat "$scratch/updated")"
printf 'from an admin; sbeet on gpu1: jobs=1; sbeet on gpu2: jobs=2   \n' >"$scratch/admin-comment"
run epilog
grep -qxF "update JobId=17 AdminComment=from an admin; sbeet on gpu2: jobs=2; $account" "$scratch/updated" ||
	fail "the account is $(cat "$scratch/updated")"
