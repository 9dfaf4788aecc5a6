#!/bin/sh
# test-top.sh SBEETCTL SBEETD SIMGPU APP SBEETCTL.1: `sbeetctl top` in a terminal, driven by keys: first
# with nobody connected, then with programs on simulated GPUs (SIMGPU: folder of their libraries; APP: a
# sample program).
set -eu
. "$(dirname "$0")/../../lib.sh"

sbeetctl=$1
sbeetd=$2
simgpu=$3
app=$4
page=$5
here=$(dirname "$(realpath "$0")")
command -v tmux >/dev/null || { echo "no tmux here"; exit 77; }
scratch=$(mktemp -d)
logs=$scratch/log
pids=
clean_up() {
	for socket in "$scratch"/tmux.*; do
		tmux -S "$socket" kill-server 2>/dev/null || true
	done
	signal_own TERM "$scratch" $pids
	wait
	rm -rf "$scratch"
}
trap clean_up EXIT
export SBEET_RUNTIME_DIR="$scratch"

# look WANTED TEXT: waits until the text (a basic regular expression) is on the
# screen, or is not.
look() {
	tries=0
	while :; do
		tmux -S "$terminal" capture-pane -p >"$scratch/screen"
		found=no
		LC_ALL=C grep -q -e "$2" "$scratch/screen" && found=yes
		[ "$found" != "$1" ] || return 0
		tries=$((tries + 1))
		[ "$tries" -lt 1200 ] || { echo "'$2' on the screen: expected $1"; cat "$scratch/screen"; exit 1; }
		sleep 0.1
	done
}
sees() { look yes "$1"; }
hides() { look no "$1"; }
press() { tmux -S "$terminal" send-keys "$@"; }
resize() { tmux -S "$terminal" resize-window -x "$1" -y "$2"; }

# start_daemon OPTION...: waits until it answers.
start_daemon() {
	"$sbeetd" --policy even "$@" 2>"$scratch/log" &
	daemon=$!
	pids="$pids $daemon"
	until_true "sbeetd answers" "$sbeetctl" --json
}

# start_top LOCALE SETTING: in a terminal of 80 by 24; tmux itself understands UTF-8.
start_top() {
	# a socket each: a server that leaves would take the next one with it
	terminal=$scratch/tmux.$(($(find "$scratch" -name "tmux.*" | wc -l) + 1))
	tmux -u -S "$terminal" -f /dev/null new-session -d -x 80 -y 24 \
		"env LC_ALL=$1 $2 '$sbeetctl' top -i 0.1; echo code \$?; stty -a | grep -c -e ' icanon .* echo ' | sed s/1/restored/; read -r rest"
}

"$sbeetctl" top </dev/null >/dev/null 2>"$scratch/err" && exit 1
grep -q 'needs a terminal' "$scratch/err"

start_daemon --gpus 46,6
start_top C.UTF-8 A=b
sees 'sbeet top  policy even'
sees 'GPU 0  0 of 46 SMs busy'
sees '^   0 \.\{46\}$'
sees 'GPU 1  0 of 6 SMs busy'
sees '─ no programs connected ─'
press h
sees 'q  *leave'
press x
sees '0 of 46 SMs busy'
press '?'
sees 'q  *leave'
press x
hides 'q  *leave'
press p
sees PAUSED
press p
hides PAUSED
press s
sees 'order: jobs'
press / x y Enter
sees '/ filter: xy'
press / Escape
hides 'filter: xy'
"$sbeetctl" gpu drain 0
sees 'GPU 0 DRAINED'
sees '^   0 -\{46\}$'
"$sbeetctl" gpu resume 0
hides DRAINED
resize 40 12
sees 'sbeet top  policy even'
sees '^   0 \.\{24\}$'
sees '^  24 \.\{22\}$'
resize 40 10
# Not each SM has room for a letter on its own any more.
sees '^   0 \.\{23\}$'
sees 'SMs busy, 2 a letter  '
resize 39 12
sees 'terminal too small'
sees 'needs 40 x 10, has 39 x 12'
resize 80 9
sees 'needs 40 x 10, has 80 x 9'
resize 80 24
sees '^   0 \.\{46\}$'
kill -9 "$daemon"
wait "$daemon" || true # the next one finds it gone
sees 'cannot reach sbeetd'
sees 'NOT LIVE'
press q
sees 'code 0'
sees restored

# What can't be drawn on is refused with what to do instead.
start_daemon --gpus 46,46,46,46,46,46,46,46
start_top C.UTF-8 TERM=dumb
sees "use 'sbeetctl --watch'"
sees 'code 1'
sees restored

# In ASCII without colours; more GPUs than there is room for.
start_top C NO_COLOR=1
resize 80 14
sees '^-- GPUs 1-3 of 8 -'
sees '^-- no programs connected -'
press Tab Tab
sees 'GPUs 1-3 of 8 (arrows scroll)'
press Down
sees 'GPUs 2-4 of 8'
sees '^GPU 3'
hides '^GPU 0'
press End
sees 'GPUs 6-8 of 8'
press PageUp
sees 'GPUs 3-5 of 8'
press Home
sees 'GPUs 1-3 of 8'
tmux -S "$terminal" capture-pane -p -e >"$scratch/screen"
LC_ALL=C grep -q '[;[]3[0-7][;m]' "$scratch/screen" && { echo "there are colours"; exit 1; }
press q
sees 'code 0'
kill "$daemon"
wait "$daemon" || { echo "sbeetd: exit code $?"; cat "$scratch/log"; exit 1; }

# A large GPU on a small screen.
start_daemon --gpus 132
start_top C.UTF-8 A=b
sees '^   0 \.\{72\}$'
sees '^  72 \.\{60\}$'
press q
sees 'code 0'
kill "$daemon"
wait "$daemon" || { echo "sbeetd: exit code $?"; cat "$scratch/log"; exit 1; }

# Programs on the screen: one is always late, one has no deadline.
export SIMGPU=rtx3070:mps SIMGPU_DIR="$scratch" LD_LIBRARY_PATH="$simgpu"
start_daemon
"$sbeetctl" run --task hurried --period 100ms --deadline 1us -- \
	"$app" --lanes 1 --size 64 --rounds 10 --period 100ms --frames 100000 >/dev/null 2>&1 &
pids="$pids $!"
"$sbeetctl" run --task calm -- "$app" --lanes 1 --size 256 --rounds 1000 --frames 100000 >/dev/null 2>&1 &
calm=$!
pids="$pids $calm"
start_top C.UTF-8 A=b
sees '^TASK .*LAST ms .*DEADLINE ms .*LAST OF DEADLINE .*MISSES  NEW'
sees '^calm .* -  -  *0$'
sees '^hurried .* 0\.0  ████████ .* %  *[1-9][0-9]*  *+[1-9]'
# a letter for each task, the same in the map and in both tables
sees '^calm  *C '
sees '^hurried  *H '
sees '^ *[1-9][0-9.]*  [Cc]  *calm  *running  *0 '
sees '^   0 [.CcHh]*[Cc][.CcHh]*$'
sees '[1-9][0-9]* of 46 SMs busy  mps .* W [▁▂▃▄▅▆▇█]'
sees '[1-9][0-9]* of 46 SMs busy  .* W .* [0-9][0-9]* %  [2-9][0-9] C  [0-9][0-9.]*/'
# While there are sessions and jobs: what JSON has of them is in the man page.
for what in status 'task list' 'session list' 'job list' 'job explain 1' 'monitor -d 300ms'; do
	# shellcheck disable=SC2086
	"$sbeetctl" $what --json
done >"$scratch/all.json"
sh "$here/test-keys.sh" "$page" "$(dirname "$page")"/sbeet-*.5 <"$scratch/all.json"
# A change: the question first, then what the verb of the same name does.
press T
sees 'deadline (task time): _'
press -l 'hurried 1h'
press Enter
sees 'Set the deadline of task hurried to 1h? y/n'
press n
hides 'y/n'
press T
press -l 'hurried 50s'
press Enter
sees 'task hurried to 50s? y/n'
press y
sees '^ sbeetd refuses: .*the deadline would be'
press T
hides 'sbeetd refuses'
press -l 'hurried 90ms'
press Enter y
sees '^hurried .* 90\.0 '
sees '^ done$'
press P
press -l 'hurried x'
press Enter
press y
sees "bad value 'x' of option"
press P
hides "bad value 'x' of option"
press -l 'calm 7'
press Enter
sees 'Set the priority of task calm to 7? y/n'
press y
sees '^ done$'
"$sbeetctl" task show calm --json | grep -q '"priority": *7\b'
press D
sees 'drain or resume GPU: 0_'
press Enter
sees 'Drain GPU 0? y/n'
press y
sees '^ done$'
sees 'GPU 0 DRAINED'
press D Enter
sees 'Resume GPU 0? y/n'
press y
sees '^ done$'
hides 'GPU 0 DRAINED'
press s s
sees 'order: misses'
sees '^hurried'
press / c a l m Enter
hides '^hurried'
sees '^calm'
press E
sees 'end program (task or session): calm_'
press Enter
sees 'End session [0-9]* of task calm, .* with pid [0-9]*? y/n'
press x
sees '^calm'
kill -0 "$calm"
press E Enter y
sees 'nothing with this text'
wait "$calm" || true
press q
sees 'code 0'
