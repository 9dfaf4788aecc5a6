#!/bin/sh
# What happens when something dies or is broken: results are those without the shim, sbeetd lives, SMs
# come back, and somebody says what happened.
#
# usage: faults.sh CASE, see below
. "$(dirname "$0")/lib.sh"


# That a killed program's neighbours fail under MPS is the hardware's part, not what is tested here.
export SIMGPU_FAULTS=contained
enough=$scratch/enough # what runs until this is there can't be over before it was looked at

case $1 in
program-killed-while-running)
	export SIMGPU=16:mps
	start_daemon --policy fcfs
	start victim "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	victim=$pid
	until_true "its job runs" status_is running victim -eq 1
	start heir "$apps/vecadd" --frames 3 --json
	until_true "another job waits for it" status_is waiting heir -eq 1
	kill -9 "$victim"
	ended_well heir "$pid"
	status_is abandoned "" -ge 1 || fail "the dead program's job does not count as abandoned"
	;;
program-killed-while-waiting)
	export SIMGPU=16:mps
	start_daemon --policy fcfs
	start holder "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	holder=$pid
	until_true "a job runs" status_is running holder -eq 1
	start victim "$apps/vecadd" --frames 3 --json
	until_true "another waits" status_is waiting victim -eq 1
	kill -9 "$pid"
	until_true "the waiting job is gone" status_is waiting "" -eq 0
	until_true "its session is gone" status_is sessions victim -eq 0
	status_is running holder -eq 1 || fail "the running job suffered"
	kill -9 "$holder"
	;;
program-killed-between-jobs)
	export SIMGPU=16:mps
	start_daemon --policy even
	start victim "$apps/vecadd" --frames 100 --period 600s --json
	until_true "its first job is done" status_is done "" -ge 1
	until_true "nothing runs" status_is busy "" -eq 0
	kill -9 "$pid"
	;;
program-ended-by-sbeetctl)
	# In the middle of its kernel, beside another: MPS ends it as a client, so the other goes on.
	export SIMGPU=16:mps SIMGPU_FAULTS=spread CUDA_MPS_PIPE_DIRECTORY="$scratch/mps"
	export PATH="$SBEET_BUILD/tests/simgpu/mps:$PATH"
	nvidia-cuda-mps-control -f >"$scratch/mps.log" 2>&1 &
	started="$started $!"
	until_true "MPS answers" eval "echo get_server_list | nvidia-cuda-mps-control"
	start_daemon --policy even
	start victim "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	victim=$pid
	until_true "its job runs" status_is running victim -eq 1
	start neighbour "$apps/endless" "$enough" unmarked
	neighbour=$pid
	until_true "another runs beside it" status_is running neighbour -eq 1
	"$ctl" status | grep -q '^MPS up' || fail "status does not show MPS"
	session=$("$ctl" session list --no-legend --columns id,pid | awk -v pid="$victim" '$2 == pid { print $1 }')
	[ -n "$session" ] || fail "the victim's session is not listed"
	"$ctl" session kill "$session" >"$scratch/kill.out" 2>&1 || fail "session kill: exit code $?"
	[ -s "$scratch/kill.out" ] && fail "session kill has something to complain about"
	wait "$victim" && fail "the victim has ended well"
	touch "$enough"
	ended_well neighbour "$neighbour"
	grep -q "MPS has ended its client $victim" "$scratch/sbeetd.log" || fail "MPS was not asked"
	;;
program-ended-without-mps)
	# Nobody ends it as a client: what it runs ends first, and the other goes on.
	export SIMGPU=16:mps SIMGPU_FAULTS=spread
	start_daemon --policy even --mps off
	start victim "$apps/lanes" --lanes 1 --rounds 4000 --frames 100000000 --json
	victim=$pid
	until_true "its job runs" status_is running victim -eq 1
	start neighbour "$apps/endless" "$enough" unmarked
	neighbour=$pid
	until_true "another runs beside it" status_is running neighbour -eq 1
	session=$("$ctl" session list --no-legend --columns id,pid | awk -v pid="$victim" '$2 == pid { print $1 }')
	"$ctl" session kill "$session" >"$scratch/kill.out" 2>&1 || fail "session kill: exit code $?"
	[ -s "$scratch/kill.out" ] && fail "session kill has something to complain about"
	wait "$victim" && fail "the victim has ended well"
	touch "$enough"
	ended_well neighbour "$neighbour"
	status_is abandoned "" -eq 0 || fail "it was ended in the middle of a job"
	;;
program-killed-beside-another)
	# What sbeetctl is for: as measured, such a death reaches the neighbour, who is told by CUDA.
	export SIMGPU=16:mps SIMGPU_FAULTS=spread
	start_daemon --policy even
	start victim "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	victim=$pid
	until_true "its job runs" status_is running victim -eq 1
	start neighbour "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	neighbour=$pid
	until_true "another runs beside it" status_is running neighbour -eq 1
	kill -9 "$victim"
	wait "$neighbour" && fail "the neighbour has not noticed"
	grep -q "another client of MPS died" "$scratch/neighbour.err" || fail "nobody says why"
	;;
program-killed-again-and-again)
	export SIMGPU=16:mps
	start_daemon --policy even
	for round in 1 2 3 4 5 6 7 8; do
		start victim "$apps/hotspot" --frames 1000000 --json
		until_true "round $round: it works" status_is jobs victim -ge "$round"
		kill -9 "$pid"
		until_true "round $round: its session is gone" status_is sessions victim -eq 0
	done
	;;
daemon-killed-while-running)
	export SIMGPU=16:mps
	start_daemon --policy even
	start survivor "$apps/endless" "$enough" unmarked
	until_true "a job runs" status_is running survivor -ge 1
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	until_true "it is said that the daemon is gone" grep -qi 'sbeetd is gone' "$scratch/survivor.err"
	touch "$enough"
	ended_well survivor "$pid"
	start_daemon --policy even
	;;
daemon-killed-while-a-job-waits)
	export SIMGPU=16:mps
	start_daemon --policy fcfs
	start holder "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	holder=$pid
	until_true "a job runs" status_is running holder -eq 1
	start waiter "$apps/vecadd" --frames 3 --json
	until_true "another waits" status_is waiting waiter -eq 1
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	kill -9 "$holder"
	ended_well waiter "$pid"
	grep -qi sbeetd "$scratch/waiter.err" || fail "the daemon is gone, and nobody says so"
	start_daemon --policy fcfs
	;;
daemon-restarted)
	export SIMGPU=16:mps
	start_daemon --policy even
	start survivor "$apps/lanes" --lanes 1 --frames 100000000 --json
	until_true "its first job is done" status_is done "" -ge 1
	kill -9 "$daemon"
	wait "$daemon" 2>/dev/null
	start_daemon --policy even
	until_true "it is back, and its jobs are managed" status_is jobs survivor -ge 3
	kill -9 "$pid"
	;;
daemon-required-but-absent)
	export SIMGPU=16:mps
	export SBEET_REQUIRE=1
	start needy "$apps/vecadd" --frames 3 --json
	wait "$pid" && fail "it ran although there is no sbeetd"
	grep -q SBEET_REQUIRE "$scratch/needy.err" || fail "nobody says why"
	grep -q '"ok":true' "$scratch/needy.out" && fail "it computed something"
	unset SBEET_REQUIRE
	start_daemon --policy even
	;;
daemon-stopped-while-running)
	export SIMGPU=16:mps
	start_daemon --policy even
	start survivor "$apps/endless" "$enough" unmarked
	until_true "a job runs" status_is running survivor -ge 1
	stop_daemon
	touch "$enough"
	ended_well survivor "$pid"
	start_daemon --policy even
	;;
daemon-silent-while-running)
	# Stopped, not dead: programs go on unmanaged, whether they hold a job, wait for one or come new.
	export SIMGPU=16:mps SBEET_TIMEOUT=300ms
	start_daemon --policy fcfs
	start survivor "$apps/lanes" --lanes 1 --frames 100000000 --json
	survivor=$pid
	until_true "its first job is done" status_is done "" -ge 1
	start finite "$apps/endless" "$enough" unmarked
	finite=$pid
	until_true "another program is there" status_is sessions finite -eq 1
	kill -STOP "$daemon"
	until_true "it says that it runs unmanaged" grep -q "running unmanaged" "$scratch/finite.err"
	touch "$enough"
	ended_well finite "$finite"
	until_true "the first says that it runs unmanaged" grep -q "running unmanaged" "$scratch/survivor.err"
	start late "$apps/vecadd" --frames 3 --json
	ended_well late "$pid"
	grep -q "running unmanaged" "$scratch/late.err" || fail "nobody says why"
	kill -CONT "$daemon"
	until_true "sbeetd answers" "$ctl" status --json
	jobs=$("$ask" "$ctl" jobs survivor)
	until_true "its jobs are managed again" status_is jobs survivor -ge $((jobs + 3))
	kill -9 "$survivor"
	;;
daemon-killed-while-steering | daemon-stopped-while-steering)
	# Programs go on where their terms say, and wait for nobody: SBEET_WAIT would be for ever.
	export SIMGPU=32:mps SBEET_WAIT=1h
	start_daemon --policy steer
	start survivor "$apps/hotspot" --frames 100000000 --json
	survivor=$pid
	until_true "its first job is done" status_is done "" -ge 1
	start finite "$apps/hotspot" --frames 60 --json
	until_true "another program works beside it" status_is jobs finite -ge 1
	if [ "$1" = daemon-killed-while-steering ]; then
		kill -9 "$daemon"
		wait "$daemon" 2>/dev/null
	else
		kill -STOP "$daemon"
	fi
	ended_well finite "$pid"
	jobs=0
	if [ "$1" = daemon-killed-while-steering ]; then
		start_daemon --policy steer
	else
		kill -CONT "$daemon"
		until_true "sbeetd answers" "$ctl" status --json
		jobs=$("$ask" "$ctl" jobs survivor)
	fi
	until_true "the jobs of the other are in the books again" status_is jobs survivor -ge $((jobs + 3))
	! grep -q unmanaged "$scratch/survivor.err" "$scratch/finite.err" || fail "somebody went on without terms"
	kill -9 "$survivor"
	;;
context-ends-while-its-job-closes)
	# reduce leaves its last job open, for its last wait covers one of two streams only. So the
	# shim closes it at about the time when the program takes its context down. Many tries for a
	# narrow window.
	export SIMGPU=16:exclusive
	start_daemon --policy even
	for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
		start again "$apps/reduce" --frames 2 --json
		ended_well again "$pid"
		start again "$apps/reduce" --frames 4 --json
		ended_well again "$pid"
	done
	;;
broken-images)
	export SIMGPU=16:mps
	"$apps/images" >"$scratch/bare.out" 2>"$scratch/bare.err" || fail "images without the shim: exit code $?"
	start_daemon --policy even
	start images "$apps/images"
	wait "$pid" || fail "images under the shim: exit code $?"
	cmp "$scratch/bare.out" "$scratch/images.out" ||
		fail "the driver's answers are not those without the shim"
	;;
corrupt-program)
	# An ordinary nvcc program whose fat binary was damaged on its way here: the second argument.
	export SIMGPU=16:mps
	program=$2
	# Offset and size of the section, of which the second half is overwritten.
	section=$(readelf -SW "$program" | sed -n \
		's/.*\.nv_fatbin *PROGBITS *[0-9a-f]* *\([0-9a-f]*\) *\([0-9a-f]*\) .*/\1 \2/p')
	[ -n "$section" ] || fail "'$program' has no section .nv_fatbin"
	half=$((0x${section#* } / 2))
	cp "$program" "$scratch/corrupt"
	head -c "$half" /dev/zero | tr '\0' '\252' |
		dd of="$scratch/corrupt" bs=1 seek=$((0x${section% *} + half)) conv=notrunc 2>/dev/null
	"$scratch/corrupt" --frames 1 >"$scratch/bare.out" 2>"$scratch/bare.err" &&
		fail "it runs, damaged or not: the test is wrong"
	start_daemon --policy even
	start corrupt "$scratch/corrupt" --frames 1
	wait "$pid" && fail "it runs under the shim only"
	cmp "$scratch/bare.out" "$scratch/corrupt.out" || fail "its output is not that without the shim"
	grep -v '^sbeet: ' "$scratch/corrupt.err" | cmp - "$scratch/bare.err" ||
		fail "its messages are not those without the shim"
	;;
gpu-lost-while-running)
	# Under one program's kernel, with another one waiting for it: both are told by CUDA and end.
	export SIMGPU=16:mps
	"$SBEET_BUILD/tests/simgpu/simgpud" --foreground >"$scratch/simgpud.log" 2>&1 &
	gpu=$!
	started="$started $gpu"
	until_true "the GPU is there" test -S "$SIMGPU_DIR/simgpud.sock"
	start_daemon --policy fcfs
	start holder "$apps/lanes" --lanes 1 --rounds 100000000 --frames 1 --json
	holder=$pid
	until_true "a job runs" status_is running holder -eq 1
	start waiter "$apps/vecadd" --frames 3 --json
	waiter=$pid
	until_true "another waits" status_is waiting waiter -eq 1
	kill -9 "$gpu"
	wait "$holder" && fail "the program has not noticed"
	grep -q CUDA_ERROR "$scratch/holder.err" || fail "CUDA has not told what happened"
	wait "$waiter" && fail "what waited has not noticed"
	daemon_lives
	until_true "all SMs are free" status_is busy "" -eq 0
	start next "$apps/vecadd" --frames 3 --json # on a GPU that is there again
	ended_well next "$pid"
	;;
kernel-that-cannot-be-confined)
	# One program at a time: with MPS a green context would hold it, and nothing were to be said.
	export SIMGPU=16:exclusive
	start_daemon --policy even
	start stubborn "$apps/stubborn" --frames 5 --json
	ended_well stubborn "$pid"
	grep -q "'stubborn' can't be confined" "$scratch/stubborn.err" ||
		fail "nobody says which kernel cannot be confined"
	;;
kernels-whose-blocks-wait-*)
	# Where twins would run on half of the GPU, and where green contexts would have half of it.
	export SIMGPU="16:${1##*-}"
	start_daemon --policy even
	start waiting "$apps/waiting" --frames 3 --json
	ended_well waiting "$pid"
	for kernel in all_wait wait_for_higher; do
		grep -q "'$kernel' can't be confined.*its blocks may wait for each other" "$scratch/waiting.err" ||
			fail "nobody says why $kernel runs on the whole GPU"
	done
	;;
*)
	say "unknown case: $1"
	exit 2
	;;
esac
all_is_free
stop_daemon
say "ok"
