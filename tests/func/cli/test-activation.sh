#!/bin/sh
# test-activation.sh SBEETD SBEETCTL SYSTEMD_DIR: sbeetd started by systemd's own tool when somebody connects, with
# the sockets and names (FileDescriptorName=) that the socket units have.
set -eu
. "$(dirname "$0")/../../lib.sh"

sbeetd=$1
sbeetctl=$2
command -v systemd-socket-activate >/dev/null || { echo "no systemd-socket-activate here"; exit 77; }
case $("$sbeetd" --version) in *-systemd*) echo "sbeetd is built without systemd"; exit 77 ;; esac

dir=$(mktemp -d)
logs=$dir/log
pid=
trap '[ -z "$pid" ] || kill "$pid" 2>/dev/null || true; rm -rf "$dir"' EXIT
unset NOTIFY_SOCKET WATCHDOG_USEC LISTEN_FDS LISTEN_PID
export SBEET_RUNTIME_DIR="$dir" SBEET_TIMEOUT=60s

# What the units call them.
names=$(sed -n 's/^FileDescriptorName=//p' "$3/system/sbeetd.socket" "$3/system/sbeetd-control.socket" |
	paste -sd :)
[ "$names" = shim:control ] || { echo "units name their sockets '$names'"; exit 1; }

# The order is not the daemon's business, only the names are: control first here.
systemd-socket-activate --seqpacket --fdname=control:shim -l "$dir/control.sock" -l "$dir/shim.sock" \
	-E SBEET_RUNTIME_DIR="$dir" "$sbeetd" --policy even --gpus 46,6 >"$dir/log" 2>&1 &
pid=$!
until_true "the control socket is there" test -S "$dir/control.sock"
until_true "the shim's socket is there" test -S "$dir/shim.sock"

# The first who connects starts it; the tool becomes the daemon, so its number stays.
"$sbeetctl" status --json >"$dir/status" || fail "no status"
grep -q "\"pid\": *$pid[,}]" "$dir/status" || fail "another daemon answered: $(cat "$dir/status")"
grep -q '"n_sms": *46' "$dir/status" || fail "another inventory: $(cat "$dir/status")"

kill -TERM "$pid"
wait "$pid" || fail "sbeetd ended with $?"
pid=
# They are systemd's: who made them removes them.
[ -S "$dir/control.sock" ] && [ -S "$dir/shim.sock" ] || fail "sbeetd removed sockets that it was given"
