#!/bin/sh
# test-doctor.sh SBEETCTL SBEETD SHIM IS-JSON SIMGPU-FOLDER MPS-FOLDER: what sbeetctl doctor finds: with
# and without sbeetd, driver, MPS and rights, and which command it names. Where namespaces can be made,
# also a machine with systemd and a container, each a root folder of its own.
set -eu
. "$(dirname "$0")/../../lib.sh"

sbeetctl=$1
sbeetd=$2
shim=$3
is_json=$4
simgpu=$5
mps=$6
dir=$(mktemp -d)
logs=$dir/log
daemon=
control=
lingering=
end_lingering() {
	# shellcheck disable=SC2086 # words
	signal_own KILL "$dir" $lingering
	lingering=
}
clean_up() {
	end_lingering
	[ -z "$daemon" ] || kill -CONT "$daemon" 2>/dev/null || true
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	[ -z "$control" ] || kill "$control" 2>/dev/null || true
	"$simgpu/simgpud" --stop >/dev/null 2>&1 || true
	wait
	rm -rf "$dir"
}
trap clean_up EXIT
chmod 755 "$dir"
mkdir -m 755 "$dir/run" "$dir/none" "$dir/config"
# Where there is a driver, what is said without one is not tried.
has_driver=no
! /sbin/ldconfig -p | grep -q 'libcuda.so.1 ' || has_driver=yes
is_installed=no
! /sbin/ldconfig -p | grep -q 'libsbeet.so ' || is_installed=yes
unset LD_LIBRARY_PATH CUDA_VISIBLE_DEVICES CUDA_MPS_PIPE_DIRECTORY LD_PRELOAD SBEET_DISABLE
export SBEET_RUNTIME_DIR="$dir/run" SBEET_CONFIG_DIR="$dir/config" SBEET_SHIM="$shim" SBEET_TIMEOUT=20s
export SIMGPU_DIR="$dir" SIMGPU=8
failed=0

wrong() {
	echo "FAILED: $*"
	sed 's/^/    /' "$dir/out"
	failed=1
}

# ends CODE COMMAND...: and what it says is kept
ends() {
	want=$1
	shift
	code=0
	"$@" >"$dir/out" 2>"$dir/err" </dev/null || code=$?
	[ "$code" -eq "$want" ] || wrong "exit code $code, expected $want: $* $(cat "$dir/err")"
	[ ! -s "$dir/err" ] || wrong "it writes to stderr: $(cat "$dir/err")"
}

# finds CHECK STATE TEXT [COMMAND]
finds() {
	awk -v check="$1" '$1 == check { on = 1; print; next } on && /^ +\$/ { print } { on = 0 }' "$dir/out" >"$dir/found"
	grep -q -e "^$1 *$2  .*$3" "$dir/found" || wrong "$1 is not '$2', '$3'"
	if [ -n "${4:-}" ]; then
		grep -qF -e "\$ $4" "$dir/found" || wrong "$1 does not name the command '$4'"
	fi
}

start() { # OPTION...
	LD_LIBRARY_PATH="$simgpu" PATH="$mps:$PATH" "$sbeetd" "$@" 2>"$dir/log" &
	daemon=$!
	until_true "sbeetd answers" "$sbeetctl" status
}

stop() {
	kill "$daemon"
	wait "$daemon" || true
	daemon=
}

doctor() {
	LD_LIBRARY_PATH="$simgpu" "$sbeetctl" doctor "$@"
}

# Nothing is there: no driver, no sbeetd.
ends 1 "$sbeetctl" doctor
if [ $has_driver = no ]; then
	finds driver missing 'libcuda.so.1'
	finds gpu missing 'not known without a driver'
fi
finds sbeetd missing "no socket $dir/run/control.sock"
finds policy note 'not known'
finds library ok "$shim"
finds preload ok 'glibc [0-9.]* loads it'
grep -q '^[0-9]* checks failed' "$dir/out" || wrong "it does not end with a sum"
ends 1 "$sbeetctl" doctor --json
"$is_json" <"$dir/out" || wrong "it is not JSON"
grep -q '^{"ok":false,"checks":\[{"check":"driver","state":"[a-z]*","text":"' "$dir/out" || wrong "--json"
ends 1 "$sbeetctl" doctor --no-legend
! grep -q 'checks failed' "$dir/out" || wrong "--no-legend has a sum"

# All is there: GPU, sbeetd; and no MPS.
start --mps off
ends 0 doctor
finds driver ok 'simulated, CUDA [0-9]'
finds gpu ok '1 GPU: .*, 8 SMs'
finds sbeetd ok "answers at $dir/run/control.sock"
finds mps '[a-z]*' 'no MPS.*programs take turns' nvidia-cuda-mps-control
finds policy ok "'steer'"
finds profiles ok "$dir/config/profiles; this policy needs none"
grep -q '^Programs can be run under sbeet.$' "$dir/out" || wrong "it does not say that all is well"
ends 0 doctor --json
grep -q '^{"ok":true,' "$dir/out" || wrong "--json: not ok"

# Without NVML, as sbeetd finds it.
mkdir "$dir/no-nvml"
ln -s "$simgpu/libcuda.so.1" "$simgpu/simgpud" "$dir/no-nvml/"
stop
ends 1 env LD_LIBRARY_PATH="$dir/no-nvml" "$sbeetctl" doctor
finds driver ok 'simulated, CUDA [0-9]'
finds gpu ok '1 GPU: .*, 8 SMs'
start --mps off

# A policy without its profiles; profiles that sbeetd has not read.
ends 0 "$sbeetctl" policy --quiet lookahead
ends 0 doctor
finds policy note "'lookahead' plans by profiles, and sbeetd has none" 'sbeetctl policy steer'
finds profiles note 'none in' 'sbeetctl profile run'
mkdir "$dir/config/profiles"
echo '{"profiles": [{"name": "first", "on": {"gpu": {"points": [{"sms": 4, "worst": "2ms", "watts": 3}]}}}]}' \
	>"$dir/config/profiles/first.json"
ends 0 doctor
finds profiles note "1 file in $dir/config/profiles changed after"
stop
start --mps off --policy lookahead
ends 0 doctor
finds policy ok "'lookahead', which plans by profiles"
finds profiles ok "1 in $dir/config/profiles"

# Programs.
ends 0 doctor -- /bin/ls -l
finds program ok "'/bin/ls' can be managed"
ends 1 doctor ./no-such-program
finds program missing "can't be executed: No such file"
cp /bin/true "$dir/static"
printf '\0\0' | dd of="$dir/static" bs=1 seek=56 conv=notrunc 2>"$dir/err" # it has no program headers
ends 1 doctor "$dir/static"
finds program missing 'statically linked'
sed 's,/lib64/ld-linux-x86-64.so.2,/lib/ld-musl-x86_64.so.1\x00\x00\x00,' /bin/true >"$dir/musl" # as long
chmod 755 "$dir/musl"
if ! cmp -s /bin/true "$dir/musl"; then # on other machines it has another name
	ends 1 doctor "$dir/musl"
	finds program missing 'its C library is not glibc'
fi
cp /bin/true "$dir/runtime"
echo cudaErrorCudartUnloading >>"$dir/runtime"
ends 1 doctor "$dir/runtime"
finds program missing "can't use a simulated GPU" 'nvcc -cudart shared'
printf '#!/bin/sh\n' >"$dir/script"
chmod 755 "$dir/script"
ends 0 doctor "$dir/script"
if [ "$(id -u)" = 0 ]; then
	cp /bin/true "$dir/setuid"
	chown 65534 "$dir/setuid"
	chmod u+s "$dir/setuid"
	ends 1 doctor "$dir/setuid"
	finds program missing 'setuid'
fi
# One that needs a library which is not there: libc under another name.
sed 's/libc\.so\.6/libx.so.6/g' /bin/true >"$dir/lacking"
chmod 755 "$dir/lacking"
ends 1 doctor "$dir/lacking"
finds program missing 'no libx.so.6'

# The environment.
ends 1 env SBEET_DISABLE=1 LD_LIBRARY_PATH="$simgpu" "$sbeetctl" doctor
finds environment missing 'SBEET_DISABLE=1' 'unset SBEET_DISABLE'
ends 1 env SBEET_PERIOD=often LD_LIBRARY_PATH="$simgpu" "$sbeetctl" doctor
finds environment missing 'often' 'unset SBEET_PERIOD'

# Programs on the GPU that declare a task: without the library, and with it.
linger() { # ENVIRONMENT...: $pid
	env "$@" sleep 1000 2>/dev/null &
	pid=$!
	lingering="$lingering $pid"
	until_true "a program is on the GPU" eval 'grep -q libcuda.so "/proc/$pid/maps"'
}
driver=$simgpu/libcuda.so.1
linger LD_PRELOAD="$driver" SBEET_TASK=cam
ends 1 doctor
finds processes missing "1 on a GPU without libsbeet.so: process $pid (sleep): SBEET_TASK is set, but" 'sbeetctl run'
end_lingering
linger LD_PRELOAD="$driver $dir/none/libsbeet.so"
ends 1 doctor
finds processes missing "process $pid (sleep): LD_PRELOAD names $dir/none/libsbeet.so, which is not there"
end_lingering
if [ $is_installed = no ]; then
	linger LD_PRELOAD="$driver:libsbeet.so" SBEET_DEADLINE=5ms
	ends 1 doctor
	finds processes missing "process $pid (sleep): LD_PRELOAD names it without a folder"
	end_lingering
fi
linger LD_PRELOAD="$driver:$shim" SBEET_TASK=cam
linger LD_PRELOAD="$driver" SBEET_TASK=cam SBEET_DISABLE=1
linger LD_PRELOAD="$driver" SBEET_TASK=cam SBEET_RUNTIME_DIR="$dir/none"
linger LD_PRELOAD="$driver"
ends 0 doctor
finds processes ok 'none that declares a task'
end_lingering

# LD_PRELOAD with the name alone.
mkdir "$dir/named"
ln -s "$shim" "$dir/named/libsbeet.so"
ends 0 env LD_PRELOAD=libsbeet.so LD_LIBRARY_PATH="$dir/named:$simgpu" "$sbeetctl" doctor
finds environment ok 'no variable is in the way'
cp "$shim" "$dir/none/libsbeet.so"
ends 1 env LD_PRELOAD=libsbeet.so LD_LIBRARY_PATH="$dir/none:$simgpu" "$sbeetctl" doctor
finds environment missing "another libsbeet.so: $dir/none/libsbeet.so" 'unset LD_PRELOAD'
rm "$dir/none/libsbeet.so"
if [ $is_installed = no ]; then
	ends 1 env LD_LIBRARY_PATH="$simgpu" sh -c 'LD_PRELOAD=libsbeet.so exec "$1" doctor 2>"$2"' - "$sbeetctl" "$dir/said"
	finds environment missing 'in no folder where the dynamic linker looks' "export LD_PRELOAD=$shim"
fi

# A library that can't be preloaded, or is none.
echo nothing >"$dir/libsbeet.so"
ends 1 doctor --shim "$dir/libsbeet.so"
finds library missing 'another machine'
finds preload missing 'cannot be preloaded'
ends 1 doctor --shim "$dir/nowhere.so"
finds library missing "$dir/nowhere.so"
finds preload missing 'not tried'

# A driver that hangs: the check ends all the same.
printf waits >"$dir/nvml-fault"
ends 1 env SBEET_TIMEOUT=2s LD_LIBRARY_PATH="$simgpu" "$sbeetctl" doctor
finds gpu missing 'does not answer' nvidia-smi
rm "$dir/nvml-fault"

# sbeetd is silent, was killed, may not be reached.
kill -STOP "$daemon"
ends 1 env SBEET_TIMEOUT=500ms "$sbeetctl" doctor
finds sbeetd missing 'does not answer'
kill -CONT "$daemon"
kill -KILL "$daemon"
wait "$daemon" || true
daemon=
ends 1 doctor
finds sbeetd missing "nothing listens at $dir/run/control.sock"
if [ "$(id -u)" = 0 ] && cp "$sbeetctl" "$shim" "$dir" && chmod 755 "$dir/sbeetctl"; then
	start --mps off
	chmod 711 "$dir/run"
	ends 1 setpriv --reuid=65534 --regid=65534 --clear-groups env SBEET_SHIM="$dir/$(basename "$shim")" "$dir/sbeetctl" doctor
	finds sbeetd missing 'may not connect'
	finds group missing 'sbeet'
	stop
fi

# MPS, of sbeetd's own.
start --mps start
mps_is_up() {
	"$sbeetctl" status --json | grep -q '"state":"up"'
}
until_true "MPS is up" mps_is_up
control=$(cat "$dir/run/mps/pipe/nvidia-cuda-mps-control.pid")
ends 0 doctor
finds mps ok "MPS runs, pipe directory $dir/run/mps/pipe"
stop
[ ! -d "$dir/run/mps/pipe" ] || control=
[ $failed -eq 0 ] || exit 1

# ---- machines of their own ----
if [ "$(id -u)" != 0 ] || ! unshare --mount --fork true 2>/dev/null; then
	echo "no mount namespaces here: systemd, group and container are not tried"
	exit 0
fi
root=$dir/root
mkdir -p "$root/run/sbeet" "$root/tmp" "$root/proc" "$root/dev" "$root/work" "$root/etc/systemd/system"
for folder in bin lib lib64 usr sbin; do
	if [ -L "/$folder" ]; then
		cp -P "/$folder" "$root/$folder"
	elif [ -d "/$folder" ]; then
		mkdir "$root/$folder"
	fi
done
cp /etc/ld.so.cache "$root/etc/"
echo 'ID=debian' >"$root/etc/os-release"
printf 'root:x:0:0::/:/bin/sh\nalice:x:7777:7777::/:/bin/sh\n' >"$root/etc/passwd"
printf 'root:x:0:\nalice:x:7777:\nsbeet:x:4242:\n' >"$root/etc/group"
echo 'hosts: files' >"$root/etc/nsswitch.conf"
cp "$sbeetctl" "$sbeetd" "$shim" "$root/work/"
chmod 755 "$root/work/"*
cat >"$dir/enter" <<-'SCRIPT'
	# ROOT COMMAND: in it as root, with the folders of this machine
	for folder in bin lib lib64 usr sbin proc dev; do
		[ ! -d "$1/$folder" ] || [ -L "$1/$folder" ] || mount --rbind "/$folder" "$1/$folder"
	done
	exec chroot "$1" /bin/sh -c "$2"
SCRIPT
inside() { # COMMAND
	unshare --mount --fork --kill-child env -u SBEET_RUNTIME_DIR -u SBEET_CONFIG_DIR -u container \
		SBEET_SHIM="/work/$(basename "$shim")" sh "$dir/enter" "$root" "$1"
}
as_alice() { # GROUPS: in a process of hers
	inside "exec setpriv --reuid=7777 --regid=7777 --groups=$1 /work/sbeetctl doctor"
}

# systemd runs, sbeet is installed and not enabled.
units=${root:?}/etc/systemd/system
mkdir -p "${root:?}/run/systemd/system"
: >"$units/sbeetd.socket"
: >"$units/sbeet-mps.service"
ends 1 as_alice 7777
[ $has_driver = yes ] || finds driver missing 'no NVIDIA driver' 'sudo apt install nvidia-driver'
finds mps note 'no MPS' 'sudo systemctl enable --now sbeet-mps'
finds sbeetd missing 'no socket /run/sbeet/control.sock' 'sudo systemctl enable --now sbeetd.socket'
finds start missing 'not enabled' 'sudo systemctl enable --now sbeetd.socket'
finds group missing 'not in group' 'sudo usermod -aG sbeet alice'
finds container ok 'not in one'

# Enabled, and running; alice is not in the group, is since this login, is.
mkdir "$units/sockets.target.wants"
: >"$units/sockets.target.wants/sbeetd.socket"
inside 'echo $$ >/work/pid; exec /work/sbeetd --gpus 8 --mps off' 2>"$dir/log" &
until_true "sbeetd answers" inside 'exec /work/sbeetctl status'
daemon=$(cat "${root:?}/work/pid")
ends 1 as_alice 7777
finds start ok 'is enabled'
finds sbeetd missing 'may not connect to /run/sbeet/control.sock' 'sudo usermod -aG sbeet alice'
finds group missing "'alice' is not in group" 'sudo usermod -aG sbeet alice'
sed -i 's/^sbeet:.*/&alice/' "${root:?}/etc/group"
ends 1 as_alice 7777
finds group missing 'after this login' 'newgrp sbeet'
ends $([ $has_driver = yes ] && echo 0 || echo 1) as_alice 7777,4242
finds group ok "user 'alice' is in group"
finds sbeetd ok 'answers at /run/sbeet/control.sock'

# The same as a container.
: >"${root:?}/.dockerenv"
ends 1 as_alice 7777
finds group missing '' 'docker run --group-add'
ends $([ $has_driver = yes ] && echo 0 || echo 1) as_alice 7777,4242
finds container ok 'docker: sockets and library are there'
[ $has_driver = yes ] || finds driver missing 'this container has no NVIDIA driver' 'docker run --gpus all'
kill "$daemon"
while [ -e "/proc/$daemon" ]; do
	sleep 0.1
done
daemon=
rm -f "${root:?}/run/sbeet/shim.sock" "${root:?}/run/sbeet/control.sock"
ends 1 as_alice 7777,4242
finds container missing 'sockets are not mounted' "docker run --gpus all \$(sbeetctl cdi --docker) IMAGE"
finds sbeetd missing 'no socket /run/sbeet/control.sock' 'docker run --gpus all'
exit $failed
