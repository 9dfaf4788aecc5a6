#!/bin/sh
# recipes.sh PAGE PYTHON MODULES [RANGES]: the recipes of sbeet-recipes(7), as they stand there, on the simulated GPU;
# those for systemd are run by tests/systemd/recipes.sh. ROS 2 and PyTorch are replaced by what is in recipes/.
# MODULES: the folder of sbeet.py. RANGES: recipes/ranges.c; without it, PyTorch's are left out.
. "$(dirname "$0")/lib.sh"
here=$(cd "$(dirname "$0")" && pwd)
page=$1
python=$2
export PYTHONPATH="$here/recipes:$3" PYTHONDONTWRITEBYTECODE=1 RANGES_LIBRARY="${4:+$(realpath "$4")}" VECADD_PTX="$here/ptx/vecadd.ptx"
. "$here/recipe.sh"

recipes_are detect.launch.py detect-variables.launch.py detect.service sbeet.conf detect.py pytorch-range \
	detect-released.py pytorch-marks realtime realtime.conf interrupts

export SIMGPU=32:mps SBEET_LOG=warn
# The commands are found as they would be where sbeet is installed.
mkdir -p "$scratch/bin" "$scratch/packages/camera_detect"
ln -s "$ctl" "$scratch/bin/sbeetctl"
ln -s "$python" "$scratch/bin/python3"
PATH=$scratch/bin:$PATH
export SBEET_SHIM="$SBEET_BUILD/shim/libsbeet.so" PACKAGES="$scratch/packages"
cd "$scratch" || fail "no folder"
printf '#!/bin/sh\nexec %s/vecadd --frames 5 --json\n' "$apps" >detect
chmod +x detect
cp detect packages/camera_detect/

start_daemon --policy fcfs
"$ctl" monitor --json=short --kind start,session-start >"$scratch/events" 2>"$scratch/monitor.err" &
started="$started $!"
until_true "the monitor listens" grep -q '"start"' "$scratch/events"
sessions=0
jobs_before=0

# NAME COMMAND...: the recipe's program ran well, as the task that the recipes declare; $jobs: how many it had
runs() {
	name=$1
	shift
	"$@" >"$scratch/$name.out" 2>"$scratch/$name.err" || fail "$name: exit code $?"
	results_ok "$name"
	[ ! -s "$scratch/$name.err" ] || fail "$name: something is said: $(cat "$scratch/$name.err")"
	all_is_free
	sessions=$((sessions + 1))
	until_true "$name: it was known by its task and times" is_known
	now=$("$ask" "$ctl" done "") || fail "$name: no status"
	jobs=$((now - jobs_before))
	jobs_before=$now
	[ "$jobs" -ge 5 ] || fail "$name: $jobs jobs"
}

is_known() {
	[ "$(grep '"task":"detect","class":"realtime"' "$scratch/events" |
		grep -c '"period_ns":33000000,"deadline_ns":20000000')" -eq $sessions ]
}

recipe detect.launch.py >detect.launch.py
runs launch "$python" "$here/recipes/launch.py" detect.launch.py

# The dynamic linker finds it as it does where sbeet is installed. A sanitizer's library would have to come first.
recipe detect-variables.launch.py >detect-variables.launch.py
case $("$ctl" run --dry-run -- "$apps/vecadd" | sed -n 's/^LD_PRELOAD=\([^ ]*\) .*/\1/p') in
*:*) say "launch-variables: not run with a sanitizer" ;;
*)
	LD_LIBRARY_PATH=$SBEET_BUILD/shim:$LD_LIBRARY_PATH runs launch-variables \
		"$python" "$here/recipes/launch.py" detect-variables.launch.py
	;;
esac

recipe realtime >realtime
sed -i '2i chrt --pid $$ >realtime.seen; taskset --cpu-list --pid $$ >>realtime.seen' detect
if chrt --fifo 60 true 2>/dev/null && taskset --cpu-list 1 true 2>/dev/null; then
	runs realtime sh ./realtime
	grep -q "SCHED_FIFO" realtime.seen && grep -q "priority: 60" realtime.seen && grep -q "list: 1$" realtime.seen ||
		fail "the program does not run as it was told: $(cat realtime.seen)"
else
	say "realtime: not run, this user may not use SCHED_FIFO, or there is one CPU"
fi

# Where there is no interrupt of the driver it does nothing, and that well.
recipe interrupts >interrupts
if ! grep -q nvidia /proc/interrupts; then
	sh -eu ./interrupts >interrupts.out 2>&1 || fail "interrupts: exit code $?"
	[ ! -s interrupts.out ] || fail "interrupts: something is said"
fi

# Python is no program that a sanitizer was built into.
if [ -n "$RANGES_LIBRARY" ]; then
	for form in range marks; do
		file=detect.py
		[ $form = range ] || file=detect-released.py
		recipe $file >$file
		recipe pytorch-$form >pytorch-$form
		"$python" $file >alone-$form.out 2>&1 && results_ok alone-$form || fail "$file without sbeet: $(cat alone-$form.out)"
		runs pytorch-$form sh ./pytorch-$form
		[ "$jobs" -eq 5 ] || fail "pytorch-$form: five pictures are $jobs jobs"
	done
fi
stop_daemon
say "ok"
