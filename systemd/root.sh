#!/bin/sh
# Root file systems of Debian and Ubuntu, for building and trying packages. Needs root.
#
# usage: root.sh make RELEASE ROOT [PACKAGE...]	a root with apt and PACKAGEs, unless there is one; needs
#						mmdebstrap and the network
#	 root.sh run ROOT COMMAND		runs a shell command in it, with the network of here
#
# RELEASE: bullseye, bookworm, trixie (Debian 11 to 13) or noble (Ubuntu 24.04).
# $DEBIAN_MIRROR, $UBUNTU_MIRROR: where packages come from. $UBUNTU_KEYRING: the keys of Ubuntu's archive.
set -eu

usage() {
	sed -n '4,6s/^# *//p' "$0" >&2
	exit 2
}

make_root() { # RELEASE ROOT [PACKAGE...]
	release=$1
	root=$2
	shift 2
	[ ! -e "$root/usr/bin/apt-get" ] || return 0
	components=main
	case $release in
	bullseye | bookworm | trixie)
		mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
		keyring=/usr/share/keyrings/debian-archive-keyring.gpg
		;;
	noble)
		mirror=${UBUNTU_MIRROR:-http://archive.ubuntu.com/ubuntu}
		keyring=${UBUNTU_KEYRING:-/usr/share/keyrings/ubuntu-archive-keyring.gpg}
		components=main,universe
		;;
	*)
		echo "root.sh: unknown release '$release', expected bullseye, bookworm, trixie or noble" >&2
		exit 2
		;;
	esac
	[ -r "$keyring" ] || { echo "root.sh: no $keyring: it is in the package ubuntu-keyring of Debian 13" >&2; exit 1; }
	command -v mmdebstrap >/dev/null || { echo "root.sh: no mmdebstrap here" >&2; exit 1; }
	mkdir -p "$(dirname "$root")"
	# Whoever else wants it waits, and finds it.
	exec 8>"$root.lock"
	flock 8
	[ ! -e "$root/usr/bin/apt-get" ] || return 0
	new=$(mktemp -d "$root.XXXXXX")
	trap 'rm -rf "$new"' EXIT
	# Package lists stay, as more will be installed.
	mmdebstrap --quiet --variant=apt --skip=cleanup/apt/lists --aptopt='Acquire::Retries "5"' --keyring="$keyring" --components="$components" \
		--include="ca-certificates $*" "$release" "$new" "$mirror" >&2
	chmod 755 "$new"
	mv -T "$new" "$root"
}

run_in() { # ROOT COMMAND
	cp --remove-destination -L /etc/resolv.conf "$1/etc/resolv.conf"
	unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/run" &&
		mount --bind /dev "$1/dev" && exec chroot "$1" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
		LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive sh -c "$2"' - "$1" "$2"
}

case ${1:-} in
make) [ $# -ge 3 ] || usage ;;
run) [ $# -eq 3 ] || usage ;;
*) usage ;;
esac
[ "$(id -u)" = 0 ] || { echo "root.sh: only root can make and enter roots" >&2; exit 1; }
verb=$1
shift
case $verb in
make) make_root "$@" ;;
run) run_in "$@" ;;
esac
