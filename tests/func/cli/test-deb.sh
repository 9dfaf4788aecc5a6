#!/bin/sh
# test-deb.sh SOURCE_DIR BUILD_DIR: the package is built, installs into an empty root, has what it
# should, and leaves nothing behind when it is purged.
#
# What is built already is installed from BUILD_DIR; only the prefix is another, so the units are made
# anew by a configuration without tests.
set -eu

for tool in dpkg-deb dpkg dpkg-shlibdeps meson systemd-sysusers systemd-tmpfiles strip; do
	command -v $tool >/dev/null || { echo "no $tool here"; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "dpkg --root needs root"; exit 77; }
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

fail() {
	echo "$*"
	exit 1
}

meson setup "$dir/build" "$1" --prefix /usr -Dtests=false -Dbuildtype=debug >"$dir/log" 2>&1 ||
	{ cat "$dir/log"; exit 1; }
ninja -C "$dir/build" >"$dir/log" 2>&1 || { tail -n 20 "$dir/log"; exit 1; }
sh "$1/systemd/make-deb.sh" "$dir/build" "$dir/sbeet.deb"

root=$dir/root
mkdir -p "$root/var/lib/dpkg/info" "$root/var/lib/dpkg/updates" "$root/etc"
: >"$root/var/lib/dpkg/status"
apply() {
	dpkg --root="$root" --force-script-chrootless --force-depends --log=/dev/null "$@" \
		>"$dir/log" 2>&1 || { cat "$dir/log"; exit 1; }
}

apply -i "$dir/sbeet.deb"
for file in usr/bin/sbeetd usr/bin/sbeetctl usr/lib/systemd/system/sbeetd.service \
	usr/lib/systemd/system/sbeetd.socket usr/lib/systemd/system/sbeet-mps.service usr/lib/systemd/user/sbeetd.service \
	usr/lib/sysusers.d/sbeet.conf usr/share/man/man5/sbeetd.conf.5.gz \
	usr/share/bash-completion/completions/sbeetctl usr/lib/systemd/system-preset/80-sbeet.preset \
	usr/share/zsh/vendor-completions/_sbeetctl usr/share/doc/sbeet/copyright \
	etc/sbeet/tasks.d etc/sbeet/sbeetd.conf; do
	[ -e "$root/$file" ] || fail "/$file is missing"
done
grep -q '^sbeet:' "$root/etc/passwd" || fail "the account is missing"
grep -q '^sbeet:' "$root/etc/group" || fail "the group is missing"
grep -q '^ExecStart=/usr/bin/sbeetd$' "$root/usr/lib/systemd/system/sbeetd.service" ||
	fail "the unit starts something else"
wrong=$(find "$root/usr" ! -user 0 -o -perm /022 ! -type l)
[ -z "$wrong" ] || fail "owner or mode is wrong: $wrong"
"$root/usr/bin/sbeetd" --version >/dev/null || fail "sbeetd does not run"

apply -r sbeet
[ -d "$root/etc/sbeet" ] || fail "removing took the configuration"
apply -P sbeet
left=$(find "$root/usr" "$root/etc/sbeet" -type f 2>/dev/null || true)
[ -z "$left" ] || fail "left behind: $left"
