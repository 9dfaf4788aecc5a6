#!/bin/sh
# test-sim.sh: tests/sim.sh runs programs on the simulated GPU: those of its help, compiled as the help
# says, and several at once; says why others can't run; exits as they exit; leaves nothing behind.
set -u
. "$SBEET_SOURCE/tests/lib.sh"

scratch=$(mktemp -d)
logs=$scratch/*.out
left= # processes that may still run
clean_up() {
	for pid in $left; do
		kill -KILL "-$pid" 2>/dev/null
	done
	rm -rf "$scratch"
}
trap clean_up EXIT
trap 'exit 143' TERM INT
export XDG_RUNTIME_DIR="$scratch"
apps=$SBEET_BUILD/tests/apps/driver
ctl=$SBEET_BUILD/client/sbeetctl

sim() {
	sh "$SBEET_SOURCE/tests/sim.sh" "$@"
}

# CODE TEXT ARGUMENT...: exits with the code and says the text.
gives() {
	code=$1
	text=$2
	shift 2
	sim "$@" >one.out 2>&1
	got=$?
	[ "$got" -eq "$code" ] || fail "sim.sh $*: exit code $got, expected $code"
	grep -q -e "$text" one.out || fail "sim.sh $*: does not say '$text'"
}

nothing_is_left() {
	[ -z "$(ls -d "$scratch"/sbeet-sim* 2>/dev/null)" ] || fail "$1: its folder is left behind"
}

cd "$scratch" || exit 1
gives 0 'results ok' "$apps/vecadd" --frames 2
gives 0 'Simulated T400' --gpu=t400 "$ctl" gpu list
gives 0 'mine .*realtime' --task=mine --period=50ms -- sh -c '"$0" --frames 100000 >/dev/null &
	until "$1" session list 2>/dev/null | grep mine; do sleep 0.05; done; kill $!' "$apps/vecadd" "$ctl"
gives 7 seven sh -c 'echo seven; exit 7'
gives 127 'cannot find the program' "$scratch/nothing"
gives 2 'is longer than' --period=33ms --deadline=50ms true
gives 2 "'rtx1' is no GPU" --gpu=rtx1 true
gives 2 'usage:'
gives 0 'nvcc -cudart shared' --help
nothing_is_left "one after the other"

# Where sbeetd does not start, only its log stays.
mkdir conf
printf '[sbeetd]\npolicy = nosuch\n' >conf/sbeetd.conf
SBEET_CONFIG_DIR=$scratch/conf
export SBEET_CONFIG_DIR
gives 1 "policy 'nosuch'" true
unset SBEET_CONFIG_DIR
[ -s "$(sed -n 's/.*sbeetd ended, see //p' one.out)" ] || fail "the log that it names is not there"
[ -z "$(ls "$scratch"/sbeet-sim*/simgpu/simgpud.sock 2>/dev/null)" ] || fail "a simulated GPU runs on without sbeetd"
gives 0 fine echo fine
nothing_is_left "an sbeetd that does not start"

# Two at once have the same sbeetd; the first to end leaves it to the other.
setsid sh "$SBEET_SOURCE/tests/sim.sh" sh -c '"$0" status --json >a.json; while [ ! -e go ]; do sleep 0.05; done
	"$0" status --json >b.json' "$ctl" >first.out 2>&1 &
first=$!
left=$first
until_true "it has a status" test -s a.json
sim sh -c '"$0" status --json >c.json' "$ctl" >second.out 2>&1 || fail "the second one fails"
touch go
wait $first || fail "the first one fails"
pid_of() {
	sed -n 's/.*"pid": *\([0-9]*\).*/\1/p' "$1" | head -n 1
}
[ -n "$(pid_of a.json)" ] && [ "$(pid_of a.json)" = "$(pid_of b.json)" ] && [ "$(pid_of a.json)" = "$(pid_of c.json)" ] ||
	fail "they do not share one sbeetd: $(pid_of a.json), $(pid_of b.json), $(pid_of c.json)"
nothing_is_left "two at once"

# Stopped by a signal to all of its processes, as from a terminal.
rm -f a.json
setsid sh "$SBEET_SOURCE/tests/sim.sh" sh -c '"$0" status --json >a.json; sleep 1000' "$ctl" >third.out 2>&1 &
third=$!
left=$third
until_true "it has a status" test -s a.json
kill -TERM "-$third"
wait $third
code=$?
[ "$code" -eq 143 ] || fail "exit code $code after SIGTERM"
nothing_is_left "a signal"
left=

if [ -n "$NVCC" ]; then
	cp "$SBEET_SOURCE/tests/func/demo/own.cu" own.cu
	PATH=$(dirname "$NVCC"):$PATH
	sim --help >help.out
	sed -n 's/^  \(nvcc .*\)#.*/\1/p' help.out >compile.sh
	sh -e compile.sh >nvcc.out 2>&1 || fail "the help's command does not compile a program"
	gives 0 'no error, 0 wrong' ./own
	gives 3 'no error, 1 wrong' ./own 5 # as it exits
	nvcc own.cu -o own-static >nvcc.out 2>&1 || fail "it can't be linked with the static runtime"
	gives 2 'nvcc -cudart shared' ./own-static
	strip own-static
	gives 2 'nvcc -cudart shared' ./own-static
	nvcc -cudart shared -gencode arch=compute_75,code=sm_75 own.cu -o own-cubin >nvcc.out 2>&1
	gives 3 'compile with .nvcc -arch=sm_90' ./own-cubin
	cp "$SBEET_SOURCE/tests/func/demo/own-driver.c" own.c
	sed -n 's/^  \(cc .*\)#.*/\1/p' help.out | sed 's/ -o own / -o own-driver /' >compile.sh
	sh -e compile.sh >cc.out 2>&1 || fail "the help's command does not compile a driver program"
	gives 0 '^42$' ./own-driver
	nothing_is_left "programs of one's own"
fi
echo ok
