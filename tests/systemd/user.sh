#!/bin/sh
# user.sh BUILD_DIR: sbeetd as a service of one user's own systemd; run by machine.sh.
build=$1
. "$(dirname "$0")/guest.sh"
programs="matmul hotspot"
jobs=4

# Of alice's service manager.
manager() {
	as alice systemctl --user "$@"
}

property() { # NAME
	manager show -P "$1" sbeetd.service
}

pam=$(find /lib /usr/lib -name pam_systemd.so 2>/dev/null)
[ -n "$pam" ] || { say "users have no service manager here: no pam_systemd" && exit 77; }
say "== a user and his service manager"
install_sbeet
start_gpus
useradd --create-home alice
loginctl enable-linger alice || fail "no lingering session"
runtime=/run/user/$(id -u alice)
until_true "alice has a service manager" test -S "$runtime/systemd/private"
environment="XDG_RUNTIME_DIR=$runtime"
as alice sh -c 'mkdir -p ~/.config/systemd/user/sbeetd.service.d'
cat >/home/alice/.config/systemd/user/sbeetd.service.d/test.conf <<-END
	[Service]
	Environment=SIMGPU=16:mps SIMGPU_DIR=$gpus LD_LIBRARY_PATH=$simulator
END
chown -R alice: /home/alice/.config

say "== enabled; started by the first who asks"
manager daemon-reload
manager enable --now --quiet sbeetd.socket || fail "enable --now sbeetd.socket"
[ "$(stat -c '%U %a' "$runtime/sbeet/shim.sock" "$runtime/sbeet/control.sock" | uniq)" = "alice 600" ] ||
	fail "the sockets are others'"
[ "$(property ActiveState)" = inactive ] || fail "sbeetd runs already"
for program in $programs; do
	load alice "$program" &
done
until_true "all work" everybody_works
[ "$(ps -o user= -p "$(property MainPID)")" = alice ] || fail "it runs as somebody else"
until_true "the status line tells" eval 'property StatusText | grep -q "2 programs"'

say "== restarted, killed"
for n in 1 2 3; do
	disturb "restart $n" manager restart sbeetd
done
disturb "kill" manager kill --signal KILL sbeetd
[ "$(property NRestarts)" -eq 1 ] || fail "restarted $(property NRestarts) times"
kept=$(journalctl --no-pager -q -b _SYSTEMD_USER_UNIT=sbeetd.service -o cat |
	sed -n 's/^\([0-9]*\) connections are kept.*/\1/p' | awk '{ n += $1 } END { print n + 0 }')
[ "$kept" -ge 3 ] || fail "only $kept connections were handed over in three restarts"

say "== his configuration is his to change"
as alice sbeetctl task set matmul --priority 4 --save || fail "task set --save"
grep -q '^priority = 4' /home/alice/.config/sbeet/tasks.d/matmul.conf || fail "it is not saved"
printf '[sbeetd]\nlinger = 300us\n' >/home/alice/.config/sbeet/sbeetd.conf
manager reload sbeetd || fail "reload"
until_true "it is in force" eval 'as alice sbeetctl config | grep -q "linger *300us"'
useradd --create-home mallory
as mallory env SBEET_RUNTIME_DIR="$runtime/sbeet" sbeetctl status 2>/dev/null && fail "others may ask"

: >"$scratch/enough"
wait
no_harm "to the end"
say "$(cat "$scratch"/*.runs | awk '{ n += $1 } END { print n }') programs, $kept connections handed over: ok"
