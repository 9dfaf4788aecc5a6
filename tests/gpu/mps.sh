#!/bin/sh
# Runs as root on a machine with a GPU, in the folder that bundle.sh made: sbeetd and a real control
# daemon of MPS. Who starts it, what happens when it, its server or a program dies, what other users may,
# what the 49th program is told, whether sbeet-mps.service's sandbox leaves it able to serve, whether
# measured programs end without harm to the next, whether GPUs are shared within 2 s of each of twenty starts
# of sbeetd (its last line is "N of 20 right"), and whether the sharing follows MPS that comes and goes.
#
# usage: mps.sh [own user deaths measured limit unit follows restarts]...     (all)
#
# DAEMON_OPTIONS: more options of sbeetd for `follows` and `restarts`, such as --gpus 132. Without bin/busy these two
# run no programs.
#
# The table is $OUT/mps.md (stdout too), logs in $OUT/mps.tar.gz. Rows marked BAD are not as promised; exit
# 0 if there is none. The user "sbeet" is made if it is missing.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
chmod 755 "$scratch" "$scratch/lib"
busy=$here/bin/busy
rows=$scratch/rows
: >"$rows"

now() { date +%s.%N; }
since() { awk "BEGIN { printf \"%.2f\", $(now) - $1 }"; }

row() { # WHAT SEEN [BAD]
	printf '| %s | %s |%s\n' "$1" "$2" "${3:+ $3}" >>"$rows"
	echo "$(since "$began") s: $1: $2 ${3:-}" >&2
}

# WHAT SEEN COMMAND...: a row that is BAD unless the command succeeds.
expect() {
	what=$1
	seen=$2
	shift 2
	if "$@"; then row "$what" "$seen"; else row "$what" "$seen" BAD; fi
}

# NAME COMMAND...: in the background; $pid is its process or that of sbeetctl run, which becomes it.
start() {
	name=$1
	shift
	"$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
}

runs() { # NAME
	within 15 grep -q running "$scratch/$1.out"
}

# NAME PID: waits for its end; $seen is its result in words. (Not for $(...): it is this shell's child.)
result() {
	wait "$2"
	code=$?
	if grep -q right "$scratch/$1.out"; then
		seen=right
	else
		seen="exit code $code: $(grep -h "busy:" "$scratch/$1.err" | tail -n 1 | sed 's/.*(): //')"
	fi
}

# WHAT NAME PID: what became of it is a row; BAD unless it is right.
ends_well() {
	result "$2" "$3"
	expect "$1" "$seen" test "$seen" = right
}

shim() { # TASK ARGUMENTS of busy...
	task=$1
	shift
	managed --task "$task" -- "$busy" "$@"
}

# How long until a program that starts now works, and how often it did not.
fresh() {
	from=$(now)
	failures=0
	until timeout 20 "$busy" compute 0.01 >"$scratch/fresh.out" 2>"$scratch/fresh.err"; do
		failures=$((failures + 1))
		[ $failures -le 50 ] || break
		sleep 0.1
	done
	echo "$failures failed, right after $(since "$from") s"
}

mps_line() { tool "$ctl" status | sed -n 's/^MPS *//p'; }
mps_is() { mps_line | grep -q "$1"; }
mps_becomes() { within 10 mps_is "$1"; } # PATTERN
mps_line_now() { # a look some time after the last makes sbeetd ask again
	sleep 1.2
	mps_line >/dev/null
	sleep 0.3
	mps_line
}
start_under_mps() { # POLICY
	start_mps
	start_daemon --policy "$1" --sharing mps
	mps_becomes '^up'
}
ask_mps() { echo "$1" | timeout 5 nvidia-cuda-mps-control; }
server_status() { ask_mps "get_server_status $(ask_mps get_server_list)"; }
session_of() { # TASK
	tool "$ctl" session list --no-legend --columns id,task | awk -v task="$1" '$2 == task { print $1; exit }'
}
pid_of() { # TASK
	tool "$ctl" session list --no-legend --columns pid,task | awk -v task="$1" '$2 == task { print $1; exit }'
}

began=$(now)
trap 'stop_all; clean_up' EXIT
stop_all() {
	for p in ${control:-} ${server:-}; do
		case $(cat "/proc/$p/comm" 2>/dev/null) in nvidia-cuda-mps*) kill "$p" ;; esac
	done
}

own=$SBEET_RUNTIME_DIR/mps
at_own() ( # COMMAND...: with sbeetd's control daemon
	export CUDA_MPS_PIPE_DIRECTORY="$own/pipe" CUDA_MPS_LOG_DIRECTORY="$own/log"
	"$@"
)
as_user="setpriv --reuid=sbeet --regid=sbeet --clear-groups"
control_pid() { cat "$own/pipe/nvidia-cuda-mps-control.pid"; }

# One of sbeetd's own: who starts and ends it, and what dies with what.
see_own() {
	start_daemon --policy even --sharing mps --mps start
	expect "no control daemon, --mps start" "$(mps_line)" mps_becomes '^up'
	start a shim a memory 20
	a=$pid
	runs a
	expect "a program under it" "$(mps_becomes '1 client'; mps_line)" mps_becomes '^up, 1 client$'
	from=$(now)
	kill -9 "$(control_pid)"
	result a $a
	row "that control daemon killed: the program" "$seen, after $(since "$from") s"
	expect "the control daemon" "$(mps_becomes 'restarted 1 time'; mps_line), after $(since "$from") s" mps_becomes '^up.*restarted 1'
	start a shim a memory 0.2
	ends_well "a program then" a $pid
	start a shim a memory 20
	a=$pid
	runs a
	server=$(at_own ask_mps get_server_list)
	from=$(now)
	kill -9 "$server"
	result a $a
	row "the server killed: its program" "$seen, after $(since "$from") s"
	start a shim a memory 0.2
	ends_well "a program then" a $pid
	row "status" "$(mps_line)"

	# A fault: of a program beside one that waits and one that runs.
	start idle shim idle idle 4
	idle=$pid
	runs idle
	start a shim a memory 3
	a=$pid
	runs a
	start f shim f fault 0.1
	f=$pid
	result f $f
	row "a kernel that writes where it may not" "$seen"
	result a $a
	row "what ran beside it" "$seen"
	row "its server then, with an idle program still there" "$(at_own server_status)"
	row "status" "$(mps_line_now)"
	row "a program that starts then" "$(at_own fresh)"
	result idle $idle
	row "the idle one" "$seen"
	row "status when all have gone" "$(mps_line_now)"

	# sbeetd goes and comes while a program runs.
	start a shim a memory 3
	a=$pid
	runs a
	control=$(control_pid)
	stop_daemon
	start_daemon --policy even --sharing mps --mps start
	expect "sbeetd stopped and started beside a program: its MPS" "$(mps_becomes '^up'; mps_line)" test "$(control_pid)" = "$control"
	ends_well "that program" a $a
	expect "what one of its own logs" "$(wc -l <"$own/log/control.log" | tr -d ' ') lines" test -s "$own/log/control.log"
	stop_daemon
	control=$(control_pid)
	kill "$control"
	within 5 test ! -e "/proc/$control"
	control=
}

# Root's, for sbeetd of another user.
see_user() {
	start_mps
	sleep 0.3
	mkdir "$scratch/user"
	chown sbeet "$scratch/user"
	root_runtime=$SBEET_RUNTIME_DIR
	export SBEET_RUNTIME_DIR="$scratch/user"
	$as_user env HOME=/ LD_LIBRARY_PATH="$tools_path" "$here/bin/sbeetd" --policy even --sharing mps >"$scratch/user.log" 2>&1 &
	daemon=$!
	within 5 tool "$ctl" status >/dev/null 2>&1
	expect "root's control daemon, sbeetd of user sbeet" "$(mps_becomes '^up'; mps_line)" mps_becomes '^up'
	start a $as_user env LD_LIBRARY_PATH="$tools_path" "$ctl" run --task a -- "$busy" memory 10
	a=$pid
	runs a
	expect "its user's program" "$(mps_becomes '1 client'; mps_line)" mps_becomes '1 client'
	row "how its job is held" "$(tool "$ctl" job list --no-legend --columns task,enforcement,exact | tr -s ' ' | head -n 1)"
	start b env LD_LIBRARY_PATH="$tools_path" "$ctl" run --task b -- "$busy" memory 1
	b=$pid
	sleep 1
	row "root's program beside it, after 1 s" "$(cat "$scratch/b.out" "$scratch/b.err" | head -n 2 | tr '\n' ' ')"
	$as_user env LD_LIBRARY_PATH="$tools_path" "$ctl" session kill "$(session_of a)" >"$scratch/kill.out" 2>&1
	said="exit code $?, says '$(cat "$scratch/kill.out")'"
	result a $a
	row "its user ends it by session kill" "$said; $seen"
	ends_well "root's program then" b $b
	# Whether that user may, once the socket for orders is its own.
	chown sbeet "$CUDA_MPS_PIPE_DIRECTORY/control_privileged"
	for name in v n; do
		start $name $as_user env LD_LIBRARY_PATH="$tools_path" "$ctl" run --task $name -- "$busy" memory 3
		eval "$name=\$pid"
		runs $name
	done
	$as_user env LD_LIBRARY_PATH="$tools_path" "$ctl" session kill "$(session_of v)" >"$scratch/kill.out" 2>&1
	said="exit code $?, says '$(cat "$scratch/kill.out")'"
	result v $v
	said="$said; $seen"
	result n $n
	row "the same, its user owns control_privileged, beside a neighbour" "$said; neighbour $seen"
	stop_daemon
	SBEET_RUNTIME_DIR=$root_runtime
	stop_mps
}

# In the middle of a kernel, beside a neighbour.
see_deaths() {
	start_under_mps even
	for how in "session kill" "session kill --drain 10s" "kill -TERM" "kill -KILL"; do
		start v shim v memory 4
		v=$pid
		runs v
		start n shim n memory 3
		n=$pid
		runs n
		victim=$(pid_of v)
		from=$(now)
		case $how in
		session*) # shellcheck disable=SC2086 # words
			tool "$ctl" $how "$(session_of v)" >"$scratch/kill.out" 2>&1
			said="exit code $? after $(since "$from") s$(sed 's/^/, says /' "$scratch/kill.out"); " ;;
		*) ${how% *} "${how#* }" "$victim"
			said= ;;
		esac
		status=$(server_status)
		next=$(fresh)
		result n $n
		wait "$v"
		case $how in
		session*) expect "$how: $said" "neighbour $seen; server $status; next: $next" test "$seen" = right -a ! -s "$scratch/kill.out" ;;
		*) row "$how" "neighbour $seen; server $status; next: $next" ;;
		esac
	done
	stop_daemon
	stop_mps
}

# Measured programs, each ended before its own end.
see_measured() {
	start_under_mps fcfs
	for round in 1 2 3; do
		tool "$ctl" profile run --task p --sms 32,64,132 --runs 10 --power-time 200ms -- \
			env LD_LIBRARY_PATH="$scratch/lib" "$here/apps/hotspot" --frames 1000000 >"$scratch/profile.out" 2>"$scratch/profile.err"
		code=$?
		abandoned=$(tool "$ctl" status --json=pretty | sed -n 's/.*"jobs_abandoned": \([0-9]*\).*/\1/p' | head -n 1)
		expect "profile run, round $round, three programs ended on the way" \
			"exit code $code, $(tail -n 1 "$scratch/profile.err"); next: $(fresh)" test $code -eq 0
	done
	expect "jobs that were ended in their middle" "$abandoned" test "$abandoned" = 0
	stop_daemon
	stop_mps
}

# More programs than MPS serves.
see_limit() {
	start_under_mps even
	many=
	for i in $(seq 50); do
		start l$i shim many idle 12
		many="$many $pid"
	done
	good=0
	for pid in $many; do
		wait "$pid" && good=$((good + 1))
	done
	expect "50 programs at once" "$good right; the others: $(cat "$scratch"/l*.err | grep busy: | sort | uniq -c | tr -s ' ' | tr '\n' ';')" test $good -eq 48
	row "what sbeetd told them" "$(cat "$scratch"/l*.err | grep -o 'GPU 0 has .*' | sed 's/has [0-9]*/has N/' | sort | uniq -c | tr -s ' ' | tr '\n' ';' | cut -c 1-300)"
	stop_daemon
	stop_mps
}

in_sandbox() { # UNSHARE-OPTIONS...: $control is root's control daemon with little more than the unit leaves it
	unshare --mount "$@" sh -c '
		mount --make-rprivate / && mount --bind "$1" "$1" && mount -o remount,bind,ro / &&
		mount -t tmpfs -o ro,mode=0 none /root && mount -o remount,bind,ro /sys &&
		CUDA_MPS_PIPE_DIRECTORY="$1/pipe" CUDA_MPS_LOG_DIRECTORY="$1/log" exec setpriv --no-new-privs \
			--bounding-set=-all,+setuid,+setgid,+sys_ptrace,+kill,+dac_override,+ipc_lock \
			nvidia-cuda-mps-control -f' sh "$place" >"$scratch/unit.log" 2>&1 &
	control=$!
}

# The sandbox of sbeet-mps.service, as far as it can be had without systemd.
see_unit() {
	place=$scratch/unit
	mkdir -p "$place/pipe" "$place/log"
	chmod 755 "$place" "$place/pipe" "$place/log"
	for how in "" --net; do
		# shellcheck disable=SC2086 # perhaps nothing
		in_sandbox $how
		within 3 test -S "$place/pipe/control"
		for user in root sbeet; do
			# shellcheck disable=SC2046 # words
			CUDA_MPS_PIPE_DIRECTORY="$place/pipe" CUDA_MPS_LOG_DIRECTORY="$place/log" timeout 20 \
				$([ $user = root ] || echo $as_user) "$busy" memory 0.3 >"$scratch/s.out" 2>"$scratch/s.err"
			expect "unit's sandbox ${how:-without PrivateNetwork}, program of $user" \
				"exit code $?, $(cat "$scratch/s.out" "$scratch/s.err" | tail -n 1)" grep -q right "$scratch/s.out"
			sleep 0.5
		done
		kill "$control"
		wait "$control"
		rm -rf "$place"/pipe/*
	done
	control=
}

sharing() { tool "$ctl" gpu list --no-legend --columns sharing | head -n 1; }
sharing_is() { [ "$(sharing)" = "$1" ]; }
mps_of() { # TASK: what its session is to MPS
	tool "$ctl" session list --no-legend --columns task,mps | awk -v task="$1" '$1 == task { print $2; exit }'
}

# MPS of others' comes after sbeetd and a program, goes, and comes again.
see_follows() {
	export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$scratch/mps-log"
	# shellcheck disable=SC2086 # words
	start_daemon --policy even ${DAEMON_OPTIONS:-}
	expect "no control daemon" "$(sharing)" sharing_is exclusive
	if [ -x "$busy" ]; then
		start before shim before idle 15
		before=$pid
		runs before
	fi
	for round in first second; do
		start_mps
		from=$(now)
		within 2 sharing_is mps
		expect "the $round control daemon comes" "$(sharing) after $(since "$from") s" sharing_is mps
		if [ -x "$busy" ]; then
			start a shim a memory 3
			a=$pid
			runs a
			expect "a program from before, one that starts then" "$(mps_of before), $(mps_of a)" \
				test "$(mps_of before), $(mps_of a)" = "none, client"
			ends_well "the one that starts then" a $a
		fi
		stop_mps
		export CUDA_MPS_PIPE_DIRECTORY="$scratch/mps" CUDA_MPS_LOG_DIRECTORY="$scratch/mps-log"
		from=$(now)
		within 2 sharing_is exclusive
		expect "it goes" "$(sharing) after $(since "$from") s" sharing_is exclusive
		if [ -x "$busy" ]; then
			start a shim a memory 0.2
			ends_well "a program that starts then" a $pid
		fi
	done
	[ ! -x "$busy" ] || ends_well "the program from before" before $before
	expect "warnings" "$(grep -c warning: "$scratch/sbeetd.log")" test "$(grep -c warning: "$scratch/sbeetd.log")" -eq 2
	stop_daemon
	unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
}

# HOW: ends sbeetd, and does not wait for its control daemon.
end_daemon() {
	control=$(control_pid 2>/dev/null)
	case $1 in
	killed)
		kill -9 "$daemon"
		wait "$daemon"
		daemon= ;;
	both)
		kill -9 "$control"
		stop_daemon ;;
	*) stop_daemon ;;
	esac
}

# sbeetd with a control daemon of its own, again and again, while the one before may still end.
see_restarts() {
	right=0
	echo "| round | after the last one was | shared after, s | warnings |" >"$scratch/restarts"
	echo "|---|---|---|---|" >>"$scratch/restarts"
	how=none
	for round in $(seq 20); do
		from=$(now)
		# shellcheck disable=SC2086 # words
		start_daemon --policy even --mps start ${DAEMON_OPTIONS:-}
		until sharing_is mps || awk "BEGIN { exit !($(now) - $from > 2) }"; do
			sleep 0.02
		done
		took=$(since "$from")
		good=no
		if [ -x "$busy" ] && [ $((round % 5)) -eq 0 ]; then
			start a shim a memory 0.3
			a=$pid
			runs a
			expect "round $round: a program then" "$(mps_of a)" test "$(mps_of a)" = client
			ends_well "that program" a $a
		else
			sleep 0.2
		fi
		if sharing_is mps && awk "BEGIN { exit !($took <= 2) }"; then
			good=yes
			right=$((right + 1))
		fi
		echo "| $round | $how | $took $([ $good = yes ] || echo "BAD, then $(mps_line)") | $(grep -c warning: "$scratch/sbeetd.log") |" >>"$scratch/restarts"
		cp "$scratch/sbeetd.log" "$scratch/sbeetd-$round.log"
		case $((round % 4)) in
		3) how=killed ;;
		0) how=both ;;
		*) how=ended ;;
		esac
		end_daemon $how
	done
	case $(cat "/proc/${control:-none}/comm" 2>/dev/null) in nvidia-cuda-mps*) kill "$control" ;; esac
	cat "$scratch/restarts" >&2
	expect "sbeetd with its own control daemon, again and again" "$right of 20 right" test "$right" -eq 20
}

id sbeet >/dev/null 2>&1 || useradd -r sbeet
right=
for section in ${*:-own user deaths measured limit unit follows restarts}; do
	see_$section
	sleep 0.5 # the control daemon goes
done

{
	echo "| what | seen |"
	echo "|---|---|"
	cat "$rows"
} | tee "$out/mps.md"
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps -czf "$out/mps.tar.gz" .
[ -z "$right" ] || echo "$right of 20 right"
! grep -q "BAD$" "$out/mps.md"
