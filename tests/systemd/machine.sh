#!/bin/sh
# machine.sh SCRIPT [ARGUMENT...]: runs a shell script as root on a machine of its own, on which systemd
# is init, and ends with its exit code. Needs root; 77 (skipped) says why it can't be done here.
#
# The machine is this one, in namespaces of its own (processes, mounts, cgroups, network, IPC, host
# name), with a layer over the file system that keeps what is written there: packages, programs and the
# build folder are those of here, at the same paths, and nothing that happens there is left behind. It
# boots to a target of its own, so what this machine has enabled does not run.
#
# Its processes are in a cgroup of their own, which is removed as well.
#
# $MACHINE_ROOT: another root than this machine's, of a system that has systemd.
#
# What the script has to say comes to standard output and error.
set -u

skip() {
	echo "no machine with systemd as init: $*"
	exit 77
}

# Inside of the namespaces, first of all processes: becomes systemd.
boot() { # STAGE SCRIPT [ARGUMENT...]
	stage=$1
	shift
	root=$stage/root
	mount --make-rprivate / || exit 77
	mount -t tmpfs -o mode=755 tmpfs "$stage/layer" && mkdir "$stage/layer/upper" "$stage/layer/work" &&
		mount -t overlay -o "lowerdir=$lower,upperdir=$stage/layer/upper,workdir=$stage/layer/work" \
			overlay "$root" || exit 77
	# Its users get at what the script is given, also below folders that are closed to them here, as of mktemp -d.
	for path in "$@"; do
		while [ "${path#/}" != "$path" ] && [ "$path" != / ]; do
			[ ! -d "$root$path" ] || chmod a+rx "$root$path" || exit 77
			path=$(dirname "$path")
		done
	done
	mount -t proc proc "$root/proc" && mount --bind "$root/proc/sys" "$root/proc/sys" &&
		mount -o remount,bind,ro "$root/proc/sys" &&
		mount -t sysfs -o ro sysfs "$root/sys" &&
		mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup" &&
		mount -t tmpfs -o mode=755 tmpfs "$root/run" &&
		mount -t tmpfs -o mode=755 tmpfs "$root/dev" || exit 77
	for device in null zero full random urandom tty; do
		: >"$root/dev/$device"
		mount --bind "/dev/$device" "$root/dev/$device" || exit 77
	done
	mkdir "$root/dev/pts" "$root/dev/shm"
	mount -t devpts -o newinstance,ptmxmode=666 devpts "$root/dev/pts" || exit 77
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" || exit 77
	ln -s pts/ptmx "$root/dev/ptmx"
	ln -s /proc/self/fd "$root/dev/fd"

	# Where this script's caller listens.
	mkdir "$root/run/outside"
	mount --bind "$stage/outside" "$root/run/outside" || exit 77
	: >"$root/etc/fstab"
	mkdir -p "$root/etc/systemd/system"
	for unit in tmp.mount dev-hugepages.mount sys-kernel-debug.mount sys-kernel-tracing.mount \
		sys-fs-fuse-connections.mount systemd-modules-load.service systemd-remount-fs.service; do
		ln -sf /dev/null "$root/etc/systemd/system/$unit"
	done
	rm -rf "$root"/etc/systemd/system/*.wants # what this machine has enabled
	mkdir -p "$root/etc/tmpfiles.d"
	ln -sf /dev/null "$root/etc/tmpfiles.d/tmp.conf" # which would empty /tmp
	{
		printf '#!/bin/sh\nset --'
		for word in "$@"; do
			printf " '%s'" "$(printf %s "$word" | sed "s/'/'\\\\''/g")"
		done
		printf '\nsh "$@"\necho $? >/run/outside/result\n'
	} >"$root/run/script"
	cat >"$root/etc/systemd/system/script.service" <<-END
		[Unit]
		Requires=dbus.socket
		After=sysinit.target dbus.socket systemd-logind.service
		Wants=systemd-logind.service
		[Service]
		Type=oneshot
		ExecStart=/bin/sh /run/script
		StandardOutput=append:/run/outside/said
		StandardError=append:/run/outside/said
	END
	cat >"$root/etc/systemd/system/script.target" <<-END
		[Unit]
		Requires=sysinit.target
		Wants=script.service
		AllowIsolate=yes
	END
	mkdir -p "$root/.outside"
	cd "$root" && pivot_root . .outside && umount -l /.outside || exit 77
	exec env -i container=sbeet-test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		"$systemd" --unit=script.target --show-status=no --log-level=warning </dev/null
}

lower=${MACHINE_ROOT:-/}
systemd=
for path in /usr/lib/systemd/systemd /lib/systemd/systemd; do
	[ -x "${lower%/}$path" ] && systemd=$path
done
if [ "${1:-}" = --boot ]; then
	shift
	boot "$@"
fi

[ $# -ge 1 ] || { echo "usage: $0 SCRIPT [ARGUMENT...]" >&2; exit 2; }
[ "$(id -u)" = 0 ] || skip "that needs root"
[ -n "$systemd" ] || skip "systemd is not installed"
command -v unshare >/dev/null && command -v pivot_root >/dev/null || skip "no unshare or pivot_root"
[ -e "${lower%/}/usr/lib/systemd/system/dbus.socket" ] || [ -e "${lower%/}/lib/systemd/system/dbus.socket" ] ||
	skip "D-Bus is not installed"

cgroups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
own=$(sed -n 's/^0:://p' /proc/self/cgroup)
[ -n "$cgroups" ] || skip "no cgroup2 is mounted"
cgroup=$cgroups${own%/}/sbeet-test-$$
mkdir "$cgroup" 2>/dev/null || skip "no cgroup can be made in $cgroups$own"

stage=$(mktemp -d)
machine=
clean_up() {
	[ -z "$machine" ] || kill -9 "$machine" 2>/dev/null
	[ -z "$machine" ] || wait "$machine" 2>/dev/null
	tries=0
	while [ -d "$cgroup" ] && [ $tries -lt 100 ]; do # until all have died
		find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null
		[ -d "$cgroup" ] && sleep 0.1
		tries=$((tries + 1))
	done
	rm -rf "$stage"
}
trap clean_up EXIT
trap 'exit 143' TERM INT
mkdir "$stage/root" "$stage/layer" "$stage/outside"
: >"$stage/outside/said"

# If it is killed, so is systemd, and with the first process all others of the namespace.
sh -c 'echo 0 >"$1/cgroup.procs" || exit 77; shift; exec unshare --pid --mount --cgroup --uts --ipc --net \
	--fork --kill-child sh "$@"' - "$cgroup" "$0" --boot "$stage" "$@" >"$stage/console" 2>&1 &
machine=$!

tries=0
while ! [ -s "$stage/outside/result" ]; do
	if ! kill -0 "$machine" 2>/dev/null; then
		wait "$machine"
		code=$?
		machine=
		cat "$stage/outside/said" "$stage/console"
		[ $code -ne 77 ] && [ $code -ne 1 ] || skip "its namespaces or mounts are refused"
		echo "the machine ended with $code"
		exit 1
	fi
	tries=$((tries + 1))
	if [ $tries -gt 3000 ]; then
		cat "$stage/outside/said" "$stage/console"
		echo "the script did not end within five minutes"
		exit 1
	fi
	sleep 0.1
done
cat "$stage/outside/said"
code=$(cat "$stage/outside/result")
[ "$code" -eq 0 ] || [ "$code" -eq 77 ] || cat "$stage/console"
exit "$code"
