#!/bin/sh
# upgrade.sh BUILD_DIR SOURCE_DIR: sbeetd is replaced by another build while programs run, and back, under a real
# systemd; run by machine.sh.
#
# Two other builds are made of a copy of this tree: "later" adds fields and a kind of record to all that
# shims and daemons say to each other and leave to each other, and sends them; "foreign" also changes
# what is left, so that neither can use the other's.
build=$1
source=$2
. "$(dirname "$0")/guest.sh"
programs="matmul hotspot histogram lanes"
jobs=8
copy=$scratch/later

find_source() { # NAME: the one file of this name
	found=$(find "$copy" -name "$1" -not -path "$copy/build/*")
	[ -f "$found" ] || fail "there is not one file '$1': mend this test"
}

# NAME LINE-PATTERN ADDED-LINE: puts a line behind each that matches.
add() {
	find_source "$1"
	grep -q "$2" "$found" || fail "$1 has no line like '$2': mend this test"
	sed -i "/$2/a\\
$3" "$found"
}

set_number() { # NAME CONSTANT
	find_source "$1"
	grep -q "#define $2" "$found" || fail "$1 does not define $2: mend this test"
	sed -i "s/#define $2 .*/#define $2 77/" "$found"
}

make_copy() {
	mkdir "$copy"
	for part in client daemon proto shim systemd meson.build meson_options.txt; do
		cp -a "$source/$part" "$copy"
	done
	sed -i "s/^  version: '.*'/  version: '77.0'/" "$copy/meson.build"
	word='string later_word = 900;'
	for message in TaskSpec Held Hello Request Grant Welcome; do
		add sbeet.proto "^message $message {" "$word"
	done
	for message in Session Waiting; do
		add state.proto "^message $message {" "$word"
	done
	add state.proto '^		Waiting waiting = 2;' '		Counters later = 900;'
	add greet.c '^	hello.version = ' '	hello.later_word = task.later_word = (char *)"later";'
	add session-say.c '^	grant.job = ' '	grant.later_word = (char *)"later";'
	add granted-job.c '^	ret->job = ' '	ret->later_word = (char *)"later";'
	add handover.c '^	session.id = ' '	session.later_word = (char *)"later";'
	add handover.c '^	write_all_waiting(&w, all);' '	{\
		Sbeet__State__Counters counters = SBEET__STATE__COUNTERS__INIT;\
		Sbeet__State__Record later = SBEET__STATE__RECORD__INIT;\
\
		later.body_case = SBEET__STATE__RECORD__BODY_LATER;\
		later.later = \&counters;\
		write_record(\&w, \&later);\
	}'
}

compile() { # NAME
	ninja -C "$copy/build" -j 2 daemon/sbeetd shim/libsbeet.so >"$scratch/compile" 2>&1 ||
		{ tail -n 30 "$scratch/compile" && fail "'$1' does not compile"; }
	mkdir "$scratch/$1-build"
	cp "$copy/build/daemon/sbeetd" "$copy/build/shim/libsbeet.so" "$scratch/$1-build"
	chmod -R a+rX "$scratch/$1-build"
}

said() { # WORDS: how often in the journal
	journalctl --no-pager -q -b -u sbeetd -o cat | grep -c -- "$1"
}

# TO HOW WORDS: the daemon of build TO takes over, and says so often WORDS.
replace_by() {
	to=$1
	words=$3
	before=$(said "$words")
	running=$(systemctl show -P MainPID sbeetd)
	cp "$scratch/$to-build/sbeetd" /usr/local/bin/sbeetd.new && mv /usr/local/bin/sbeetd.new /usr/local/bin/sbeetd
	case $2 in
	restart) systemctl restart sbeetd || fail "restart to $to" ;;
	kill) systemctl kill --signal KILL sbeetd ;;
	esac
	until_true "$to runs" is_replaced
	until_true "$to says '$words'" eval '[ "$(said "$words")" -gt "$before" ]'
	until_true "programs go on under $to" everybody_works
	no_harm "$to took over by $2"
}

is_replaced() {
	now=$(systemctl show -P MainPID sbeetd)
	[ "$now" -gt 0 ] && [ "$now" != "$running" ] && cmp "/proc/$now/exe" "$scratch/$to-build/sbeetd"
}

say "== three builds"
make_copy
(cd "$copy" && meson setup build -Dtests=false -Dbuildtype=debug >"$scratch/compile" 2>&1) ||
	{ cat "$scratch/compile" && fail "the copy can't be configured"; }
compile later
set_number handover.h HANDOVER_VERSION
set_number ledger.h LEDGER_VERSION
compile foreign
mkdir "$scratch/this-build"
cp "$build/daemon/sbeetd" "$scratch/this-build"
chmod a+rx "$scratch"

install_sbeet
start_gpus
# Under even there are granted jobs to be kept.
use_gpus ExecStart= "ExecStart=/usr/local/bin/sbeetd --policy even"
useradd --create-home --groups sbeet alice
systemctl enable --now --quiet sbeetd.socket || fail "enable --now sbeetd.socket"

say "== load, half of it with the later shim"
load alice matmul &
load alice hotspot &
shim=--shim=$scratch/later-build/libsbeet.so
load alice histogram $shim &
load alice lanes $shim &
until_true "all work" everybody_works

say "== to the later one and back: connections go on"
replace_by later restart "connections are kept"
replace_by this restart "connections are kept"
[ "$(said 'is not used')" -eq 0 ] || fail "what one left was of no use to the other"
replace_by later kill "jobs run since before this start"
replace_by this kill "jobs run since before this start"

say "== to a foreign one and back: programs connect again"
replace_by foreign restart "it is of another version"
replace_by this restart "it is of another version"
replace_by foreign kill "Ready in"
replace_by this kill "Ready in"

: >"$scratch/enough"
wait
no_harm "to the end"
say "$(cat "$scratch"/*.runs | awk '{ n += $1 } END { print n }') programs under eight times another build: ok"
