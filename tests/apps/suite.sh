#!/bin/sh
# Runs sample programs on the simulated GPU and looks at results and order.
#
# usage: suite.sh alone PROGRAM ARGS...            without the shim
#        suite.sh shim POLICY MODE PROGRAM ARGS... under the shim; MODE: sharing mode of the GPU
#        suite.sh three POLICY MODE                three programs at once
#        suite.sh beside HOW                       two jobs on halves of one GPU: green, count, smid
#        suite.sh terms PROGRAM ARGS...            steered, to other SMs and another level each millisecond
#        suite.sh sets PROGRAM ARGS...            the same, but never to the whole GPU
#        suite.sh gates PROGRAM ARGS...           as terms, and its kernels always yield
#        suite.sh variants PROGRAM                 steered to another set while graphs can't be instantiated
#        suite.sh clusters PROGRAM                 some of its kernels fit into no part of the GPU
#        suite.sh whole PROGRAM                    its jobs can only be given the whole GPU
#        suite.sh part PROGRAM                     its jobs are given a part of it, as a green context
#        suite.sh unmanaged PROGRAM ARGS...        under the shim, no daemon there
. "$(dirname "$0")/lib.sh"

verb=$1
shift

case $verb in
alone)
	export SIMGPU=16
	"$@" --json >"$scratch/alone.out" 2>"$scratch/alone.err" || fail "exit code $?"
	results_ok alone
	;;
unmanaged)
	export SIMGPU=16
	start lonely "$@" --json
	ended_well lonely "$pid"
	grep -qi sbeetd "$scratch/lonely.err" || fail "the program runs unmanaged, and nobody says so"
	;;
shim)
	policy=$1
	export SIMGPU="32:$2"
	shift 2
	start_daemon --policy "$policy"
	start sample "$@" --json
	ended_well sample "$pid"
	until_true "each launch has reached sbeetd" status_is launched "" -eq "$(launches_of sample)"
	all_is_free
	stop_daemon
	;;
three)
	policy=$1
	export SIMGPU="32:$2"
	start_daemon --policy "$policy"
	start one "$apps/matmul" --frames 12 --json
	one=$pid
	start two "$apps/hotspot" --frames 6 --json
	two=$pid
	start three "$apps/histogram" --frames 20 --json
	ended_well three "$pid"
	ended_well two "$two"
	ended_well one "$one"
	until_true "each launch has reached sbeetd" status_is launched "" -eq \
		$(($(launches_of one) + $(launches_of two) + $(launches_of three)))
	all_is_free
	stop_daemon
	;;
beside)
	how=$1
	case $how in
	green) export SIMGPU=32:mps ;;
	count) export SIMGPU=t400:mps ;; # too small for groups of SMs
	old) export SIMGPU=32:mps SIMGPU_GREEN=off ;; # a driver without green contexts
	smid) export SIMGPU=16:exclusive ;;
	esac
	start_daemon --policy even
	if [ "$how" = smid ]; then
		export SBEET_SCOPE=thread
		start both "$apps/lanes" --lanes 2 --frames 100000000 --json
	else
		start first "$apps/hotspot" --frames 100000000 --json
		start second "$apps/lanes" --lanes 1 --frames 100000000 --json
	fi
	if [ "$how" = old ]; then
		how=count
		until_true "it is said that there are none" \
			grep -q "No green context can be made" "$scratch/first.err"
	fi
	until_true "two jobs run side by side, confined by $how" status_is side-by-side $how -ge 1
	daemon_lives
	# shellcheck disable=SC2086 # several processes
	kill $started
	all_is_free
	stop_daemon
	;;
part)
	export SIMGPU=32:mps
	start_daemon --policy even
	# Or it would get the whole GPU after eight short jobs, before anybody has looked.
	start other "$apps/lanes" --lanes 1 --frames 100000000 --json
	until_true "another job runs" status_is running other -ge 1
	start sample "$1" --frames 100000000 --json
	until_true "a job has a part of the GPU" status_is confined sample -ge 1
	daemon_lives
	# shellcheck disable=SC2086 # several processes
	kill $started
	all_is_free
	grep -q "could not be confined" "$scratch/sample.err" && fail "something ran on the whole GPU"
	stop_daemon
	;;
terms | sets | gates)
	export SIMGPU=32:mps SBEET_LOG=info
	set_only=$verb
	case $verb in
	terms) set_only= ;;
	sets) export SIMGPU_GREEN=slow SIMGPU_GRAPH=slow ;;
	esac
	"$SBEET_BUILD/tests/apps/steerer" "$SBEET_RUNTIME_DIR/shim.sock" $set_only >"$scratch/steerer.out" 2>"$scratch/steerer.err" &
	steerer=$!
	started="$started $steerer"
	until_true "somebody listens" test -S "$SBEET_RUNTIME_DIR/shim.sock"
	start sample "$@" --json
	ended_well sample "$pid"
	wait "$steerer" || fail "steerer: exit code $?"
	grep -q '"requests":0,' "$scratch/steerer.out" || fail "a job was asked for"
	grep -q "\"launches\":$(launches_of sample)," "$scratch/steerer.out" ||
		fail "not each launch was told of, or one twice"
	# Until the next set is made, jobs stay in the last one.
	[ "$verb" != sets ] || grep -q '"relapses":0}' "$scratch/steerer.out" ||
		fail "a job ran beside its set: $(cat "$scratch/steerer.out")"
	[ "$verb" != gates ] || grep -q "Kernels let jobs of others begin" "$scratch/sample.err" ||
		fail "no kernel yielded"
	[ "${1##*/}" != back ] || grep -q "A kernel makes copies from the GPU" "$scratch/sample.err" ||
		fail "no copy back was made by a kernel"
	cat "$scratch/steerer.out"
	;;
variants)
	export SIMGPU=32:mps SIMGPU_GRAPH="held:$scratch/hold"
	"$SBEET_BUILD/tests/apps/steerer" "$SBEET_RUNTIME_DIR/shim.sock" "$scratch/hold" >"$scratch/steerer.out" 2>"$scratch/steerer.err" &
	started="$started $!"
	until_true "somebody listens" test -S "$SBEET_RUNTIME_DIR/shim.sock"
	start sample "$1" --frames 100000000 --size 16 --launches 2 --json
	until_true "the first jobs are told of" grep -q held "$scratch/steerer.out"
	until_true "jobs go on meanwhile" grep -q stayed "$scratch/steerer.out"
	grep -q "stayed 0" "$scratch/steerer.out" || fail "jobs were under terms that graphs had no variant for"
	until_true "jobs are under the new terms" grep -q followed "$scratch/steerer.out"
	kill "$pid"
	;;
clusters)
	export SIMGPU=32:mps SBEET_LOG=info
	start_daemon --policy even
	start sample "$1" --frames 150 --json # more than the jobs after which a part is tried again
	ended_well sample "$pid"
	grep -q "does not fit into 16 SMs" "$scratch/sample.err" || fail "no part was too small"
	grep -q "could not be confined" "$scratch/sample.err" && fail "something ran beside its SMs"
	all_is_free
	stop_daemon
	;;
whole)
	export SIMGPU=t400:mps # too small for green contexts
	start_daemon --policy even
	start sample "$1" --frames 100000000 --json
	until_true "a job has the whole GPU" status_is whole sample -ge 1
	status_is confined sample -eq 0 || fail "a job that cannot be confined is said to be"
	daemon_lives
	kill "$pid"
	all_is_free
	stop_daemon
	;;
*)
	say "unknown: $verb"
	exit 2
	;;
esac
say "ok"
