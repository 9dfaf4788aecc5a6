# guest.sh: what the scripts that machine.sh runs share; sourced. $build: the build folder. sbeet is installed
# from it as an administrator would, and GPUs are simulated by a service that all users may use.
set -u
. "$(dirname "$0")/../lib.sh"

gpus=/run/simgpu
simulator=/usr/local/lib/simgpu
scratch=/run/test
environment= # of all that runs as a user, beside that of simulated GPUs
apps=$build/tests/apps/driver
mkdir -p "$scratch"

say() {
	printf '%s\n' "$*"
}

fail() {
	say "FAILED: $*"
	journalctl --no-pager -b -n 60 -o short-monotonic 2>/dev/null | grep -E 'sbeet|script|systemd\[1\]'
	for f in "$scratch"/*.err; do
		[ -s "$f" ] && say "--- $f" && tail -n 10 "$f"
	done
	exit 1
}

# As README says, without a word about what is to be done before.
install_sbeet() {
	meson install -C "$build" --no-rebuild --quiet >"$scratch/install" 2>&1 ||
		{ cat "$scratch/install" && fail "meson install"; }
}

# 16 SMs, shared by processes, for all users.
start_gpus() {
	mkdir -p "$simulator"
	for file in libcuda.so.1 libnvidia-ml.so.1 simgpud; do
		cp -L "$build/tests/simgpu/$file" "$simulator"
	done
	systemd-run --quiet --unit=simgpud -p UMask=0000 -p RuntimeDirectory=simgpu -E SIMGPU=16:mps \
		-E SIMGPU_DIR=$gpus "$simulator/simgpud" --foreground || fail "no simulated GPU"
	until_true "the simulated GPU is there" test -S $gpus/simgpud.sock
}

# The service finds them too. LINE...: more for its [Service].
use_gpus() {
	mkdir -p /etc/systemd/system/sbeetd.service.d
	{
		echo "[Service]"
		echo "Environment=SIMGPU=16:mps SIMGPU_DIR=$gpus LD_LIBRARY_PATH=$simulator"
		for line in "$@"; do
			echo "$line"
		done
	} >/etc/systemd/system/sbeetd.service.d/test.conf
	systemctl daemon-reload
}

# WHAT TASK OPERATOR NUMBER: a number of sbeetd's status compares so. TASK may be "".
status_is() {
	number=$(env $environment "$build/tests/demo/ask" /usr/local/bin/sbeetctl "$1" ${2:+"$2"}) && test "$number" "$3" "$4"
}

# All $programs are connected, and $jobs jobs have ended since this sbeetd started.
everybody_works() {
	for program in $programs; do
		status_is sessions "$program" -ge 1 || return 1
	done
	status_is done "" -ge "$jobs"
}

# PROPERTY OPERATOR NUMBER: of the service, by the script's own property().
is() {
	test "$(property "$1")" "$2" "$3"
}

# WHAT COMMAND...: does it, and sees that programs are served again and have not suffered.
disturb() {
	what=$1
	shift
	before=$(property MainPID)
	"$@" || fail "$what: exit code $?"
	until_true "$what: there is another process" eval \
		'pid=$(property MainPID); [ "$pid" -gt 0 ] && [ "$pid" != "$before" ]'
	until_true "$what: it is up" is ActiveState = active
	until_true "$what: programs go on" everybody_works
	no_harm "$what"
}

# USER COMMAND...
as() {
	user=$1
	shift
	setpriv --reuid "$user" --regid "$user" --init-groups env -i PATH="$PATH" HOME="/home/$user" \
		SIMGPU=16:mps SIMGPU_DIR=$gpus LD_LIBRARY_PATH="$simulator" $environment "$@"
}

# Programs that come and go until there is a file "enough"; each must end well, with the right results,
# and under sbeetd all the time. USER PROGRAM RUN-OPTIONS...
load() {
	user=$1
	program=$2
	shift 2
	n=0
	while ! [ -e "$scratch/enough" ]; do
		as "$user" sbeetctl run --task "$program" --require "$@" -- "$apps/$program" --frames 12 \
			--json >"$scratch/$program.out" 2>"$scratch/$program.err"
		code=$?
		[ $code -eq 0 ] || { echo "$program: exit code $code" >>"$scratch/wrong" && break; }
		grep -q '"ok":true' "$scratch/$program.out" || echo "$program: results" >>"$scratch/wrong"
		! grep -q unmanaged "$scratch/$program.err" || echo "$program: unmanaged" >>"$scratch/wrong"
		n=$((n + 1))
		echo "$n" >"$scratch/$program.runs"
	done
}

no_harm() { # WHEN
	[ ! -e "$scratch/wrong" ] || { cat "$scratch/wrong" && fail "programs came to harm: $1"; }
}
