#!/bin/sh
# What single operations are recorded for: a trace has the kernels and copies of programs by name, in
# the order and within the jobs in which they ran, and none where nobody asks; 'sbeetctl kernel' counts
# launches, and says why a kernel can't be confined.
. "$(dirname "$0")/lib.sh"

# Another GPU is another simulator.
use_gpu() { # SIMGPU
	export SIMGPU="$1" SIMGPU_DIR="$scratch/simgpu-$1"
	mkdir -p -m 700 "$SIMGPU_DIR"
}

begin() { # POLICY
	start_daemon --policy "$1"
	start stubborn "$apps/stubborn" --frames 1000000
	stubborn=$pid
	until_true "stubborn has jobs" status_is jobs stubborn -gt 3
}

end() {
	kill -TERM "$stubborn"
	wait "$stubborn"
	all_is_free
	stop_daemon
}

# ---- kernels ----

lists() { # PATTERN
	"$ctl" kernel stubborn --no-legend --columns=name,launches,mean_blocks,confinable,why_not >"$scratch/kernels.out"
	grep -q -e "$1" "$scratch/kernels.out"
}

# The program's kernel is said to be confinable, or not, whoever decides where it runs.
kernel_is() { # SIMGPU CONFINABLE
	for policy in even steer; do
		use_gpu "$1"
		begin $policy
		until_true "its kernel is listed as '$2' under $policy, $1" \
			lists "^stubborn *[1-9][0-9]* .* $2  *it ends the thread"
		[ "$(wc -l <"$scratch/kernels.out")" -eq 1 ] || fail "more than one kernel is listed"
		end
	done
}

kernel_is 32:mps yes
kernel_is 32:exclusive no # one program at a time
export SIMGPU_GREEN=off     # a driver without green contexts
kernel_is 32:mps no
unset SIMGPU_GREEN

# ---- a trace ----

use_gpu 32:mps

records_jobs() { # FILE
	"$ctl" trace record --no-ops -d 300ms "$1" 2>"$scratch/record.err" && grep -q '"event":"job-done"' "$1"
}

trace_tells_all() { # POLICY
	begin "$1"

	until_true "jobs are recorded" records_jobs "$scratch/none.trace"
	if grep -q '"event":"op"' "$scratch/none.trace"; then
		fail "operations were told to nobody who asked"
	fi

	until_true "operations are recorded" records_ops "$scratch/all.trace" 1
	grep -q ' kernels and copies' "$scratch/record.err" || fail "no operations were counted"
	grep '"event":"op"' "$scratch/all.trace" >"$scratch/ops"
	# A frame is a copy, a launch and a copy, each job's in this order and in time.
	sed 's/.*"time_ns":\([0-9]*\).*"session":\([0-9]*\),"job":\([0-9]*\).*"op":"\([a-z-]*\)".*/\3 \1 \4/' "$scratch/ops" |
		awk '
		$1 == job && $2 < time { print "job " job ": " $2 " comes after " time; bad = 1 }
		$1 == job && $3 == last { print "job " job ": " $3 " twice"; bad = 1 }
		{ job = $1; time = $2; last = $3 }
		END { exit bad }' >"$scratch/order.out" || fail "operations are not in order"
	grep '"op":"launch"' "$scratch/ops" >"$scratch/launches"
	if grep -v -q '"kernel":"stubborn"' "$scratch/launches"; then
		fail "a launch has not its kernel's name"
	fi
	if grep -v '"op":"launch"' "$scratch/ops" | grep -q '"kernel"'; then
		fail "a copy has a kernel's name"
	fi

	# Each job's launches are as many as its end says, where all of it was recorded.
	"$ctl" trace export "$scratch/all.trace" >"$scratch/chrome.json" || fail "trace export"
	grep -q '"name":"thread_name",.*"name":"stubborn"' "$scratch/chrome.json" || fail "no row for the kernel"
	grep -q '"name":"process_name",.*"kernels and copies of stubborn"' "$scratch/chrome.json" || fail "no rows of the task"
	[ "$(grep -c '"cat":"op","name":"stubborn"' "$scratch/chrome.json")" -eq "$(wc -l <"$scratch/launches")" ] ||
		fail "not every launch is in its row"
	"$ctl" trace export --html "$scratch/all.trace" >"$scratch/page.html" || fail "trace export --html"

	end
}

trace_tells_all even
trace_tells_all steer
