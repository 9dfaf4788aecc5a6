#!/bin/sh
# What is published of the commit that is checked out here: a tarball, packages, and their checksums.
#
# usage: release.sh OUTPUT [RELEASE...]
#	OUTPUT		folder for sbeet-VERSION.tar.gz and SHA256SUMS, and a folder of packages for each RELEASE
#	RELEASE		see build-packages.sh; needs root
#
# The tarball holds what is committed, tests and debian/ too. The same commit makes the same bytes wherever it is
# checked out; `meson dist` would write the time of its checkout into it. `git get-tar-commit-id` reads the commit.
set -eu

[ $# -ge 1 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 2; }
mkdir -p "$1"
output=$(cd "$1" && pwd)
shift

refuse() {
	echo "release.sh: $*" >&2
	exit 1
}

source=$(git rev-parse --show-toplevel) || refuse "run it in a checkout"
changed=$(git -C "$source" status --porcelain --untracked-files=no)
[ -z "$changed" ] || refuse "not committed: $changed"
version=$(sed -n "s/^ *version: '\(.*\)',/\1/p" "$source/meson.build" | head -n 1)
head -n 1 "$source/debian/changelog" | grep -qF "($version-" ||
	refuse "debian/changelog begins with another version than meson.build: $version"
grep -qxF "$version" "$source/NEWS" || refuse "NEWS says nothing of $version"

tarball=$output/sbeet-$version.tar.gz
git -C "$source" -c tar.umask=0022 archive --format=tar --prefix="sbeet-$version/" HEAD >"$output/tree.tar"
gzip -9n --stdout "$output/tree.tar" >"$tarball"
rm "$output/tree.tar"
for release in "$@"; do
	sh "$source/systemd/build-packages.sh" --tarball "$tarball" "$output/$release" "$release"
	rm "$output/$release/build.log"
done
cd "$output"
find . -type f ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS
