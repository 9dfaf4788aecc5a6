#!/bin/sh
# test-top.sh SBEETCTL SBEETD: `sbeetctl top` in a terminal of 80 by 24, driven by keys.
set -eu

sbeetctl=$1
sbeetd=$2
command -v tmux >/dev/null || { echo "no tmux here"; exit 77; }
scratch=$(mktemp -d)
daemon=
clean_up() {
	tmux -S "$scratch/tmux" kill-server 2>/dev/null || true
	[ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
	rm -rf "$scratch"
}
trap clean_up EXIT
export SBEET_RUNTIME_DIR="$scratch"

# sees TEXT: waits until it is on the screen; hides TEXT: until it is gone.
look() { # WANTED TEXT
	tries=0
	while :; do
		tmux -S "$scratch/tmux" capture-pane -p >"$scratch/screen"
		found=no
		grep -qF -e "$2" "$scratch/screen" && found=yes
		[ "$found" != "$1" ] || return 0
		tries=$((tries + 1))
		[ "$tries" -lt 200 ] || { echo "'$2' on the screen: expected $1"; cat "$scratch/screen"; exit 1; }
		sleep 0.1
	done
}
sees() { look yes "$1"; }
hides() { look no "$1"; }
press() { tmux -S "$scratch/tmux" send-keys "$@"; }

"$sbeetctl" top </dev/null >/dev/null 2>"$scratch/err" && exit 1
grep -q 'needs a terminal' "$scratch/err"

"$sbeetd" --gpus 46,6 2>/dev/null &
daemon=$!
tries=0
until "$sbeetctl" --json >/dev/null 2>&1; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || { echo "sbeetd does not answer"; exit 1; }
	sleep 0.1
done
tmux -S "$scratch/tmux" -f /dev/null new-session -d -x 80 -y 24 \
	"'$sbeetctl' top -i 0.1; echo code \$?; stty -a | grep -c -e ' icanon .* echo ' | sed s/1/restored/; read -r rest"
sees 'sbeet top  policy even'
sees 'GPU 0'
sees '0 of 46 SMs busy'
sees '..............................................'
sees '0 of 6 SMs busy'
press h
sees 'q        leave'
press x
sees '0 of 46 SMs busy'
press p
sees PAUSED
press p
hides PAUSED
press s
sees 'order: jobs'
press / x y Enter
sees '/ filter: xy'
tmux -S "$scratch/tmux" resize-window -x 40 -y 12
sees 'sbeet top  policy even'
kill -9 "$daemon"
daemon=
sees 'cannot reach sbeetd'
press q
sees 'code 0'
sees 'restored'
