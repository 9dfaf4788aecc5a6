#!/bin/sh
# The main job, to be looked at: three CUDA programs that know nothing of sbeet run side by side under
# the shim, each kernel on the SMs that sbeetd granted, and check their own results.
#
# Installs what is missing, builds, and uses this machine's GPU, or simulated ones where there is
# none (or with DEMO_GPU=simulated). Measures first how long the programs take on this machine, and
# chooses periods and deadlines by that. They then run for about DEMO_SECONDS (10) seconds. Exit 0 only if
# everything that is claimed was seen.
set -u

began=$(date +%s)
called_in=$PWD
cd "$(dirname "$0")/.." || exit 1
me=demo
scratch=
pids=
. tests/demo/lib.sh

say() {
	printf '%s\n' "$*"
}

# Ends what is still running, and only that.
clean_up() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null
	done
	[ -n "$pids" ] && wait 2>/dev/null
	[ -n "$scratch" ] && rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# PID: it has been waited for.
forget() {
	# shellcheck disable=SC2086 # words
	pids=$(printf '%s ' $pids | sed "s/\(^\| \)$1 /\1/")
}

# NAME FRAMES [PERIOD]: starts a program under the shim in the background; without a period its frames
# follow each other at once. $shown is the command.
start() {
	name=$1
	frames=$2
	period=${3:-}
	case $real-$name in
	true-camera) set -- "$apps/lanes" --lanes 1 --size 2048 --rounds 1000000 ;;
	true-planner) set -- "$apps/hotspot" --size 128 --launches 100 ;;
	true-lanes) set -- "$apps/lanes" --lanes 2 --size 2048 --rounds 1000000 ;;
	false-camera) set -- "$apps/matmul" --size 80 ;;
	false-planner) set -- "$apps/hotspot" --size 80 --launches 8 ;;
	false-lanes) set -- "$apps/lanes" --gpu 1 --lanes 2 --size 46 ;;
	esac
	set -- -- "$@" ${period:+--period "$period" --align} --frames "$frames" --json
	set -- ${period:+--period "$period" --deadline "$period"} "$@"
	case $name in
	camera) set -- --priority 10 "$@" ;;
	lanes) set -- --scope thread "$@" ;;
	esac
	shown="sbeetctl run --task $name $(printf '%s ' "$@" | sed "s|$PWD/||g; s/ \$//")"
	"$ctl" run --task "$name" "$@" >"$scratch/$name.json" 2>"$scratch/$name.err" 9>&- &
	eval "pid_$name=$!"
	pids="$pids $!"
}

# NAME KEY: a number or word of the program's summary line (the outermost object, before any array).
field() {
	sed -n "s/^[^[]*\"$2\":\\([a-z0-9]*\\).*/\\1/p" "$scratch/$1.json"
}

# NAME: waits for its end. Return: whether it ended well and its results are right.
finish() {
	eval "pid=\$pid_$1"
	wait "$pid"
	code=$?
	forget "$pid"
	if [ "$code" -ne 0 ] || [ "$(field "$1" ok)" != true ]; then
		say "$1: exit code $code"
		cat "$scratch/$1.json" "$scratch/$1.err"
		return 1
	fi
	cat "$scratch/$1.err"
}

max() {
	echo $(($1 > $2 ? $1 : $2))
}

min() {
	echo $(($1 < $2 ? $1 : $2))
}

# NAME: its longest frame in ms, rounded up.
longest_ms() {
	echo $((($(field "$1" longest_frame_ns) + 999999) / 1000000))
}

say "== what is needed, and the build"
prepare demo

scratch=$(mktemp -d)
apps=$build_path/tests/apps/driver
ask=$build_path/tests/demo/ask
export SBEET_RUNTIME_DIR="$scratch/run"
mkdir -m 700 "$scratch/run"

if [ "${DEMO_GPU:-}" != simulated ] && name=$("$build_path/tests/demo/gpu-present"); then
	say "== GPU: $name"
	real=true
else
	real=false
	export SIMGPU=rtx3070:mps,rtx3070:exclusive
	export SIMGPU_DIR="$scratch/simgpu"
	mkdir -m 700 "$scratch/simgpu"
	export LD_LIBRARY_PATH="$build_path/tests/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	say "== no GPU in use: two simulated ones, the first shared by processes (MPS), the second not"
fi

say "== sbeetd --policy even"
"$build_path/daemon/sbeetd" --policy even >"$scratch/sbeetd.log" 2>&1 &
daemon=$!
pids="$pids $daemon"
wait_for_daemon "$daemon" "$scratch/sbeetd.log"
programs="camera planner lanes"

# How long frames take depends on the machine, and on what else it does now: periods that fit one are
# too short for another.
say "== measuring how long a frame of each program takes here, at its longest"
for p in $programs; do
	start "$p" 8
	finish "$p" || die "$p failed when it ran alone"
	eval "alone_$p=$(longest_ms "$p")"
done
for p in $programs; do
	start "$p" 30
done
for p in $programs; do
	finish "$p" || die "$p failed beside the others"
	eval "together_$p=$(longest_ms "$p")"
done

# Twice the longest frame of the program, and once more, but 30 to 300 ms. The camera has half the period
# of the others, so that frames of all three begin together again and again.
period=0
for p in $programs; do
	eval "longest=\$(max \$alone_$p \$together_$p)"
	spare=$(min "$(max "$longest" 30)" 300)
	need=$((longest * 2 + spare))
	[ "$p" = camera ] || need=$(((need + 1) / 2))
	period=$(max "$need" "$period")
done
period=$(((period + 9) / 10 * 10))
# shellcheck disable=SC2034 # read by name
period_camera=$period period_planner=$((period * 2)) period_lanes=$((period * 2))
printf '%-9s %9s %12s  %s\n' PROGRAM "ALONE ms" "TOGETHER ms" "PERIOD AND DEADLINE ms"
for p in $programs; do
	eval "printf '%-9s %9s %12s  %s\n' $p \$alone_$p \$together_$p \$period_$p"
done
say "(At least twice the longest frame, and 30 to 300 ms more.)"
done_before=$("$ask" "$ctl" "done")

# All three with their periods, and a watcher that looks at them. The first time with live views.
run_programs() { # VIEWS
	# The watcher ends when the pipe that it reads does: this shell holds the writing end.
	"$build_path/tests/demo/watch" "$ctl" 20 <"$scratch/watching" >"$scratch/seen" \
		2>"$scratch/watch.err" &
	watcher=$!
	pids="$pids $watcher"
	exec 9>"$scratch/watching"

	say "== three programs"
	for p in $programs; do
		eval "period=\$period_$p"
		frames=$((${DEMO_SECONDS:-10} * 1000 / period))
		start "$p" $((frames > 4 ? frames : 4)) "${period}ms"
		say "   $shown"
	done
	show_live "$1"
	for p in $programs; do
		finish "$p" || failed=1
	done
	exec 9>&-
	wait "$watcher" || { cat "$scratch/watch.err" && failed=1; }
	forget "$watcher"
}

show_live() { # VIEWS
	[ "$1" -eq 0 ] || say "
In the SM map a letter is the task that holds the SM, a capital: exactly this one; '.' is free.
"
	for view in $(seq "$1"); do
		sleep 1
		alive=false
		for p in $programs; do
			eval "kill -0 \$pid_$p 2>/dev/null" && alive=true
		done
		[ "$alive" = true ] || break
		# A moment when something is to be seen, if it comes soon.
		tries=0
		until [ "$("$ask" "$ctl" running)" -ge 4 ] || [ "$tries" -ge 100 ]; do
			tries=$((tries + 1))
			sleep 0.02
		done
		say "== live view, $view of $1 (sbeetctl status)"
		"$ctl" status
		say ""
	done
}

# What must have been seen at one moment in one status, by the sharing mode of each GPU: a line each,
# WHERE ENFORCEMENT GPU SENTENCE.
list_demands() {
	awk '$1 == "gpu" { gpus[$2] = $3 }
		$1 == "pair" && $2 == "processes" && $6 == "green" { green = 1 }
		END {
			for (gpu in gpus) {
				if (gpus[gpu] == "exclusive") {
					print "threads smid", gpu, "two threads of one process side by side on GPU", gpu \
						", each on exactly its SMs"
				} else if (green) {
					print "processes green", gpu, "two processes side by side on GPU", gpu \
						", each on exactly its SMs"
				} else { # where there are no green contexts
					print "processes count", gpu, "two processes side by side on GPU", gpu \
						", each held to its number of SMs"
				}
			}
		}' "$scratch/seen" | sort | awk '!told[$1]++' # on one GPU of each kind
}

# Says which jobs they were. Return: whether all was seen.
tell_demands() {
	list_demands | {
		all=
		while read -r where how gpu sentence; do
			pair=$(awk -v where="$where" -v how="$how" -v gpu="$gpu" '
				function words(job, part) { # "any-23:camera", "0-22:lanes"
					split(job, part, ":")
					return part[2] " on " (sub(/^any-/, "any ", part[1]) ? part[1] " SMs" : "SMs " part[1])
				}
				$1 == "pair" && $2 == where && $3 == gpu && $6 == how {
					printf "%s and %s, seen %d times", words($4), words($5), $7
					exit
				}' "$scratch/seen")
			say "$sentence: ${pair:-NOT SEEN}"
			[ -n "$pair" ] && all=${all:-true} || all=false
		done
		[ "$all" = true ]
	}
}

failed=0
round=1
mkfifo "$scratch/watching"
run_programs 3
# How often they are seen side by side is chance.
while [ "$failed" -eq 0 ] && [ "$round" -lt 3 ] && ! tell_demands >/dev/null; do
	round=$((round + 1))
	say "== not everything was seen yet: once more"
	run_programs 0
done
n_jobs=$(($("$ask" "$ctl" "done") - done_before))
missed=$("$ask" "$ctl" missed)

kill -TERM "$daemon"
wait "$daemon"
code=$?
pids=
if [ "$code" -ne 0 ]; then
	cat "$scratch/sbeetd.log"
	say "sbeetd: exit code $code"
	failed=1
fi

# "0-22 (smid); 23-45 (smid)", or "any 23 (count)": what jobs of a task were seen to hold.
sets_of() {
	awk -v task="$1" '$1 == "set" && $2 == task { printf "%s%s (%s)", sep, $4, $5; sep = "; " }' \
		"$scratch/seen" | sed 's/any-/any /g'
}

say "== summary ($(awk '$1 == "polls" { print $2 }' "$scratch/seen") looks at sbeetctl status --json while they ran)"
printf '%-9s %7s %9s  %-9s %s\n' PROGRAM FRAMES LAUNCHES RESULTS "SM SETS (HOW THEY ARE ENFORCED)"
for p in $programs; do
	if [ "$(field "$p" ok)" = true ]; then
		results=verified
	else
		results=WRONG
	fi
	printf '%-9s %7s %9s  %-9s %s\n' "$p" "$(field "$p" frames)" "$(field "$p" launches)" "$results" \
		"$(sets_of "$p")"
done
if [ "$missed" -eq 0 ]; then
	say "No deadline was missed by $n_jobs jobs."
else
	say "$missed of $n_jobs jobs missed their deadlines: the machine was busier than when it was measured."
fi
if [ "$real" = false ]; then
	say "(A processor plays these GPUs: these times say nothing about a real one.)"
fi
say ""

tell_demands || failed=1
if grep -E '^(overlap|inexact) ' "$scratch/seen"; then
	say "Two jobs were promised the same SM, or a number of SMs was shown as exact ones (above)"
	failed=1
fi

say ""
if [ "$failed" -ne 0 ]; then
	say "The demonstration failed."
	exit 1
fi
say "The demonstration succeeded, in $(($(date +%s) - began)) s."
say ""
if [ "$real" = true ]; then
	say "To go on, copy these lines. They run a program on this GPU:"
	[ "$called_in" = "$PWD" ] || say "  cd '$PWD'"
	say "  $build/daemon/sbeetd &"
	say "  $build/client/sbeetctl run --require --task mine -- $build/tests/apps/driver/hotspot --frames 100"
	say "  $build/client/sbeetctl status"
	say "  kill %1"
	say "These run it on a simulated GPU, and say how to compile programs of your own for it:"
else
	say "To go on, copy these lines. They run a program on the simulated GPU, and say how to compile programs"
	say "of your own for it:"
	[ "$called_in" = "$PWD" ] || say "  cd '$PWD'"
fi
say "  sh tests/sim.sh --task=mine $build/tests/apps/driver/hotspot --frames 20"
say "  sh tests/sim.sh --help"
