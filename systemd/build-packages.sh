#!/bin/sh
# Debian packages of this tree, as source and binaries, checked by lintian: exit 1 where that finds errors.
#
# usage: build-packages.sh [--tarball FILE] OUTPUT [RELEASE]
#	--tarball FILE	of a release (release.sh); else one is made of this tree, with what is not committed
#	OUTPUT		folder for packages, and for build.log. The package for Slurm goes to OUTPUT/slurm, so that
#			`apt install OUTPUT/*.deb` brings no Slurm
#	RELEASE		bookworm, trixie (Debian 12, 13) or noble (Ubuntu 24.04): builds in a root of that system, kept
#			in build-roots/ (see root.sh); else here, for the system that runs here. Then
#			`apt-get build-dep ./` installs what is needed.
#
# A package's version ends with the release it was built for: 0.1.0-1~deb12, ~deb13, ~ubuntu24.04.
set -eu

source=$(cd "$(dirname "$0")/.." && pwd)
tarball=
if [ "${1:-}" = --tarball ] && [ $# -ge 2 ]; then
	tarball=$(realpath "$2")
	shift 2
fi
case $# in
1 | 2) ;;
*)
	sed -n '4s/^# *//p' "$0" >&2
	exit 2
	;;
esac
mkdir -p "$1"
output=$(cd "$1" && pwd)
release=${2:-}
[ -n "$tarball" ] || tarball=$output/tree.tar.gz

# What git knows or would ask about; without git, as in a release, or where it refuses somebody else's checkout, all
# but what is built.
pack_tree() {
	cd "$source"
	if [ -e .git ] && git rev-parse HEAD >/dev/null 2>&1; then
		git ls-files --cached --others --exclude-standard
	else
		find . -mindepth 1 \( -path ./.git -o -path './build*' -o -path './bundle*' \) -prune -o ! -type d -printf '%P\n'
	fi | while IFS= read -r file; do
		[ ! -e "$file" ] || printf '%s\n' "$file"
	done | tar --create --gzip --files-from=- --transform='s,^,sbeet/,' --file="$tarball"
}

# In a folder of its own, which has sbeet.tar.gz: unpacks it, and builds with debhelper.
build='set -eu
	cd "$1"
	mkdir sbeet
	tar -x --strip-components=1 -C sbeet -f sbeet.tar.gz
	. /etc/os-release
	case $ID in
	debian) suffix=~deb$VERSION_ID ;;
	*) suffix=~$ID$VERSION_ID ;;
	esac
	cd sbeet
	upstream=$(dpkg-parsechangelog --show-field Version | sed "s/-[^-]*$//")
	mv ../sbeet.tar.gz "../sbeet_$upstream.orig.tar.gz"
	{
		printf "%s (%s) %s; urgency=medium\n\n" sbeet \
			"$(dpkg-parsechangelog --show-field Version)$suffix" "$VERSION_CODENAME"
		printf "  * Built for %s.\n\n" "$PRETTY_NAME"
		printf " -- %s  %s\n\n" "$(dpkg-parsechangelog --show-field Maintainer)" \
			"$(date -uR -d "$(dpkg-parsechangelog --show-field Date) + 1 second")"
		cat debian/changelog
	} >../changelog
	mv ../changelog debian/changelog
	export DEB_BUILD_OPTIONS="parallel=$(nproc) noautodbgsym"
	dpkg-buildpackage -sa --unsigned-source --unsigned-changes
	cd ..
	rm -rf sbeet'
check='lintian --allow-root --fail-on error --tag-display-limit 0 "$1"/*.changes'

[ "$tarball" != "$output/tree.tar.gz" ] || pack_tree
rm -f "$output"/*.deb "$output"/slurm/*.deb "$output"/sbeet_*
if [ -z "$release" ]; then
	work=$(mktemp -d)
	run() { # COMMANDS: with $1 for the folder
		env PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -c "$1" - "$work"
	}
	# debhelper gives the build another home.
	if command -v ccache >/dev/null; then
		CCACHE_DIR=$(ccache -k cache_dir) CCACHE_MAXSIZE=$(ccache -k max_size)
		CCACHE_BASEDIR=$work CCACHE_NOHASHDIR=1
		export CCACHE_DIR CCACHE_MAXSIZE CCACHE_BASEDIR CCACHE_NOHASHDIR
	fi
else
	root=$source/build-roots/$release-build
	sh "$source/systemd/root.sh" make "$release" "$root" build-essential fakeroot lintian
	work=$root/root/sbeet
	rm -rf "$work"
	mkdir "$work"
	run() {
		printf '%s\n' "$1" >"$work/commands"
		sh "$source/systemd/root.sh" run "$root" "sh /root/sbeet/commands /root/sbeet"
	}
fi
trap 'rm -rf "$work"' EXIT
cp "$tarball" "$work/sbeet.tar.gz"
[ -z "$release" ] || run 'cd "$1" && mkdir needs && tar -x --strip-components=1 -C needs -f sbeet.tar.gz &&
	apt-get -q update && apt-get -q -y --no-install-recommends -o Dpkg::Options::=--force-unsafe-io build-dep ./needs && rm -r needs' >"$output/build.log" 2>&1 || {
	tail -n 20 "$output/build.log" >&2
	exit 1
}
run "$build" >"$output/build.log" 2>&1 || {
	tail -n 40 "$output/build.log" >&2
	echo "The packages can't be built; the whole log is $output/build.log" >&2
	exit 1
}
rm -f "$output/tree.tar.gz"
result=0
run "$check" || result=1
mkdir -p "$output/slurm"
mv "$work"/sbeet-slurm_*.deb "$output/slurm"
mv "$work"/*.deb "$work"/*.orig.tar.gz "$work"/*.debian.tar.xz "$work"/*.dsc "$work"/*.changes "$work"/*.buildinfo "$output"
exit $result
