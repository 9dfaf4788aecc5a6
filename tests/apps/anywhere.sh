#!/bin/sh
# Programs that know nothing of sbeet, on two simulated GPUs. With --any-gpu each gets the GPU with the most
# SMs for each of its programs, if that GPU takes jobs; without it, or where the user has said which GPUs
# a program sees, it runs where CUDA puts it.
#
# usage: anywhere.sh POLICY
. "$(dirname "$0")/lib.sh"

export SIMGPU=32:mps,32:mps
unset CUDA_VISIBLE_DEVICES

was_on() { # NAME GPU
	[ "$("$ctl" task history "$1" --columns gpus --no-legend)" = "$2" ]
}

# NAME GPU [OPTION]: its jobs run there, and its results are right.
runs_on() {
	# shellcheck disable=SC2086 # an option or none
	"$ctl" run --task "$1" --log info ${3-} -- "$apps/vecadd" --frames 3 --json \
		>"$scratch/$1.out" 2>"$scratch/$1.err" || fail "$1: exit code $?"
	results_ok "$1"
	until_true "the history says that $1 was on GPU $2" was_on "$1" "$2"
}

has_chosen() { # NAME GPU
	grep -q "sbeetd has chosen GPU-.*0$2\$" "$scratch/$1.err"
}

start_daemon --policy "$1"
mkfifo "$scratch/stays.in"
exec 9<>"$scratch/stays.in"
SBEET_ANY_GPU=1 start stays sh -c 'exec "$1" 0 <"$2" 9<&-' sh "$apps/following" "$scratch/stays.in"
stays=$pid
until_true "sbeetd knows it" status_is sessions stays -eq 1
"$ctl" status >"$scratch/status.out"
grep -q "1 program was placed on its GPU when it started" "$scratch/status.out" || fail "status does not tell"

runs_on other 1 --any-gpu
has_chosen other 1 || fail "sbeetd has not chosen GPU 1"
runs_on silent 0
! grep -q "has chosen" "$scratch/silent.err" || fail "a GPU is chosen for a program that did not ask"
export CUDA_VISIBLE_DEVICES=0
runs_on seen 0 --any-gpu
unset CUDA_VISIBLE_DEVICES
grep -q "CUDA_VISIBLE_DEVICES is set, so sbeetd chooses no GPU" "$scratch/seen.err" || fail "nobody says so"
"$ctl" gpu drain 1 || fail "GPU 1 is not drained"
runs_on late 0 --any-gpu
has_chosen late 0 || fail "sbeetd has not chosen GPU 0"

echo begin >&9
until_true "its job is on the GPU that it sees" grep -qx "job on 0" "$scratch/stays.out"
has_chosen stays 0 || fail "the first program is not on GPU 0"
echo end >&9
until_true "its job ends" grep -qx ended "$scratch/stays.out"
exec 9>&-
ended_well stays "$stays"
all_is_free
stop_daemon
say "ok"
