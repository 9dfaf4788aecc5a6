#!/bin/sh
# Types README.md's first commands into a fresh system: see readme-guest.sh.
#
# usage: readme.sh BUILD SOURCE [RELEASE]
#	RELEASE		bookworm (if none is given), trixie or noble
#
# Needs root, mmdebstrap and the network. The root is made once, in build-roots/, for the test `packages` too, beside
# the packages that apt has fetched. What the commands change in it is gone afterwards. The compiler's cache is that
# of here, and the tree has the same path there: what a build has compiled here with the same compiler and options is
# not compiled again.
set -u

build=$1
source=$2
roots=$source/build-roots
release=${3:-bookworm}
root=$roots/$release-clean

skip() {
	echo "$*"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "that needs root"
# ccache is not for the commands: without it each run would compile everything again.
said=$(sh "$source/systemd/root.sh" make "$release" "$root" systemd dbus ccache 2>&1) || skip "no root can be made: $said"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/over" "$dir/root" "$roots/readme-cache/apt/partial"
ccache=$roots/readme-cache/ccache
size=5G
if command -v ccache >/dev/null; then
	ccache=$(ccache -k cache_dir)
	size=$(ccache -k max_size)
fi
mkdir -p "$ccache"
# It takes another language for another compiler.
env | grep -E '^(LANG|LC_ALL|LC_CTYPE|LC_MESSAGES)=' >"$dir/language"

# How to preload by hand.
grep -o '`LD_PRELOAD=[^`]*`' "$source/README.md" | tr -d '`' | sort -u >"$dir/preload"
# The first block of code.
sed -n '/^```$/,/^```$/p' "$source/README.md" | sed '1d; /^```$/,$d' >"$dir/commands"

cat >"$dir/enter" <<'ENTER'
build=$1 source=$2 cache=$3 root=$4 dir=$5 ccache=$6 size=$7
cd "$dir" && mount -t tmpfs tmpfs over && mkdir over/upper over/work &&
	mount -t overlay -o "lowerdir=$root,upperdir=over/upper,workdir=over/work" overlay root || exit 77
mkdir -p "root$source" root/machine && mount -t proc proc root/proc && mount -t tmpfs tmpfs root/run &&
	mount --bind /dev root/dev && mkdir root/ccache && mount --bind "$ccache" root/ccache &&
	mount --bind "$cache/apt" root/var/cache/apt/archives || exit
tar -C "$source" -c --exclude='./build*' --exclude='./bundle*' --exclude=./.git . | tar -C "root$source" -x --no-same-owner
cp --remove-destination -L /etc/resolv.conf root/etc/
echo 'Binary::apt::APT::Keep-Downloaded-Packages "true";' >root/etc/apt/apt.conf.d/keep
# As in a container without systemd.
rm root/usr/bin/systemd-sysusers
# The machine's driver, with a GPU.
for file in libcuda.so.1 libnvidia-ml.so.1 libsimgpu-ioctl.so simgpud mps/nvidia-cuda-mps-control; do
	cp -L "$build/tests/simgpu/$file" root/machine || exit
done
cp "$build/tests/apps/driver/matmul" "$build/tests/apps/driver/lanes" "$build/tests/demo/ask" root/machine
cp "$source/tests/func/demo/readme-guest.sh" "$dir/commands" "$dir/preload" root/machine
echo /machine >root/etc/ld.so.conf.d/machine.conf
exec chroot root env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/machine HOME=/root \
	$(cat "$dir/language") DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache CCACHE_MAXSIZE="$size" sh /machine/readme-guest.sh "$source"
ENTER
unshare --mount --pid --fork --kill-child sh "$dir/enter" "$build" "$source" "$roots/readme-cache" "$root" "$dir" "$ccache" "$size"
