#!/bin/sh
# readme-guest.sh TREE: run by readme.sh in a fresh system, in which the tree is in folder TREE: types the README's
# first commands, as they stand there; then once more from the line that ends in "# under MPS: COMMAND", with COMMAND
# in its place. Each time camera must have kept a deadline while train used the GPU. Then starts a program with the
# LD_PRELOAD that README prints, and imports the Python module. The machine has a simulated GPU, in /machine, and the
# two programs.
set -u
. "$1/tests/lib.sh"
logs='/tmp/*.log'

jobs_of() { # TASK: of its program that runs
	/machine/ask /usr/local/bin/sbeetctl jobs "$1"
}

has_jobs() { # TASK
	[ "$(jobs_of "$1")" -gt 0 ]
}

# As somebody does who looks at what comes of a command before typing the next one.
type_line() {
	echo "\$ $1"
	case $1 in
	sbeetd*"&"*)
		export LD_PRELOAD=$kernel
		eval "$1" 2>/tmp/sbeetd.log
		started="$started $!"
		unset LD_PRELOAD
		until_true "sbeetd answers" sbeetctl status
		;;
	*train*"&"*)
		eval "$1" >/tmp/train.log 2>&1
		started="$started $!"
		until_true "train has jobs" has_jobs train
		;;
	*"&") fail "what is that?" ;;
	sbeetctl*)
		before=$(jobs_of train)
		eval "$1" </dev/null || fail "exit code $?"
		beside=$(($(jobs_of train) - before))
		;;
	*) eval "$1" >/tmp/install.log 2>&1 </dev/null || fail "exit code $?" ;;
	esac
}

history() { # COLUMN: of camera's last run
	sbeetctl task history camera --columns="$1" --no-legend | tail -n 1 | tr -d ' '
}

is_over() {
	[ "$(sbeetctl task history camera --no-legend | wc -l)" -eq $round ]
}

judge() {
	until_true "camera's run is over" is_over
	sbeetctl task history camera --json=short | grep -q '"deadline_ns":[1-9]' || fail "camera has no deadline"
	jobs=$(history jobs)
	kept=$((jobs - $(history misses)))
	[ "$kept" -gt 0 ] || fail "none of $jobs deadlines was kept"
	[ "$beside" -gt 0 ] || fail "train did not run beside it"
	echo "$kept of $jobs deadlines kept, beside $beside jobs of train"
}

# SHARING: of the GPU; ends what runs, and begins again.
new_machine() {
	# shellcheck disable=SC2086 # words
	[ -z "$started" ] || { kill $started && wait $started; }
	started=
	round=$((round + 1))
	export SIMGPU="16$1" SIMGPU_DIR="/run/simgpu$1"
	mkdir -m 700 "$SIMGPU_DIR"
}

ldconfig
ldd /machine/simgpud /machine/libcuda.so.1 /machine/matmul >/tmp/ldd.log 2>&1
if grep "not found" /tmp/ldd.log; then
	echo "What was built on this system doesn't run there"
	exit 77
fi

# What stands for the kernel's part of the driver comes after libsbeet.so.
kernel=/machine/libsimgpu-ioctl.so
cd "$1" || exit
printf '#!/bin/sh\nLD_PRELOAD=$LD_PRELOAD:%s exec %s\n' $kernel \
	"/machine/matmul --size 16 --frames 60 --period 33ms" >detect
printf '#!/bin/sh\nLD_PRELOAD=$LD_PRELOAD:%s exec %s\n' $kernel \
	"/machine/lanes --lanes 1 --frames 100000000" >train
chmod +x detect train
round=0
started=
apt-get -q -o APT::Update::Error-Mode=any update >/tmp/update.log 2>&1 || { echo "no network: apt-get update fails" && exit 77; }

[ "$(wc -l </machine/commands)" -le 10 ] || fail "the README has more than ten first commands"
grep -q '# under MPS: ' /machine/commands || fail "the README does not say how to use MPS"

# A GPU that programs share by time slices, and are preempted on.
new_machine ""
while IFS= read -r line <&3; do
	type_line "$line"
done 3</machine/commands
judge
sbeetctl status --json=short | grep -q '"sharing":"exclusive"' || fail "it was not without MPS"

new_machine ":mps"
sed -n '/# under MPS: /,$p' /machine/commands | sed 's/.*# under MPS: //' >/tmp/commands
while IFS= read -r line <&3; do
	type_line "$line"
done 3</tmp/commands
judge
sbeetctl status --json=short | grep -q '"mps":{"state":"up"' || fail "MPS was not used"

[ -s /machine/preload ] || fail "README does not say how to preload by hand"
while IFS= read -r line <&3; do
	echo "\$ $line ./detect"
	env "$line" SBEET_TASK=preloaded ./detect </dev/null >/tmp/detect.log 2>&1 || fail "exit code $?"
	[ "$(sbeetctl task history preloaded --columns=jobs --no-legend | tail -n 1 | tr -d ' ')" -gt 0 ] ||
		fail "with $line it has no jobs"
done 3</machine/preload
(cd / && python3 -c 'import sbeet') || fail "import sbeet"
getent group sbeet >/dev/null && getent passwd sbeet >/dev/null || fail "there is no account"
