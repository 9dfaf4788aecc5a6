#!/bin/sh
# test-release.sh SOURCE_DIR: a release's tarball has all that is committed, is the same wherever it is made, and
# its checksums hold; what is not committed is refused.
set -eu
. "$(dirname "$0")/../../lib.sh"

command -v git >/dev/null || { echo "no git here"; exit 77; }
[ -e "$1/.git" ] || { echo "$1 is no git checkout"; exit 77; }
git -C "$1" rev-parse HEAD >/dev/null || { echo "git does not read $1"; exit 77; } # somebody else's
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

mkdir "$dir/elsewhere"
for umask in 022 077; do
	clone=$dir/elsewhere/$umask
	(
		umask $umask
		git clone --quiet --shared "$1" "$clone" && cd "$clone" &&
			TZ=Asia/Tokyo-$umask sh "$1/systemd/release.sh" "$dir/$umask"
	) || fail "release.sh"
	sleep 1.1 # a time that gets in differs
done
tarball=$(cd "$dir/022" && ls sbeet-*.tar.gz)
cmp "$dir/022/$tarball" "$dir/077/$tarball" || fail "the same commit makes another tarball"
(cd "$dir/022" && sha256sum --check --quiet SHA256SUMS) || fail "the checksums are wrong"
grep -qF " $tarball" "$dir/022/SHA256SUMS" || fail "the tarball has no checksum"

mkdir "$dir/tree"
tar -x -C "$dir/tree" --strip-components=1 -f "$dir/022/$tarball"
git -C "$dir/elsewhere/022" ls-files | LC_ALL=C sort >"$dir/committed"
(cd "$dir/tree" && find . ! -type d -printf '%P\n') | LC_ALL=C sort >"$dir/packed"
diff "$dir/committed" "$dir/packed" || fail "not what is committed"
[ -z "$(find "$dir/tree" -perm /022 ! -type l)" ] || fail "others may write what it unpacks"

cd "$dir/elsewhere/022"
echo >>NEWS
sh "$1/systemd/release.sh" "$dir/dirty" 2>"$dir/said" && fail "what is not committed is released"
grep -q "not committed: .*NEWS" "$dir/said" || fail "it says: $(cat "$dir/said")"
