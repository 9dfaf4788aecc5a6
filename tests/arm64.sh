#!/bin/sh
# arm64.sh FOLDER: builds all of sbeet for arm64 (Jetson, Grace) in FOLDER, with warnings as errors. Unit tests then
# run under qemu-user: meson test -C FOLDER --suite unit --timeout-multiplier 10
# Ends with 77 where the packages are missing.
#
# Needs gcc-aarch64-linux-gnu, qemu-user and mmdebstrap. The libraries come from Debian's archive into
# FOLDER-root, which is made once; nothing is installed here.
set -eu

folder=$1
cd "$(dirname "$0")/.."

skip() {
	echo "arm64: $*"
	exit 77
}

for command in aarch64-linux-gnu-gcc qemu-aarch64 mmdebstrap; do
	command -v $command >/dev/null || skip "there is no $command here"
done
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[ -r "$keyring" ] || skip "there is no $keyring here"

# Of the release that the compiler belongs to.
release=$(. /etc/os-release && [ "$ID" = debian ] && echo "$VERSION_CODENAME") || skip "this is not Debian"
root=$folder-root
if ! [ -e "$root/usr/lib/aarch64-linux-gnu/libevent_core.so" ]; then
	rm -rf "$root"
	mmdebstrap --quiet --variant=extract --architectures=arm64 --keyring="$keyring" --include="libc6-dev \
		libevent-dev libprotobuf-c-dev libinih-dev libjansson-dev libsystemd-dev libzstd-dev liblz4-dev \
		libncurses-dev libcmocka-dev" "$release" "$root" "${DEBIAN_MIRROR:-http://deb.debian.org/debian}" \
		>"$folder-root.log" 2>&1 || skip "no packages are to be had: $(tail -n 1 "$folder-root.log")"
fi
root=$(cd "$root" && pwd)

# Links of -dev packages that lead to / lead out of the root.
find "$root/usr/lib/aarch64-linux-gnu" -maxdepth 1 -type l -lname '/*' | while read -r link; do
	case $(readlink "$link") in
	"$root"/*) ;; # it is mended
	*) ln -sf "$root$(readlink "$link")" "$link" ;;
	esac
done

cat >"$folder.cross" <<END
[binaries]
c = [$(! command -v ccache >/dev/null || printf "'ccache', ")'aarch64-linux-gnu-gcc']
ar = 'aarch64-linux-gnu-ar'
strip = 'aarch64-linux-gnu-strip'
objcopy = 'aarch64-linux-gnu-objcopy'
pkgconfig = 'pkg-config'
exe_wrapper = ['qemu-aarch64', '-L', '$root']

[built-in options]
c_args = ['--sysroot=$root']
c_link_args = ['--sysroot=$root']

[properties]
sys_root = '$root'
pkg_config_libdir = ['$root/usr/lib/aarch64-linux-gnu/pkgconfig', '$root/usr/share/pkgconfig']

[host_machine]
system = 'linux'
cpu_family = 'aarch64'
cpu = 'aarch64'
endian = 'little'
END
sh tests/configure.sh "$folder" --cross-file "$folder.cross" -Dcuda-header=disabled -Dwerror=true
exec ninja -C "$folder" shim/libsbeet.so daemon/sbeetd client/sbeetctl
