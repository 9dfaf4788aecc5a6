#!/bin/sh
# run --job operation: each launch and each copy asks for itself and is granted by itself, also where
# threads share the program's jobs, and programs compute what they compute otherwise.
. "$(dirname "$0")/lib.sh"

export SIMGPU=32:mps

start_by_operation() { # TASK PROGRAM [ARGUMENT...]
	name=$1
	shift
	"$ctl" run --task "$name" --job operation --log info -- "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" &
	pid=$!
	started="$started $pid"
}

# Of the jobs of a trace each has one operation at most.
each_has_one() { # TRACE
	grep '"event":"op"' "$1" | sed 's/.*"job":\([0-9]*\).*"op":"\([a-z-]*\)".*/\1 \2/' | awk '
		seen[$1]++ { print "job " $1 " has another operation, " $2; bad = 1 }
		END { exit bad }' >"$scratch/each.out" || fail "$(head -n 3 "$scratch/each.out")"
}

for policy in even fcfs steer; do
	start_daemon --policy $policy
	start_by_operation stubborn "$apps/stubborn" --frames 1000000
	stubborn=$pid
	until_true "stubborn has jobs" status_is jobs stubborn -gt 12
	until_true "operations are recorded" records_ops "$scratch/$policy.trace" 2
	each_has_one "$scratch/$policy.trace"
	kill -TERM "$stubborn"
	wait "$stubborn"
	all_is_free

	# They check their own results; threads share the jobs of the process.
	for program in lanes graph copies vecadd; do
		start_by_operation $program "$apps/$program" --frames 3
		wait "$pid" || fail "$program failed under $policy: $(tail -n 3 "$scratch/$program.err")"
	done
	all_is_free
	stop_daemon
done
