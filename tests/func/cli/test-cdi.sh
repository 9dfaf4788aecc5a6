#!/bin/sh
# test-cdi.sh SBEETCTL LIBSBEET IS-JSON SBEETD MPS-FOLDER: what sbeetctl cdi prints. That a program starts with it is seen
# in old-system.
set -eu
. "$(dirname "$0")/../../lib.sh"

sbeetctl=$1
shim=$2
is_json=$3
dir=$(mktemp -d)
logs="$dir/out $dir/err $dir/log"
daemon=
trap '[ -z "$daemon" ] || kill "$daemon"; wait; rm -rf "$dir"' EXIT
mkdir -m 700 "$dir/run" "$dir/a folder"
export SBEET_RUNTIME_DIR="$dir/a folder"

cdi() {
	"$sbeetctl" cdi --shim "$shim" "$@" >"$dir/out" 2>"$dir/err"
}

has() { # TEXT...
	for text in "$@"; do
		grep -qF -- "$text" "$dir/out" || fail "$text is missing"
	done
}

cdi || fail "exit code $?"
"$is_json" <"$dir/out" || fail "it is not JSON"
has '"kind": "sbeet/program"' "\"hostPath\": \"$shim\"" "\"hostPath\": \"$dir/a folder/shim.sock\"" \
	'"containerPath": "/run/sbeet/shim.sock"' '"SBEET_RUNTIME_DIR=/run/sbeet"' '"LD_PRELOAD=/usr/local/lib/sbeet/libsbeet.so"'
grep -q 'warning: .*MPS.*cannot reach sbeetd' "$dir/err" || fail "nobody says that sbeetd was not asked"
! cdi --docker || fail "a path with a space in an option of docker"
grep -q "can't name '$dir/a folder/shim.sock': use the file" "$dir/err" || fail "nobody says why"

SBEET_RUNTIME_DIR=$dir/run
cdi --quiet --docker || fail "--docker: exit code $?"
[ ! -s "$dir/err" ] || fail "--quiet warns"
has "--volume $shim:/usr/local/lib/sbeet/libsbeet.so:ro --volume $dir/run/shim.sock:/run/sbeet/shim.sock:ro --env"
! grep -q 'control' "$dir/out" || fail "a container is given the socket for sbeetctl"

mps_is_up() {
	"$sbeetctl" status --json | grep -q '"state":"up","pipe_directory":"'
}

# With MPS, whose folder has the same name inside.
PATH=$5:$PATH SIMGPU_DIR=$dir CUDA_MPS_PIPE_DIRECTORY=$dir/pipe "$4" --gpus 8 --mps start 2>"$dir/log" &
daemon=$!
until_true "MPS is up" mps_is_up
pipe=$("$sbeetctl" status --json | sed 's/.*"pipe_directory":"\([^"]*\)".*/\1/')
cdi || fail "with MPS: exit code $?"
[ ! -s "$dir/err" ] || fail "with sbeetd it warns"
has "\"hostPath\": \"$pipe\"" "\"containerPath\": \"$pipe\""
cdi --docker || fail "with MPS: --docker: exit code $?"
has "--ipc host --volume $pipe:$pipe --env"
