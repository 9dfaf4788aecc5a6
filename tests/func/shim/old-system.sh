#!/bin/sh
# A program in a container of an older system: another root with a C library from before 2.34, none of the libraries
# that sbeet is built with, a pid and a user namespace of its own. It is preloaded as `sbeetctl cdi` says, runs jobs,
# and sbeetd knows which process and user it is.
#
# Needs root, and in $SBEET_OLD_ROOT a Debian 11 with python3, which stays as it is. Without that it makes
# one in ROOT, once, if there are mmdebstrap and the network: systemd/root.sh make bullseye ROOT mount python3
#
# usage: old-system.sh BUILD ROOT
set -u
. "$(dirname "$0")/../../lib.sh"

build=$1
root=${SBEET_OLD_ROOT:-$2}
ctl=$build/client/sbeetctl
user=1234 # as whom the program runs in its user namespace

skip() {
	echo "$*"
	exit 77
}

[ "$(id -u)" = 0 ] || skip "that needs root"
unshare --user --mount --pid --fork true 2>/dev/null || skip "no namespaces here"
if [ ! -e "$root/usr/bin/python3" ]; then
	[ -z "${SBEET_OLD_ROOT:-}" ] || skip "there is no Python in $SBEET_OLD_ROOT"
	said=$(sh "$(dirname "$0")/../../../systemd/root.sh" make bullseye "$root" mount python3 2>&1) ||
		skip "no old root can be made: $said"
fi

dir=$(mktemp -d)
logs="$dir/log $dir/out $dir/err $dir/status"
export SBEET_RUNTIME_DIR="$dir/run"
mkdir -m 700 "$SBEET_RUNTIME_DIR"
mkdir "$dir/root" "$dir/driver"
cp "$build/tests/fake/libcuda.so.1" "$(dirname "$0")/old-system.py" "$dir/driver/"
"$build/daemon/sbeetd" --gpus 80,40 --policy even --sharing exclusive 2>"$dir/log" &
daemon=$!
program=
trap 'kill $daemon $program 2>/dev/null; wait; rm -rf "$dir"' EXIT
until_true "sbeetd answers" "$ctl" status

# What docker would do. The root is mounted once more, with folders in it that can be changed without changing it.
# Not chroot, in which the kernel makes no user namespaces.
cat >"$dir/enter" <<'END'
root=$1 dir=$2 user=$3
shift 3
mount --bind "$root" "$dir/root" && cd "$dir/root" || exit
for folder in mnt run usr/local; do
	mount -t tmpfs tmpfs $folder || exit
done
mkdir mnt/driver mnt/before && mount --bind "$dir/driver" mnt/driver && mount -t proc proc proc || exit
variables=
while [ $# -gt 0 ]; do
	case $1 in
	--volume)
		outside=${2%%:*} inside=${2#*:}
		target=.${inside%:ro}
		if [ -d "$outside" ]; then
			mkdir -p "$target"
		else
			mkdir -p "${target%/*}" && : >"$target"
		fi
		mount --bind "$outside" "$target" || exit
		[ "$inside" = "${inside%:ro}" ] || mount -o remount,bind,ro "$target" || exit
		;;
	--env) variables="$variables $2" ;;
	*) exit 1 ;;
	esac
	shift 2
done
pivot_root . mnt/before && umount -l /mnt/before || exit
exec unshare --user --map-user="$user" env -i PATH=/usr/bin:/bin $variables LD_LIBRARY_PATH=/mnt/driver \
	SBEET_REQUIRE=1 SBEET_TASK=old python3 /mnt/driver/old-system.py
END
mkfifo "$dir/end"
options=$("$ctl" cdi --docker --shim "$build/shim/libsbeet.so") || fail "sbeetctl cdi"
unshare --mount --pid --fork --kill-child sh "$dir/enter" "$root" "$dir" "$user" $options \
	<"$dir/end" >"$dir/out" 2>"$dir/err" &
program=$!
exec 3>"$dir/end"
until_true "the program runs" test -s "$dir/out"
read -r jobs libc version pid uid <"$dir/out"
case $version in
2.? | 2.[12]? | 2.3[0-3]) ;;
*) fail "$libc $version is not old" ;;
esac
[ "$uid" = "$user" ] || fail "the program has uid $uid in its namespace"

"$ctl" status --json >"$dir/status" || fail "no status"
outer=$(sed -n 's/.*"sessions":\[[^]]*"pid":\([0-9]*\).*/\1/p' "$dir/status")
[ -n "$outer" ] || fail "the program has no session"
[ "$outer" != "$pid" ] && [ "$(cat "/proc/$outer/comm")" = python3 ] || fail "session has pid $outer, which is not it"
grep -q '"sessions":\[[^]]*"uid":0[,}]' "$dir/status" || fail "its session has not our uid"
grep -q '"sessions":\[[^]]*"task":"old"' "$dir/status" || fail "its session has not its task"

exec 3>&-
wait $program || fail "exit code $?"
program=
"$ctl" status --json >"$dir/status"
grep -q "\"jobs_done\":$jobs[,}]" "$dir/status" || fail "$jobs jobs are not done"
echo "$libc $version: ok"
