#!/bin/sh
# packages-guest.sh: on a clean machine of its own (machine.sh) with the packages in /packages, and in /old.deb one
# like those that were made by hand up to 0.1.0: taken over from that one, upgraded, removed, purged, installed anew
# by README's command, in /printed.
set -u
. /lib.sh
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8
fail() {
	echo "FAILED: $*"
	tail -n 30 /log
	journalctl -b --no-pager -n 30
	exit 1
}
apt() {
	apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io "$@" </dev/null >/log 2>&1
}
pid() {
	systemctl show -P MainPID sbeetd.service
}
all_there() {
	wrong=$(dpkg --verify $packages) && [ -z "$wrong" ] || fail "changed or missing: $wrong"
	[ "$(readlink "/proc/$(pid)/exe")" = /usr/bin/sbeetd ] || fail "another sbeetd runs"
	sbeetctl status | grep -q ' 80 ' || fail "status"
}
gone() {
	for unit in sbeetd.service sbeetd.socket sbeetd-control.socket; do
		! systemctl is-active --quiet $unit || fail "$unit is still active"
	done
	left=$(find /usr/bin /usr/lib /usr/share /usr/include /run/sbeet/*.sock -name '*sbeet*' 2>/dev/null)
	[ -z "$left" ] || fail "left behind: $left"
}
packages="sbeet sbeetd sbeetctl libsbeet-preload libsbeet-dev python3-sbeet"

# There is no GPU.
mkdir -p /run/systemd/system/sbeetd.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/bin/sbeetd --gpus 80\n' >/run/systemd/system/sbeetd.service.d/gpus.conf

echo "taken over from the package made by hand"
apt install /old.deb || fail "installing the old one"
systemctl enable --now --quiet sbeetd.socket || fail "enable"
sbeetctl task set cam --deadline 5ms --save || fail "task set --save"
[ -s /etc/sbeet/sbeetd.conf ] || fail "the old one has no sbeetd.conf"
before=$(pid)
# Without the metapackage of its name it has to go.
apt install /packages/sbeetd_*.deb /packages/sbeetctl_*.deb /packages/libsbeet-preload_*.deb || fail "taking over"
sbeetctl status >/dev/null || fail "status"
[ "$(pid)" != "$before" ] || fail "the old daemon still runs"
apt install /packages/*.deb || fail "adding the others"
all_there
dpkg --search /etc/sbeet/sbeetd.conf | grep -q '^sbeetd:' || fail "sbeetd.conf is no conffile"
sbeetctl config | grep -q cam || fail "what 'task set --save' wrote is lost"

echo "upgraded"
printf '[sbeetd]\nlinger = 250us\n' >/etc/sbeet/sbeetd.conf
before=$(pid)
sockets=$(systemctl show -P ActiveEnterTimestampMonotonic sbeetd.socket sbeetd-control.socket)
apt install --reinstall /packages/*.deb || fail "upgrading"
[ "$(pid)" != "$before" ] || fail "sbeetd was not restarted"
[ "$(systemctl show -P ActiveEnterTimestampMonotonic sbeetd.socket sbeetd-control.socket)" = "$sockets" ] ||
	fail "its sockets were restarted"
sbeetctl config | grep -q "linger *250us " || fail "the administrator's sbeetd.conf is lost"
systemctl reload sbeetd || fail "reload"

echo "removed"
apt remove $packages || fail "removing"
gone
[ -s /etc/sbeet/tasks.d/cam.conf ] && grep -q 250us /etc/sbeet/sbeetd.conf || fail "removing took the configuration"

echo "purged"
purged() {
	gone
	left=$(find /etc /var/lib /run -name '*sbeet*' -not -path '/run/systemd/*' -not -path '/var/lib/apt/*' -not -path '*/cgroup/*' \
		-not -path '/run/outside/*')
	[ -z "$left" ] || fail "purging left $left"
	getent passwd sbeet >/dev/null || fail "purging took the account"
	[ -z "$(systemctl list-units --failed --no-legend 'sbeet*')" ] || fail "units have failed"
}
apt purge sbeetd || fail "purging"
purged

echo "installed anew, by the command that README prints"
(cd / && sh /printed </dev/null >/log 2>&1) || fail "installing"
brought=$(dpkg-query -W -f '${Package} ${Status}\n' | grep 'ok installed' | grep -E 'slurm|munge|rocm')
[ -z "$brought" ] || fail "installing brought $brought"
getent group sbeet >/dev/null || fail "there is no group"
[ -z "$(systemctl show -P MainPID sbeetd | grep -v '^0$')" ] || fail "sbeetd runs before somebody asks"
[ "$(systemctl is-enabled sbeetd.socket sbeetd-control.socket sbeetd.service sbeet-mps.service sbeetd-metrics.socket | paste -sd ' ')" = \
	"enabled enabled disabled disabled disabled" ] || fail "what is enabled is not what the preset says"
[ "$(stat -c '%U:%G %a' /run/sbeet/shim.sock /run/sbeet/control.sock | uniq)" = "root:sbeet 660" ] || fail "the sockets"
[ -z "$(ls /etc/systemd/user/*/*sbeet* 2>/dev/null)" ] || fail "every user gets a daemon"
sbeetctl status >/dev/null || fail "status"
all_there
systemd-analyze verify --man=no sbeetd.service sbeetd.socket sbeetd-control.socket || fail "units"
for unit in $(dpkg --listfiles sbeetd | sed -n 's,.*/lib/systemd/system/\([^/]*\)$,\1,p'); do
	grep -q "$unit" /var/lib/dpkg/info/sbeetd.postinst && grep -q "$unit" /var/lib/dpkg/info/sbeetd.prerm ||
		fail "debian/rules does not know $unit"
done
python3 -c 'import sbeet' || fail "the Python module"
PYTHONPATH=$(ls /usr/share/sbeet/*.whl) python3 -S -c 'import sbeet' || fail "the wheel"
library=$(ls /usr/lib/*/libsbeet.so)
[ "$(sbeetctl run -- sh -c 'echo $LD_PRELOAD')" = "$library" ] || fail "what run preloads"

echo "preloaded, as the pages print it"
zcat /usr/share/man/man7/sbeet-recipes.7.gz >/page || fail "the page of recipes"
page=/page
scratch=/run
. /recipe.sh
for word in $(recipe sbeet.conf | sed -n 's/^Environment=\(LD_PRELOAD=.*\)/\1/p') LD_PRELOAD=libsbeet.so; do
	[ "$(env "$word" grep -o '/[^ ]*libsbeet.so' /proc/self/maps | sort -u | xargs realpath)" = "$library" ] ||
		fail "$word loads nothing"
done
systemd-sysusers --inline 'u detect -' || fail "no user"
mkdir /opt/detect /etc/systemd/system/detect.service.d
printf '#!/bin/sh\nexec sleep 1000\n' >/opt/detect/detect
chmod +x /opt/detect/detect
printf '[Service]\nUser=detect\nExecStart=/opt/detect/detect\n' >/etc/systemd/system/detect.service
recipe sbeet.conf >/etc/systemd/system/detect.service.d/sbeet.conf
systemctl daemon-reload
systemctl start detect || fail "the recipe's unit"
until_true "the recipe's unit has the library" eval 'grep -q "/libsbeet.so" "/proc/$(systemctl show -P MainPID detect)/maps"'
systemctl stop detect
rm -r /etc/systemd/system/detect.service*

echo "purged while it runs"
apt purge $packages || fail "purging"
purged
