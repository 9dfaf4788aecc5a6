#!/bin/sh
# make-deb.sh BUILD_DIR OUTPUT.deb: a package for Debian 12 from what `meson install` installs.
#
# BUILD_DIR must be configured for the prefix /usr. The package takes sbeetd's account and folders from
# sysusers and tmpfiles; it starts nothing by itself: systemctl enable --now sbeetd.socket
set -eu

[ $# -eq 2 ] || { echo "usage: $0 BUILD_DIR OUTPUT.deb" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

DESTDIR=$root meson install -C "$1" --no-rebuild --quiet
[ -x "$root/usr/bin/sbeetd" ] || { echo "$1 is not configured with --prefix /usr" >&2; exit 1; }
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build" | head -n 1)
chmod 0755 "$root" # mktemp's is for us alone
for page in "$root"/usr/share/man/man*/*.[1-9]; do
	gzip -9n "$page"
done
for program in "$root"/usr/bin/* "$root"/usr/lib/*/sbeet/*.so; do
	strip --strip-unneeded "$program"
done

mkdir "$root/DEBIAN"
# The libraries are those that Debian 12 builds against; names are its own.
cat >"$root/DEBIAN/control" <<END
Package: sbeet
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: sbeet <root@localhost>
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: libc6, libevent-core-2.1-7, libinih1, libjansson4, liblz4-1, libncursesw6, libprotobuf-c1, libsystemd0, libzstd1, systemd
Section: admin
Priority: optional
Description: GPU scheduling with deadlines and energy for CUDA programs
 sbeetd decides which CUDA program runs when, and on which SMs of the GPU;
 libsbeet.so makes unmodified programs ask and obey; sbeetctl shows and steers.
END
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
	systemd-sysusers --root="${DPKG_ROOT:-/}" sbeet.conf
	systemd-tmpfiles --root="${DPKG_ROOT:-/}" --create sbeet.conf
	if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		systemctl try-restart sbeetd.service || true
	fi
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl --no-reload disable --now sbeetd.service sbeetd.socket sbeetd-control.socket sbeet-mps.service || true
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	# What an administrator wrote goes as well; the account stays, as Debian has it.
	rm -rf "${DPKG_ROOT:-}/etc/sbeet"
fi
END
chmod 0755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
(cd "$root" && find usr -type f -exec md5sum {} + | sort -k 2 >DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "$2" >/dev/null
