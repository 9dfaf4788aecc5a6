#!/bin/sh
# recipes.sh BUILD_DIR SOURCE_DIR: the units of sbeet-recipes(7), as they stand there, under a real systemd; run by
# machine.sh.
build=$1
. "$(dirname "$0")/guest.sh"
page=$2/client/sbeet-recipes.7
. "$2/tests/apps/recipe.sh"
units=/etc/systemd/system

property() { # NAME
	systemctl show -P "$1" sbeetd.service
}

# What systemd has to say against a unit of ours; of others' it says much.
verify() { # UNIT
	systemd-analyze verify "$units/$1" 2>&1 | grep -F "$units/$1" && fail "systemd-analyze verify $1"
}

# HOW: the service's program has jobs, as the task and with the times that the recipes declare.
works() {
	until_true "$1: it has jobs" status_is jobs detect -ge 3
	sbeetctl status --json=short | tr '{' '\n' | grep '"task": *"detect"' | grep '"class": *"realtime"' |
		grep '"period_ns": *33000000' | grep -q '"deadline_ns": *20000000' ||
		fail "$1: it is another task: $(sbeetctl session list)"
	pid=$(systemctl show -P MainPID detect.service)
	[ "$(ps -o user= -p "$pid")" = detect ] || fail "$1: it runs as somebody else"
	[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$apps/vecadd")" ] || fail "$1: something stands before the program"
}

install_sbeet
start_gpus
use_gpus "ExecStart=" "ExecStart=/usr/local/bin/sbeetd --policy fcfs"
useradd --system detect
mkdir -p /opt/detect
printf '#!/bin/sh\nexec %s/vecadd --frames 100000 --period 10ms\n' "$apps" >/opt/detect/detect
chmod +x /opt/detect/detect
systemctl start sbeetd.socket

say "== a unit of one's own"
recipe detect.service >$units/detect.service
mkdir $units/detect.service.d
printf '[Service]\nEnvironment=SIMGPU=16:mps SIMGPU_DIR=%s LD_LIBRARY_PATH=%s\n' "$gpus" "$simulator" \
	>$units/detect.service.d/gpu.conf
systemctl daemon-reload
verify detect.service
systemctl start detect || fail "it does not start"
works "its own unit"
systemctl stop detect || fail "it does not stop"
until_true "it is gone" status_is sessions "" -eq 0

say "== a drop-in"
cat >$units/detect.service <<-END
	[Service]
	User=detect
	ExecStart=/opt/detect/detect
END
recipe sbeet.conf >$units/detect.service.d/sbeet.conf
systemctl daemon-reload
verify detect.service
systemctl start detect || fail "it does not start"
works "the drop-in"

say "== sbeetd under SCHED_FIFO; programs keep their connections"
recipe realtime.conf >$units/sbeetd.service.d/realtime.conf
systemctl daemon-reload
verify sbeetd.service
session=$(sbeetctl session list --no-legend | awk '$2 == "detect" { print $1 }')
if chrt --fifo 70 true 2>/dev/null; then
	systemctl restart sbeetd || fail "it does not start"
	chrt --pid "$(property MainPID)" | grep -q "SCHED_FIFO" || fail "it has another policy"
	chrt --pid "$(property MainPID)" | grep -q "priority: 70" || fail "it has another priority"
	taskset --cpu-list --pid "$(property MainPID)" | grep -q "list: 0$" || fail "it runs on other CPUs"
	[ "$(property MemorySwapMax)" = 0 ] || fail "it may be swapped out"
	until_true "the program goes on" status_is jobs detect -ge 3
	[ "$(sbeetctl session list --no-legend | awk '$2 == "detect" { print $1 }')" = "$session" ] ||
		fail "the program was disconnected"
else
	say "not run: this machine gives nobody SCHED_FIFO"
fi
systemctl stop detect

say "== --require: without sbeetd it fails, and does not run unmanaged"
recipe detect.service >$units/detect.service
rm $units/detect.service.d/sbeet.conf
systemctl daemon-reload
systemctl stop sbeetd.socket sbeetd-control.socket sbeetd.service
systemctl mask --quiet --runtime sbeetd.socket
systemctl start detect
until_true "it is started again" eval '[ "$(systemctl show -P NRestarts detect)" -ge 1 ]'
systemctl stop detect
say "ok"
