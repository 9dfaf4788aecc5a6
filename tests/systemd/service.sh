#!/bin/sh
# service.sh BUILD_DIR SOURCE_DIR [TIMES]: sbeetd as a service of a real systemd, from `meson install` on; run by
# machine.sh. It is restarted, and killed, so often.
build=$1
source=$2
times=${3:-4}
. "$(dirname "$0")/guest.sh"
jobs=8

property() { # NAME
	systemctl show -P "$1" sbeetd.service
}

in_journal() { # WORDS...: a message of this start of the machine
	journalctl --no-pager -q -b -u sbeetd -o cat | grep -q -- "$*"
}

# PAGE WORDS: runs the command with these words of a manual page.
example() {
	rm -rf "$scratch/list"
	mkdir "$scratch/list"
	awk -v folder="$scratch/list" -f "$source/tests/apps/examples/list.awk" "$source/daemon/$1" >"$scratch/examples"
	eval "$(sed '1s/^[$#] //' "$(grep -lF -- "$2" "$scratch/list"/*)")"
}

# As one who may not change this machine: what remains to be done.
remains() {
	setpriv --reuid 65534 --regid 65534 --clear-groups sh -s - /nowhere /nowhere/lib /nowhere/share \
		<"$source/systemd/after-install.sh" 2>&1
}

say "== installed as README says"
if ! PATH=$PATH:/sbin ldconfig -p | grep -q libsbeet.so; then
	remains | grep -qF "LD_PRELOAD=/nowhere/lib/libsbeet.so" || fail "it does not say how to preload: $(remains)"
fi
install_sbeet
! remains | grep LD_PRELOAD || fail "the dynamic linker does not know the library"
getent passwd sbeet >/dev/null && getent group sbeet >/dev/null || fail "there is no account"
[ -d /etc/sbeet/tasks.d ] && [ -s /etc/sbeet/sbeetd.conf ] || fail "there is no configuration"
for page in sbeetctl.1 sbeet-profile.5 sbeet-scenario.5 sbeet-trace.5 sbeetd.8 sbeetd.conf.5 sbeet-protocol.7 sbeet-recipes.7; do
	[ -s "/usr/local/share/man/man${page##*.}/$page" ] || fail "no manual page $page"
done
[ -s /usr/local/share/bash-completion/completions/sbeetctl ] && [ -s /usr/local/share/zsh/site-functions/_sbeetctl ] ||
	fail "no completion"
journalctl --dump-catalog 2>/dev/null | grep -q 'Defined-By: sbeet' || fail "the catalog is not known"
systemctl preset sbeetd.socket sbeetd-control.socket sbeetd.service sbeet-mps.service 2>/dev/null || fail "preset"
[ "$(systemctl is-enabled sbeetd.socket sbeetd-control.socket sbeetd.service sbeet-mps.service | paste -sd ' ')" = \
	"enabled enabled disabled disabled" ] || fail "the preset is another"
systemctl disable --quiet sbeetd.socket

say "== enabled; nothing runs until somebody asks"
start_gpus
useradd --create-home --groups sbeet alice
useradd --create-home mallory
# Its own watchdog would let this test take long. Under even there are granted jobs to be kept.
use_gpus WatchdogSec=10s ExecStart= "ExecStart=/usr/local/bin/sbeetd --policy even"
systemctl enable --now --quiet sbeetd.socket || fail "enable --now sbeetd.socket"
[ "$(stat -c '%U:%G %a' /run/sbeet/shim.sock /run/sbeet/control.sock | uniq)" = "root:sbeet 660" ] ||
	fail "the sockets are others': $(stat -c '%n %U:%G %a' /run/sbeet/*.sock)"
is ActiveState = inactive || fail "sbeetd runs already"
as mallory sbeetctl status 2>"$scratch/denied" && fail "who is not in the group may ask"
grep -q "usermod -aG sbeet" "$scratch/denied" || fail "nobody says what to do: $(cat "$scratch/denied")"
is ActiveState = inactive || fail "it was started by somebody who may not connect"
as alice sbeetctl run --task first --require -- "$apps/vecadd" --frames 3 --json >"$scratch/first.out" \
	2>"$scratch/first.err" || fail "a program of the group: exit code $?"
grep -q '"ok":true' "$scratch/first.out" || fail "its results are not right"
is ActiveState = active || fail "sbeetd was not started by its socket"
[ "$(ps -o user= -p "$(property MainPID)")" = sbeet ] || fail "it runs as somebody else"
until_true "the status line tells" eval 'property StatusText | grep -q "^1 GPUs, policy .even., 0 programs"'

say "== load"
programs="matmul hotspot histogram lanes"
for program in $programs; do
	load alice "$program" &
done
until_true "all work" everybody_works
until_true "the status line counts" eval 'property StatusText | grep -q "4 programs"'

say "== restarted by systemctl; connections are kept in its store of descriptors"
n=0
while [ $((n += 1)) -le "$times" ]; do
	# One that runs all the time keeps the number of its session only if its socket was kept.
	disturb "restart $n" systemctl restart sbeetd
done
kept=$(journalctl --no-pager -q -b -u sbeetd -o cat | sed -n 's/^\([0-9]*\) connections are kept.*/\1/p' |
	awk '{ n += $1 } END { print n + 0 }')
[ "$kept" -ge "$times" ] || fail "only $kept connections were handed over in $times restarts"
! in_journal "is not used" || fail "the next sbeetd could not use what it was left"
[ "$(property NFileDescriptorStore)" -eq 0 ] || fail "the store still has $(property NFileDescriptorStore)"

say "== killed, and started again"
n=0
while [ $((n += 1)) -le "$times" ]; do
	disturb "kill $n" systemctl kill --signal KILL sbeetd
done
is NRestarts = "$times" || fail "restarted $(property NRestarts) times"

say "== stopped in its tracks: the watchdog"
disturb "watchdog" systemctl kill --signal STOP --kill-whom main sbeetd
until_true "it was the watchdog" in_journal "Watchdog timeout"

say "== reloaded"
cat >/etc/sbeet/sbeetd.conf <<-END
	[sbeetd]
	linger = 250us
	no-such-key = 1
END
systemctl reload sbeetd || fail "reload: exit code $?"
sbeetctl config | grep -q "linger *250us */etc/sbeet/sbeetd.conf:2 " || fail "not in force: $(sbeetctl config)"
until_true "the key is warned of" in_journal "sbeetd.conf:3: unknown key 'no-such-key'"
echo "linger = soon" >>/etc/sbeet/sbeetd.conf
systemctl reload sbeetd 2>/dev/null && fail "a reload with a value that is wrong succeeds"
until_true "it is told why" in_journal "sbeetd.conf:4: linger 'soon'"
sbeetctl config | grep -q "linger *250us " || fail "what was in force is lost"
is ActiveState = active || fail "it ended"
until_true "programs go on" everybody_works

say "== the journal"
has_fields() {
	journalctl --no-pager -q -b -u sbeetd -o json | grep '"SBEET_TASK":"matmul"' | grep '"SBEET_UID":"0"' |
		grep -q '"MESSAGE_ID":"b27e94c05f1d4a6c8e3072d1fa9b5c46"'
}
sbeetctl task set matmul --priority 3 --save || fail "task set --save"
[ "$(cat /etc/sbeet/tasks.d/matmul.conf)" = "# By 'sbeetctl task set matmul --save'.
[task]
priority = 3" ] || fail "it is not saved: $(ls -l /etc/sbeet/tasks.d)"
until_true "the journal has fields" has_fields
journalctl --no-pager -q -b -u sbeetd --catalog | grep -q "sbeetctl changed what runs" || fail "no catalog entry"
as alice sbeetctl run --task late --deadline 1us -- "$apps/vecadd" --frames 2 >"$scratch/late.out" 2>&1 ||
	fail "a program that is late: exit code $?"
tells_of_misses() {
	example sbeetd.8 MESSAGE_ID | grep "'late').* missed its deadline"
}
until_true "the journal tells of missed deadlines, as sbeetd(8) says" tells_of_misses

say "== metrics over TCP, as sbeetd.conf(5) says"
printf '[sbeetd]\nlinger = 250us\n' >/etc/sbeet/sbeetd.conf
example sbeetd.conf.5 "systemctl enable" || fail "enable sbeetd-metrics.socket"
disturb "metrics" example sbeetd.conf.5 "systemctl restart"
has_metrics() {
	example sbeetd.conf.5 curl | grep '^sbeet_jobs_total{.*task="matmul".*} [1-9]'
}
until_true "jobs are counted" has_metrics

: >"$scratch/enough"
wait
no_harm "to the end"
runs=$(cat "$scratch"/*.runs | awk '{ n += $1 } END { print n }')
until_true "all is free" status_is sessions "" -eq 0

say "== known by its unit"
cat >/etc/sbeet/tasks.d/known.conf <<-END
	[match]
	unit = front-camera.service
	[task]
	deadline = 70ms
END
cat >/etc/sbeet/tasks.d/slice.conf <<-END
	[match]
	cgroup = /robots.slice
	[task]
	deadline = 80ms
END
cat >/etc/sbeet/tasks.d/path.conf <<-END
	[match]
	executable = $apps/hot*
	[task]
	deadline = 90ms
END
sed -i 4d /etc/sbeet/sbeetd.conf
systemctl reload sbeetd || fail "reload: exit code $?"
unit() { # UNIT PROGRAM OPTION...: runs a program in a unit
	unit=$1
	program=$2
	shift 2
	systemd-run --quiet --unit "$unit" --uid alice --gid alice -p SupplementaryGroups=sbeet "$@" -E SIMGPU=16:mps \
		-E SIMGPU_DIR=$gpus -E LD_LIBRARY_PATH=$simulator /usr/local/bin/sbeetctl run -- \
		"$apps/$program" --frames 1000 --period 60s || fail "systemd-run"
}
unit front-camera vecadd
unit arm vecadd --slice robots.slice
unit legs hotspot
until_true "a program is known by its unit" status_is jobs known -ge 1
until_true "another by a cgroup above it" status_is jobs slice -ge 1
until_true "a third by its path" status_is jobs path -ge 1
systemctl stop front-camera arm legs
until_true "all are gone" status_is sessions "" -eq 0

say "== stopped for good: programs go on without"
as alice sbeetctl run --task last -- "$apps/lanes" --lanes 1 --frames 40 --json >"$scratch/last.out" \
	2>"$scratch/last.err" &
last=$!
until_true "it works" status_is jobs last -ge 1
systemctl stop sbeetd.socket sbeetd-control.socket sbeetd.service
wait $last || fail "it ends with $?"
grep -q '"ok":true' "$scratch/last.out" || fail "its results are not right"
grep -q unmanaged "$scratch/last.err" || fail "nobody says so"
systemctl start sbeetd.socket

say "== a mistake in the configuration is no reason to start again and again"
echo "linger = soon" >>/etc/sbeet/sbeetd.conf
systemctl restart sbeetd && fail "it started with a configuration that is wrong"
is ActiveState = failed && is ExecMainStatus = 2 || fail "exit code $(property ExecMainStatus)"
systemctl reset-failed sbeetd.service
rm /etc/sbeet/sbeetd.conf
systemctl start sbeetd.socket
sbeetctl status >/dev/null || fail "it does not come back when the mistake is gone"

say "== disabled"
systemctl disable --now --quiet sbeetd.socket sbeetd-control.socket
systemctl stop sbeetd
[ ! -e /run/sbeet/shim.sock ] || fail "the sockets are still there"
say "$runs programs, $((2 * times + 1)) times another sbeetd, $kept connections handed over: ok"
