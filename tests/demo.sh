#!/bin/sh
# The main job, to be looked at: three CUDA programs that know nothing of sbeet run side by side under
# the shim, each kernel on the SMs that sbeetd granted, and check their own results.
#
# Installs what is missing, builds, and uses this machine's GPU, or simulated ones where there is
# none (or with DEMO_GPU=simulated). Exit 0 only if everything that is claimed was seen.
set -u

cd "$(dirname "$0")/.." || exit 1
began=$(date +%s)
build=build
scratch=
pids=

say() {
	printf '%s\n' "$*"
}

die() {
	say "demo: $*" >&2
	exit 1
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

build_all() {
	mkdir -p "$build"
	log=$build/demo-build.log
	sh tests/configure.sh "$build" >"$log" 2>&1 || { tail -n 30 "$log" && die "cannot configure, see $log"; }
	ninja -C "$build" demo >"$log" 2>&1 &
	maker=$!
	shown=
	while kill -0 "$maker" 2>/dev/null; do
		sleep 1
		now=$(tail -n 1 "$log" | sed -n 's/^\(\[[0-9]*\/[0-9]*\]\).*/\1/p')
		if [ -n "$now" ] && [ "$now" != "$shown" ]; then
			say "   $now"
			shown=$now
		fi
	done
	wait "$maker" || { tail -n 30 "$log" && die "building failed, see $log"; }
}

# NAME SBEETCTL-OPTIONS... -- COMMAND...: starts a program under the shim in the background.
start() {
	name=$1
	shift
	"$ctl" run --task "$name" "$@" >"$scratch/$name.json" 2>"$scratch/$name.err" 9>&- &
	eval "pid_$name=$!"
	pids="$pids $!"
	say "   sbeetctl run --task $name $(printf '%s ' "$@" | sed "s|$PWD/||g; s/ \$//")"
}

# NAME KEY: a number or word of the program's summary line (the outermost object, before any array).
field() {
	sed -n "s/^[^[]*\"$2\":\\([a-z0-9]*\\).*/\\1/p" "$scratch/$1.json"
}

say "== what is needed"
sh tests/prepare.sh -q || exit 1
say "== build"
build_all

scratch=$(mktemp -d)
ctl=$PWD/$build/client/sbeetctl
apps=$PWD/$build/tests/apps/driver
export SBEET_RUNTIME_DIR="$scratch/run"
mkdir -m 700 "$scratch/run"

if [ "${DEMO_GPU:-}" != simulated ] && name=$("$build/tests/demo/gpu-present"); then
	say "== GPU: $name"
	real=true
	lanes_gpu=0
else
	real=false
	lanes_gpu=1
	export SIMGPU=rtx3070:mps,rtx3070:exclusive
	export SIMGPU_DIR="$scratch/simgpu"
	mkdir -m 700 "$scratch/simgpu"
	export LD_LIBRARY_PATH="$PWD/$build/tests/simgpu${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
	say "== no GPU in use: two simulated ones, the first shared by processes (MPS), the second not"
fi

say "== sbeetd --policy even"
"$build/daemon/sbeetd" --policy even >"$scratch/sbeetd.log" 2>&1 &
daemon=$!
pids="$pids $daemon"
tries=0
until "$ctl" status --json >/dev/null 2>&1; do
	kill -0 "$daemon" 2>/dev/null || { cat "$scratch/sbeetd.log" && die "sbeetd ended"; }
	tries=$((tries + 1))
	[ "$tries" -le 200 ] || { cat "$scratch/sbeetd.log" && die "sbeetd does not answer"; }
	sleep 0.1
done

# The watcher ends when the pipe that it reads does: this shell holds the writing end.
mkfifo "$scratch/watching"
"$build/tests/demo/watch" "$ctl" 20 <"$scratch/watching" >"$scratch/seen" 2>"$scratch/watch.err" &
watcher=$!
pids="$pids $watcher"
exec 9>"$scratch/watching"

say "== three programs"
if [ "$real" = true ]; then
	start camera --period 100ms --deadline 100ms --priority 10 -- \
		"$apps/lanes" --lanes 1 --size 2048 --rounds 1000000 --period 100ms --frames 100 --json
	start planner --period 100ms --deadline 100ms -- \
		"$apps/hotspot" --size 128 --launches 100 --period 100ms --frames 100 --json
	start lanes --scope thread -- \
		"$apps/lanes" --lanes 2 --size 2048 --rounds 1000000 --frames 150 --json
else
	# Periods without a common divisor: sooner or later every phase of one meets every phase of the
	# other.
	start camera --period 130ms --deadline 130ms --priority 10 -- \
		"$apps/matmul" --size 80 --period 130ms --frames 92 --json
	start planner --period 310ms --deadline 310ms -- \
		"$apps/hotspot" --size 80 --launches 8 --period 310ms --frames 39 --json
	start lanes --scope thread --period 200ms --deadline 200ms -- \
		"$apps/lanes" --gpu "$lanes_gpu" --lanes 2 --size 46 --period 200ms --frames 60 --json
fi
programs="camera planner lanes"

say ""
say "In the SM map a letter is the task that holds the SM, a capital: exactly this one; '.' is free."
say ""
for view in 1 2 3; do
	sleep 2
	alive=false
	for p in $programs; do
		eval "kill -0 \$pid_$p 2>/dev/null" && alive=true
	done
	[ "$alive" = true ] || break
	# A moment when something is to be seen, if it comes soon.
	tries=0
	until [ "$("$build/tests/demo/ask" "$ctl" running)" -ge 3 ] || [ "$tries" -ge 40 ]; do
		tries=$((tries + 1))
		sleep 0.02
	done
	say "== live view, $view of 3 (sbeetctl status)"
	"$ctl" status
	say ""
done

failed=0
for p in $programs; do
	eval "wait \$pid_$p"
	code=$?
	if [ "$code" -ne 0 ] || [ "$(field "$p" ok)" != true ]; then
		say "$p: exit code $code"
		cat "$scratch/$p.json" "$scratch/$p.err"
		failed=1
	elif [ -s "$scratch/$p.err" ]; then
		cat "$scratch/$p.err"
	fi
done

exec 9>&-
wait "$watcher" || { cat "$scratch/watch.err" && failed=1; }
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
printf '%-9s %7s %9s %6s %7s  %-9s %s\n' PROGRAM FRAMES LAUNCHES JOBS MISSES RESULTS "SM SETS (HOW THEY ARE ENFORCED)"
for p in $programs; do
	counts=$(awk -v task="$p" '$1 == "task" && $2 == task { print $3, $5 }' "$scratch/seen")
	if [ "$(field "$p" ok)" = true ]; then
		results=verified
	else
		results=WRONG
	fi
	printf '%-9s %7s %9s %6s %7s  %-9s %s\n' "$p" "$(field "$p" frames)" "$(field "$p" launches)" \
		"${counts% *}" "${counts#* }" "$results" "$(sets_of "$p")"
done
if [ "$real" = false ]; then
	say "(A processor plays these GPUs: how many deadlines are missed says nothing about a real one.)"
fi
say ""

# What must have been seen at one moment in one status, by the sharing mode of each GPU.
demand() { # WHERE ENFORCEMENT GPU SENTENCE
	pair=$(awk -v where="$1" -v how="$2" -v gpu="$3" '
		function words(job, part) { # "any-23:camera", "0-22:lanes"
			split(job, part, ":")
			return part[2] " on " (sub(/^any-/, "any ", part[1]) ? part[1] " SMs" : "SMs " part[1])
		}
		$1 == "pair" && $2 == where && $3 == gpu && $6 == how {
			printf "%s and %s, seen %d times", words($4), words($5), $7
			exit
		}' "$scratch/seen")
	if [ -z "$pair" ]; then
		say "NOT SEEN: $4"
		failed=1
		return
	fi
	say "$4: $pair"
}

modes=$(awk '$1 == "gpu" { print $2, $3 }' "$scratch/seen")
case $modes in
*mps*)
	gpu=$(printf '%s\n' "$modes" | awk '$2 == "mps" { print $1; exit }')
	if grep -q '^pair processes .* green ' "$scratch/seen"; then
		demand processes green "$gpu" "two processes side by side on GPU $gpu, each on exactly its SMs"
	else # where there are no green contexts
		demand processes count "$gpu" "two processes side by side on GPU $gpu, each held to its number of SMs"
	fi
	;;
esac
case $modes in
*exclusive*)
	gpu=$(printf '%s\n' "$modes" | awk '$2 == "exclusive" { print $1; exit }')
	demand threads smid "$gpu" "two threads of one process side by side on GPU $gpu, each on exactly its SMs"
	;;
esac
if grep -E '^(overlap|inexact) ' "$scratch/seen"; then
	say "Two jobs were promised the same SM, or a number of SMs was shown as exact ones (above)"
	failed=1
fi

say ""
if [ "$failed" -eq 0 ]; then
	say "The demonstration succeeded, in $(($(date +%s) - began)) s."
	say "Your own program: start $build/daemon/sbeetd, then $build/client/sbeetctl run -- PROGRAM;"
	say "$build/client/sbeetctl top shows it. README.md tells the rest."
else
	say "The demonstration failed."
fi
exit "$failed"
