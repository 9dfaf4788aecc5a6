#!/bin/sh
# packages.sh [--built] OUTPUT [RELEASE]: builds the Debian packages, checks them with lintian, and tries them on a
# clean system of that release with systemd as init (packages-guest.sh).
#	--built		OUTPUT has them already
#	RELEASE		see build-packages.sh: built in a root, which takes minutes; else here, for what runs here
#
# Needs root, and the network for apt. The clean root is made once, in build-roots/.
set -u
. "$(dirname "$0")/../lib.sh"

source=$(cd "$(dirname "$0")/../.." && pwd)
built=
if [ "${1:-}" = --built ]; then
	built=yes
	shift
fi
output=$1
release=${2:-}

skip() {
	echo "$*"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "that needs root"
for tool in mmdebstrap unshare; do
	command -v $tool >/dev/null || skip "no $tool here"
done
if [ -z "$release" ]; then
	release=$(. /etc/os-release && echo "$VERSION_CODENAME")
	[ -n "$built" ] || command -v lintian >/dev/null || skip "no lintian here"
	[ -n "$built" ] || (cd "$source" && dpkg-checkbuilddeps) || skip "what builds packages is not installed"
fi

dir=$(mktemp -d)
logs=$dir/log
making=
trap '[ -z "$making" ] || kill $making 2>/dev/null; rm -rf "$dir"' EXIT
# The same for the test `readme`.
clean=$source/build-roots/$release-clean
sh "$source/systemd/root.sh" make "$release" "$clean" systemd dbus ccache >"$dir/root.log" 2>&1 &
making=$!

if [ -z "$built" ]; then
	echo "== built"
	sh "$source/systemd/build-packages.sh" "$output" ${2:+"$release"} >"$dir/log" 2>&1 || fail "build-packages.sh"
	cat "$dir/log"
	! grep -q '^W:' "$dir/log" || fail "lintian warns"
fi
version=$(sed -n 's/^Version: //p' "$output"/sbeet_*.changes)
upstream=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build" | head -n 1)
case $version in
"$upstream"-*) ;;
*) fail "debian/changelog has $version, meson.build $upstream" ;;
esac
wait $making || {
	making=
	cat "$dir/root.log"
	skip "no clean root can be made"
}
making=

# As systemd/make-deb.sh made it up to 0.1.0: everything in one, units below /usr, sbeetd.conf by tmpfiles.
old_package() {
	for package in "$output"/*.deb "$output"/slurm/*.deb; do
		dpkg-deb -x "$package" "$dir/old" || return
	done
	cd "$dir/old" || return
	if [ -d lib ]; then
		mv lib/systemd/system usr/lib/systemd/ && rm -r lib || return
	fi
	rm -r etc usr/share/doc
	printf 'C /etc/sbeet/sbeetd.conf 0644 root root - /usr/share/sbeet/sbeetd.conf.example\n' \
		>>usr/lib/tmpfiles.d/sbeet.conf
	mkdir DEBIAN
	sed -n 's/^Depends:.*\(libc6 .*\)/\1/p' "$dir/control" >"$dir/depends"
	printf 'Package: sbeet\nVersion: 0.1.0\nArchitecture: %s\nMaintainer: nobody <nobody@localhost>\n%s\n%s\n' \
		"$(dpkg --print-architecture)" "Depends: $(paste -sd , "$dir/depends"), systemd" \
		"Description: all of sbeet" >DEBIAN/control
	cat >DEBIAN/postinst <<-'POSTINST'
		#!/bin/sh
		set -e
		systemd-sysusers sbeet.conf
		systemd-tmpfiles --create sbeet.conf
		systemctl --system daemon-reload
	POSTINST
	cat >DEBIAN/prerm <<-'PRERM'
		#!/bin/sh
		set -e
		units="sbeetd.socket sbeetd-control.socket sbeetd.service sbeet-mps.service"
		if [ "$1" = remove ]; then
			deb-systemd-invoke stop $units >/dev/null || true
			for unit in $units; do
				systemctl --system --no-reload --quiet disable "$unit" || true
			done
		fi
	PRERM
	chmod 755 DEBIAN/postinst DEBIAN/prerm
	dpkg-deb --root-owner-group --build . "$dir/root/old.deb" >"$dir/log" 2>&1
}

echo "== on a clean $release"
root=$dir/root
cp -a "$clean" "$root"
for package in sbeetd sbeetctl; do
	dpkg-deb --field "$output"/${package}_*.deb Depends | sed 's/^/Depends: /'
done >"$dir/control"
(old_package) || fail "the old package can't be made"
mkdir "$root/packages"
cp "$output"/*.deb "$root/packages"
cp "$source/tests/apps/recipe.sh" "$source/tests/lib.sh" "$root"
# What README prints, as it stands there.
sed -n 's/.* && \(apt install .*\.deb\)$/\1/p' "$source/README.md" >"$root/printed"
[ -s "$root/printed" ] || fail "README does not say how to install packages"
printf 'APT::Get::Assume-Yes "true";\nDPkg::Options:: "--force-unsafe-io";\n' >"$root/etc/apt/apt.conf.d/test"
# The machine has no network.
fetch='cd / && apt-get -q -y --no-install-recommends --download-only install /old.deb &&
	echo "APT::Get::Download-Only true;" >/download-only && APT_CONFIG=/download-only sh /printed'
update="apt-get -q -o APT::Update::Error-Mode=any update"
sh "$source/systemd/root.sh" run "$root" "$fetch || { $update && $fetch; }" >"$dir/log" 2>&1 || {
	sh "$source/systemd/root.sh" run "$root" "$update" >"$dir/update" 2>&1 || skip "no network: apt-get update fails"
	fail "what they depend on is not to be had"
}
cp "$source/tests/systemd/packages-guest.sh" "$root/steps.sh"
MACHINE_ROOT=$root sh "$source/tests/systemd/machine.sh" /steps.sh
