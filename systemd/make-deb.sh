#!/bin/sh
# make-deb.sh BUILD_DIR OUTPUT.deb: a package for Debian 12 from what `meson install` installs.
#
# BUILD_DIR must be configured for the prefix /usr. The package takes sbeetd's account and folders from
# sysusers and tmpfiles; it starts nothing by itself: systemctl enable --now sbeetd.socket
set -eu

[ $# -eq 2 ] || { echo "usage: $0 BUILD_DIR OUTPUT.deb" >&2; exit 2; }
source=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
root=$work/sbeet
mkdir "$root"
trap 'rm -rf "$work"' EXIT

DESTDIR=$root meson install -C "$1" --no-rebuild --quiet
[ -x "$root/usr/bin/sbeetd" ] || { echo "$1 is not configured with --prefix /usr" >&2; exit 1; }
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build" | head -n 1)
chmod 0755 "$root" # mktemp's is for us alone
for page in "$root"/usr/share/man/man*/*.[1-9]; do
	gzip -9n "$page"
done
for program in "$root"/usr/bin/* "$root"/usr/lib/*/sbeet/*.so; do
	strip --strip-unneeded --remove-section=.comment --remove-section=.note "$program"
done
chmod 0644 "$root"/usr/lib/*/sbeet/*.so
mv "$root/usr/share/zsh/site-functions" "$root/usr/share/zsh/vendor-completions" # where Debian's zsh looks
rm -rf "$root/DEBIAN"
mkdir -p "$root/DEBIAN" "$root/usr/share/doc/sbeet"
cp "$source/LICENSE" "$root/usr/share/doc/sbeet/copyright"
gzip -9cn "$source/NEWS" >"$root/usr/share/doc/sbeet/NEWS.gz"
maintainer="${DEBFULLNAME:-sbeet} <${DEBEMAIL:-root@localhost}>"
gzip -9n >"$root/usr/share/doc/sbeet/changelog.gz" <<END
sbeet ($version) unstable; urgency=medium

  * See NEWS.gz.

 -- $maintainer  $(date -Ru -d "@${SOURCE_DATE_EPOCH:-$(stat -c %Y "$source/NEWS")}")
END

# The libraries are those of the machine that this is built on.
mkdir "$work/debian"
printf 'Source: sbeet\n\nPackage: sbeet\nArchitecture: any\n' >"$work/debian/control"
libraries=$(cd "$work" && dpkg-shlibdeps -O "$root"/usr/bin/* "$root"/usr/lib/*/sbeet/*.so 2>/dev/null |
	sed -n 's/^shlibs:Depends=//p')
[ -n "$libraries" ] || { echo "dpkg-shlibdeps knows no package of the libraries" >&2; exit 1; }
cat >"$root/DEBIAN/control" <<END
Package: sbeet
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: $maintainer
Installed-Size: $(du -sk --exclude=DEBIAN "$root" | cut -f 1)
Depends: $libraries, systemd
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
		systemctl --system daemon-reload >/dev/null || true
		# An upgrade: programs and their jobs go on.
		[ -z "$2" ] || deb-systemd-invoke try-restart sbeetd.service >/dev/null || true
	fi
fi
END
cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
units="sbeetd.socket sbeetd-control.socket sbeetd.service sbeet-mps.service"
if [ "$1" = remove ] && [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop $units >/dev/null || true
	for unit in $units; do
		systemctl --system --no-reload --quiet disable "$unit" || true
	done
fi
END
cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ -z "${DPKG_ROOT:-}" ] && [ -d /run/systemd/system ]; then
	systemctl --system daemon-reload >/dev/null || true
fi
if [ "$1" = purge ]; then
	# What an administrator wrote and sbeetd learnt goes as well; the account stays, as Debian has it.
	rm -rf "${DPKG_ROOT:-}/etc/sbeet" "${DPKG_ROOT:-}/var/lib/sbeet"
fi
END
chmod 0755 "$root/DEBIAN/postinst" "$root/DEBIAN/prerm" "$root/DEBIAN/postrm"
(cd "$root" && find usr -type f -exec md5sum {} + | sort -k 2 >DEBIAN/md5sums)
dpkg-deb --root-owner-group --build "$root" "$2" >/dev/null
