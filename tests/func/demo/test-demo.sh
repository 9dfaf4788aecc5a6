#!/bin/sh
# test-demo.sh: a short demonstration on the simulated GPU succeeds, says what it measured and what it
# chose, and the commands at its end work as they are printed. How many deadlines it misses depends on
# the machine, and is not looked at.
set -u
. "$SBEET_SOURCE/tests/lib.sh"

scratch=$(mktemp -d)
logs=$scratch/*.out
trap 'rm -rf "$scratch"' EXIT
trap 'exit 143' TERM INT
export XDG_RUNTIME_DIR="$scratch"

says() { # FILE TEXT
	grep -q -e "$2" "$scratch/$1" || fail "$1 does not say '$2'"
}

cd "$scratch" || exit 1
DEMO_GPU=simulated DEMO_SECONDS=3 sh "$SBEET_SOURCE/tests/demo.sh" >demo.out 2>&1 || fail "exit code $?"
for p in camera planner lanes; do
	grep -q "^$p  *[1-9][0-9]*  *[1-9][0-9]*  *[1-9][0-9]*0$" demo.out || fail "no period for $p"
	period=$(sed -n "s/^$p  *[0-9]*  *[0-9]*  *\([0-9]*\)$/\1/p" demo.out)
	says demo.out "run --task $p .*--period ${period}ms --deadline ${period}ms "
	says demo.out "^$p .* verified "
done
says demo.out 'two processes side by side on GPU 0.* seen [1-9]'
says demo.out 'two threads of one process side by side on GPU 1.* seen [1-9]'
grep -q -e '^No deadline was missed by [1-9][0-9]* jobs' -e '^[1-9][0-9]* of [1-9][0-9]* jobs missed' demo.out ||
	fail "nothing is said of misses"
sed '1,/^To go on, copy these lines/d' demo.out | grep '^  ' >commands.out
[ "$(grep -c 'sim.sh' commands.out)" -eq 2 ] || fail "these are not the commands"
DEMO_GPU=none sh -e commands.out >again.out 2>&1 || fail "the commands fail, exit code $?"
says again.out 'hotspot: 20 frames.* results ok'
says again.out 'nvcc -cudart shared'
grep -q -e 'unmanaged' -e "can't" again.out && ! grep -q 'simulated' again.out && fail "it is not managed"
[ -z "$(ls -d "$scratch"/sbeet-sim* 2>/dev/null)" ] || fail "something is left behind"
echo ok
