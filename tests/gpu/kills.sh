#!/bin/sh
# Sudden deaths on a GPU without MPS under policy steer, in the folder that bundle.sh made: kill -9 of
# sbeetd, of the process that preempts, of an urgent program and of one that is preempted, each at random
# moments; of the programs also while sbeetd is stopped. Beside them an urgent program and an endless one
# that is preempted must go on, with right results.
#
# usage: kills.sh [N]	so many of each kind (100); table and times also in $OUT/kills.txt, kills.csv
#
# The last line is programs without sbeet, beside no other but each other: what the driver itself takes.
#
# hangs: the process did not end, its memory did not come back or the others did not go on within 10 s.
# TURN: how long turns are, such as 20ms: with turns, of which there are none beside a second urgent program. So only the first
# pair has one, the urgent neighbour has no deadline, and in the other pairs both are preempted. Without it there are none.
# BUDGET_S (120): ends some 20 s after so many, whatever N is. MEMORY_MIB (4096): of each program that is
# killed. PAIRS (3): of them at a time. ROUNDS: of arithmetic in a kernel of 0.5 ms; measured if not given.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
began=$(date +%s)
wanted=${1:-100}
memory=${MEMORY_MIB:-4096}
go=$scratch/go
csv=$out/kills.csv
failed=0
turn=${TURN:-}
told=0
touch "$go"
: >"$out/kills.txt"
echo "kind,end_ms,memory_ms,others_ms" >"$csv"

say() {
	echo "$*" | tee -a "$out/kills.txt"
}

# NAME OPTIONS -- KEY=VALUE...
start() {
	name=$1
	options=$2
	shift 3
	# shellcheck disable=SC2086 # several words
	managed --task "$name" --job marks $options -- "$here/bin/segments" go="$go" rounds="$rounds" "$@" \
		>"$scratch/$name.out" 2>"$scratch/$name.err" &
}

pid_of() { # NAME: when it is ready
	within 30 grep -qs ready "$scratch/$1.out" || {
		say "$1 does not start: $(tail -n 3 "$scratch/$1.err")"
		exit 1
	}
	cut -d ' ' -f 2 "$scratch/$1.out"
}

# KIND PID MIB: at a random moment of the next 20 ms.
kill_at_random() {
	echo "$2 $3 $(($(od -An -N2 -tu2 /dev/urandom) % 20000))" >&8
	read -r times <&9 || exit 1
	echo "$1,$(echo "$times" | tr ' ' ,)" >>"$csv"
}

preempter() {
	pgrep -P "$daemon" -f -- --preempter
}

give_up() { # WHY
	cp "$scratch/sbeetd.log" "$out/"
	say "$1, see $out/sbeetd.log: $(grep warning "$scratch/sbeetd.log" | grep -v missed | tail -n 3)"
	exit 1
}

await_preempter() {
	within 30 preempter >/dev/null || give_up "nobody preempts"
}

# I: what the second program of this pair is.
kind_of() {
	if [ -n "$turn" ] && [ "$1" -gt 0 ]; then
		echo preempted
	else
		echo urgent
	fi
}

start_sbeetd() {
	start_daemon --policy steer ${turn:+--turn "$turn" --log-level debug}
}

# sbeetd is about to end.
count_turns() {
	told=$((told + $(grep -c "changed turns" "$scratch/sbeetd.log")))
}

await_turns() {
	within 60 grep -q "changed turns" "$scratch/sbeetd.log" || give_up "nobody takes turns"
}

start_pairs() {
	i=0
	while [ $i -lt "${PAIRS:-3}" ]; do
		rm -f "$scratch/urgent-$i.out" "$scratch/preempted-$i.out"
		if [ "$(kind_of $i)" = urgent ]; then
			start "urgent-$i" "--class realtime --period 10ms --deadline 10ms" -- period_us=10000 kernels=1 \
				memory="$memory"
		else
			start "urgent-$i" "--class best-effort" -- kernels=8 memory="$memory"
		fi
		start "preempted-$i" "--class best-effort" -- kernels=8 memory="$memory"
		i=$((i + 1))
	done
}

# Deaths without sbeet.
bare_deaths() {
	touch "$go"
	i=0
	while [ $i -lt $((rounds_done < 15 ? rounds_done : 15)) ]; do
		for kind in preempted urgent; do
			plain "$here/bin/segments" go="$go" rounds="$rounds" kernels=8 memory="$memory" \
				>"$scratch/$kind-bare.out" 2>"$scratch/$kind-bare.err" &
		done
		for kind in preempted urgent; do
			pid_of "$kind-bare" >/dev/null
		done
		sleep 0.05
		for kind in preempted urgent; do
			kill_at_random bare "$(pid_of "$kind-bare")" "$memory"
			rm "$scratch/$kind-bare.out"
		done
		i=$((i + 1))
	done
	rm "$go"
}

start_killer() { # COUNTERS...
	rm -f "$scratch/ask" "$scratch/answer"
	mkfifo "$scratch/ask" "$scratch/answer"
	plain "$here/bin/kills" "$@" <"$scratch/ask" >"$scratch/answer" &
	killer=$!
	exec 8>"$scratch/ask" 9<"$scratch/answer"
}

stop_killer() {
	echo "0 0 0" >&8
	wait $killer || failed=1
}

# I: a death of each kind. In every other round sbeetd is stopped while programs die.
one_round() {
	await_preempter
	kill_at_random helper "$(preempter)" 0
	kill_at_random sbeetd "$daemon" 0
	wait "$daemon" 2>/dev/null
	count_turns
	start_sbeetd
	await_preempter
	# Turns begin once it is known who is busy. In the first round until sbeetd has told of them.
	case $turn,$rounds_done in
	,*) sleep 0.05 ;;
	*,0) await_turns ;;
	*) sleep 0.4 ;;
	esac
	while_stopped=
	if [ $((rounds_done % 2)) -eq 1 ]; then
		while_stopped=-stopped
		kill -STOP "$daemon"
	fi
	kill_at_random "preempted$while_stopped" "$(pid_of "preempted-$1")" "$memory"
	kill_at_random "$(kind_of "$1")$while_stopped" "$(pid_of "urgent-$1")" "$memory"
	kill -CONT "$daemon"
	rounds_done=$((rounds_done + 1))
}

# A line for each kind.
table() {
	echo "kind                kills  hangs | memory back, ms: min  p50    max"
	for kind in sbeetd helper urgent preempted urgent-stopped preempted-stopped bare; do
		grep "^$kind," "$csv" | sort -t , -k 3 -g | awk -F , -v kind="$kind" '
			{ m[NR] = $3; hangs += $2 < 0 || $3 < 0 || $4 < 0 }
			END {
				printf "%-18s %6d %6d |", kind, NR, hangs
				if (kind ~ /urgent|preempted|bare/) printf " %20.1f %6.1f %6.1f", m[1], m[int((NR + 1) / 2)], m[NR]
				print ""
			}'
	done
}

rounds=${ROUNDS:-$(plain "$here/bin/urgent" rounds 500)} || exit 1
start_sbeetd
neighbour="--class realtime --period 5ms --deadline 5ms --priority 2"
[ -z "$turn" ] || neighbour="--class best-effort"
start neighbour-urgent "$neighbour" -- period_us=5000 kernels=1 \
	progress="$scratch/progress-urgent"
start neighbour-low "--class best-effort" -- kernels=8 progress="$scratch/progress-low"
pid_of neighbour-urgent >/dev/null
pid_of neighbour-low >/dev/null
start_killer "$scratch/progress-urgent" "$scratch/progress-low"
rounds_done=0
while [ $rounds_done -lt "$wanted" ] && [ $(($(date +%s) - began)) -lt "${BUDGET_S:-120}" ]; do
	start_pairs
	i=0
	while [ $i -lt "${PAIRS:-3}" ]; do
		pid_of "urgent-$i" >/dev/null
		pid_of "preempted-$i" >/dev/null
		i=$((i + 1))
	done
	while [ $i -gt 0 ]; do # the first one's urgent program last
		i=$((i - 1))
		one_round $i
	done
done
stop_killer
rm "$go"
neighbours_have_ended() { [ "$(cat "$scratch"/neighbour-*.out | wc -l)" -eq 4 ]; }
within 10 neighbours_have_ended
wrong=0
for name in neighbour-urgent neighbour-low; do
	[ "$(wc -l <"$scratch/$name.out")" -eq 2 ] || {
		wrong=$((wrong + 1))
		say "$name: $(tail -n 3 "$scratch/$name.err")"
	}
done
count_turns
stop_daemon
start_killer
bare_deaths
stop_killer
table | tee -a "$out/kills.txt"
say "neighbours with wrong results: $wrong of 2; their jobs: $(tail -qn 1 "$scratch"/neighbour-*.out | cut -d ' ' -f 1 | tr '\n' ' ')"
[ -z "$turn" ] || say "turns were told of $told times"
say "$((($(date +%s) - began))) s"
[ $failed -eq 0 ] && [ $wrong -eq 0 ] && ! grep -q -- -1 "$csv"
