#!/bin/sh
# debian.sh SOURCE_DIR: the package on a Debian 12 of nothing but its base: installed by apt-get with what it depends
# on, enabled and used under the systemd of that machine, removed and purged while it runs.
#
# Needs root, the network, and in $SBEET_DEBIAN_ROOT such a root, which stays as it is:
#	debootstrap --variant=minbase bookworm ROOT
set -u

skip() {
	echo "$*"
	exit 77
}

fail() {
	echo "FAILED: $*"
	[ ! -s "$dir/log" ] || tail -n 40 "$dir/log"
	exit 1
}

[ -n "${SBEET_DEBIAN_ROOT:-}" ] || skip "SBEET_DEBIAN_ROOT names no root made by debootstrap"
[ "$(id -u)" = 0 ] || skip "that needs root"
grep -q '^VERSION_CODENAME=bookworm' "$SBEET_DEBIAN_ROOT/etc/os-release" || skip "$SBEET_DEBIAN_ROOT is no Debian 12"
for tool in dpkg-deb dpkg-shlibdeps meson unshare; do
	command -v $tool >/dev/null || skip "no $tool here"
done

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
root=$dir/root
cp -a "$SBEET_DEBIAN_ROOT" "$root"
cp -L /etc/resolv.conf "$root/etc/resolv.conf"

inside() { # COMMAND: in the root, with the network of here
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" &&
		mount --bind /dev "$1/dev" && exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
		DEBIAN_FRONTEND=noninteractive sh -c "$2"' - "$root" "$1" >"$dir/log" 2>&1
}

echo "== the package"
(meson setup "$dir/build" "$1" --prefix /usr -Dtests=false -Dbuildtype=release && ninja -C "$dir/build" -j 2) >"$dir/log" 2>&1 ||
	fail "it does not build"
sh "$1/systemd/make-deb.sh" "$dir/build" "$root/sbeet.deb" || fail "no package"
if command -v lintian >/dev/null; then
	# Whose address it has is for those who make it: DEBEMAIL.
	said=$(lintian --allow-root --fail-on none --suppress-tags \
		bogus-mail-host,bogus-mail-host-in-debian-changelog,root-in-contact,maintainer-script-calls-systemctl \
		"$root/sbeet.deb" 2>&1)
	[ -z "$said" ] || fail "lintian: $said"
fi

echo "== installed"
inside "apt-get update" || skip "no network: apt-get update"
inside "apt-get install -y --no-install-recommends /sbeet.deb dbus" || fail "it can't be installed"
inside 'sbeetd --version && sbeetctl --version && getent passwd sbeet && [ -s /etc/sbeet/sbeetd.conf ]' ||
	fail "it is not all there"
inside 'systemd-analyze verify --man=no sbeetd.service sbeetd.socket sbeetd-control.socket' ||
	fail "systemd does not take its units"

echo "== used, removed and purged"
cat >"$root/use.sh" <<'END'
set -u
fail() {
	echo "FAILED: $*"
	journalctl -b --no-pager -n 30
	exit 1
}
gone() {
	! systemctl is-active --quiet sbeetd.service && ! systemctl is-active --quiet sbeetd.socket &&
		[ ! -e /usr/bin/sbeetd ] && [ ! -e /usr/lib/systemd/system/sbeetd.service ] &&
		[ ! -e /run/sbeet/shim.sock ]
}
printf '[sbeetd]\ngpus = 80\nlearn = yes\n' >/etc/sbeet/sbeetd.conf
systemctl enable --now --quiet sbeetd.socket || fail "enable"
sbeetctl status | grep -q ' 80 ' || fail "status"
systemctl is-active --quiet sbeetd.service || fail "not active"
before=$(systemctl show -P MainPID sbeetd)
dpkg --install /sbeet.deb || fail "installing it over itself"
[ "$(systemctl show -P MainPID sbeetd)" != "$before" ] && sbeetctl status >/dev/null || fail "an upgrade does not restart it"
systemctl reload sbeetd || fail "reload"
sbeetctl task set cam --deadline 5ms --save || fail "task set --save"
[ -d /var/lib/sbeet ] || fail "no state"
dpkg --remove sbeet || fail "remove"
gone || fail "something is left"
[ -s /etc/sbeet/tasks.d/cam.conf ] || fail "removing took the configuration"
dpkg --install /sbeet.deb && systemctl enable --now --quiet sbeetd.socket && sbeetctl config | grep -q cam ||
	fail "installed again"
dpkg --purge sbeet || fail "purge"
gone && [ ! -e /etc/sbeet ] && [ ! -e /var/lib/sbeet ] || fail "purging left something"
[ -z "$(systemctl list-units --failed --no-legend 'sbeet*')" ] || fail "units have failed"
echo "installed, used, upgraded, removed, installed, purged: ok"
END
MACHINE_ROOT=$root sh "$(dirname "$0")/machine.sh" /use.sh
