#!/bin/sh
# Programs, plug-ins and preloads that have the driver's names, or look for them, on the simulated GPU.
#
# usage: names.sh lookups PYTHON: everything finds what it finds without sbeet
#        names.sh order PYTHON: each launch comes to sbeetd and keeps its place, whoever makes it and however it was found
#        names.sh tracers PYTHON: the same behind preloads that stand in for the driver
. "$(dirname "$0")/lib.sh"

case=$1
python=$2
names=$SBEET_BUILD/tests/apps/names
export SIMGPU=32:mps NAMES_DRIVER="$SBEET_BUILD/tests/simgpu/libcuda.so.1"
preload=$SBEET_BUILD/shim/libsbeet.so

# NAME COMMAND...: it prints the same as without sbeet, and ends alike.
same() {
	name=$1
	shift
	"$@" >"$scratch/$name-plain.out" 2>"$scratch/$name-plain.err"
	plain=$?
	"$ctl" run --task "$name" -- "$@" >"$scratch/$name.out" 2>"$scratch/$name.err"
	code=$?
	[ $code -eq $plain ] || fail "$name: exit code $code, without sbeet $plain"
	diff "$scratch/$name-plain.out" "$scratch/$name.out" >"$scratch/$name-diff.out" ||
		fail "$name: it finds something else than without sbeet"
	[ -s "$scratch/$name.out" ] || fail "$name: it prints nothing"
	[ ! -s "$scratch/$name.err" ] || fail "$name: something is said"
}

# Whether sbeetctl doctor says of the program that something stands in for the driver.
doctor_sees() {
	"$ctl" doctor "$1" >"$scratch/doctor.out" 2>&1
	grep -q "can be managed" "$scratch/doctor.out" || fail "doctor says nothing of $1"
	grep -q "stands in for functions of the driver" "$scratch/doctor.out"
}

# NAME COMMAND...: results are right although its jobs are moved to a part of the GPU, and all launches are counted.
runs=0
launches=0
ordered() {
	runs=$((runs + 1))
	name=$1-$runs
	shift
	"$ctl" run --task "$name" --max-sms 16 -- "$@" >"$scratch/$name.out" 2>"$scratch/$name.err" ||
		fail "$name: $*: exit code $?"
	results_ok "$name"
	launches=$((launches + $(launches_of "$name")))
	until_true "$name: $*: each launch has reached sbeetd" status_is launched "" -eq $launches
}

case $case in
lookups)
	start_daemon --policy steer
	same wrangler "$names/wrangler"
	same plug "$names/opens" "$names/libwrangler-plug.so"
	same stub "$names/stub"
	same lookups "$names/lookups" "$names/liblooks.so"
	same python "$python" "$(dirname "$0")/names/look.py"
	doctor_sees "$names/stub" || fail "doctor does not see a program's stubs"
	! doctor_sees "$names/wrangler" || fail "doctor takes pointers for functions"
	(export LD_PRELOAD="$names/libtracer.so" && doctor_sees "$names/order-now") || fail "doctor does not see a preload"
	! doctor_sees "$names/order-now" || fail "doctor sees a preload that is not there"
	same python-plug "$python" -c "import ctypes; ctypes.CDLL('$names/libwrangler-plug.so').run()"
	;;
order)
	start_daemon --policy steer
	for how in lazy now; do
		ordered own "$names/order-$how" own
		ordered proc "$names/order-$how" proc
		for plug in linked-lazy linked-now registers-lazy registers-now; do
			ordered plug "$names/order-$how" plug "$names/libplug-$plug.so"
			ordered deep "$names/order-$how" deep "$names/libplug-$plug.so"
		done
		# Else its pointer would be the program's function.
		ordered deep "$names/order-$how" deep "$names/libplug-finds.so"
	done
	if [ -e "$names/forward/libcuda.so.1" ]; then
		export LD_LIBRARY_PATH="$names/forward:$LD_LIBRARY_PATH"
		ordered forward "$names/order-lazy" own
		ordered forward "$names/order-now" proc
		ordered forward "$names/order-now" deep "$names/libplug-linked-lazy.so"
	fi
	;;
tracers)
	start_daemon --policy steer
	for how in handle next own; do
		for order in "$preload:$names/libtracer.so" "$names/libtracer.so:$preload"; do
			for program in lazy now; do
				ordered tracer env TRACER=$how "LD_PRELOAD=$order" "$names/order-$program" own
				grep -qx "tracer: 72 launches" "$scratch/$name.err" || fail "$how: they are not traced"
			done
		done
	done
	# Another clock is no reason to refuse the program.
	ordered clock env "LD_PRELOAD=$names/libclock.so:$preload" "$names/order-now" own
	[ ! -s "$scratch/$name.err" ] || fail "clock: something is said"
	# One that can't be seen: what it launches is not managed, so nothing else is moved.
	for order in "$preload:$names/libtracer.so" "$names/libtracer.so:$preload"; do
		"$ctl" run --task unseen --max-sms 16 -- env TRACER=unseen "LD_PRELOAD=$order" "$names/order-now" own \
			>"$scratch/unseen.out" 2>"$scratch/unseen.err" || fail "unseen: exit code $?"
		results_ok unseen
		grep -q "libtracer.so stands in for functions of the driver, and finds the driver's own past" \
			"$scratch/unseen.err" || fail "unseen: nothing is said"
	done
	;;
esac
all_is_free
stop_daemon
say "ok"
