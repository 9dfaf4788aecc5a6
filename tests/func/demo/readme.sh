#!/bin/sh
# Types README.md's first commands into a fresh Debian 12: see readme-guest.sh.
#
# usage: readme.sh BUILD SOURCE
#
# Needs root, mmdebstrap and the network. The root is made once, in build-roots/, beside the packages that apt has
# fetched and the compiler's cache. What the commands change in it is gone afterwards.
set -u

build=$1
source=$2
roots=$source/build-roots
root=$roots/bookworm-readme

skip() {
	echo "$*"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "that needs root"
# ccache is not for the commands: without it each run would compile everything again.
said=$(sh "$source/systemd/root.sh" make bookworm "$root" ccache 2>&1) || skip "no root can be made: $said"

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
mkdir -p "$dir/over" "$dir/root" "$roots/readme-cache/apt/partial" "$roots/readme-cache/ccache"

# The first block of code.
sed -n '/^```$/,/^```$/p' "$source/README.md" | sed '1d; /^```$/,$d' >"$dir/commands"

cat >"$dir/enter" <<'ENTER'
build=$1 source=$2 cache=$3 root=$4 dir=$5
cd "$dir" && mount -t tmpfs tmpfs over && mkdir over/upper over/work &&
	mount -t overlay -o "lowerdir=$root,upperdir=over/upper,workdir=over/work" overlay root || exit 77
mkdir root/sbeet root/machine && mount -t proc proc root/proc && mount -t tmpfs tmpfs root/run &&
	mount --bind /dev root/dev && mkdir root/ccache && mount --bind "$cache/ccache" root/ccache &&
	mount --bind "$cache/apt" root/var/cache/apt/archives || exit
tar -C "$source" -c --exclude='./build*' --exclude='./bundle*' --exclude=./.git . | tar -C root/sbeet -x --no-same-owner
cp --remove-destination -L /etc/resolv.conf root/etc/
echo 'Binary::apt::APT::Keep-Downloaded-Packages "true";' >root/etc/apt/apt.conf.d/keep
# The machine's driver, with a GPU.
for file in libcuda.so.1 libnvidia-ml.so.1 libsimgpu-ioctl.so simgpud mps/nvidia-cuda-mps-control; do
	cp -L "$build/tests/simgpu/$file" root/machine || exit
done
cp "$build/tests/apps/driver/matmul" "$build/tests/apps/driver/lanes" "$build/tests/demo/ask" root/machine
cp "$source/tests/func/demo/readme-guest.sh" "$dir/commands" root/machine
echo /machine >root/etc/ld.so.conf.d/machine.conf
exec chroot root env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/machine HOME=/root \
	LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive CCACHE_DIR=/ccache sh /machine/readme-guest.sh
ENTER
unshare --mount --pid --fork --kill-child sh "$dir/enter" "$build" "$source" "$roots/readme-cache" "$root" "$dir"
