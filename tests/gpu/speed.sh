#!/bin/sh
# Runs on a machine with a GPU, MPS, Python and PyTorch, in the folder that bundle.sh made: what the shim
# costs ResNet-50 inference, two programs on halves of the GPU against each alone on the same half and
# against MPS alone, and how soon jobs start and SMs come back, by the daemon's times.
#
# What the shim costs is measured within one process (frameworks/cost.py). All other programs are started once and
# run in turns of a fraction of a second (frameworks/turns.py): a machine's speed changes by more than what is
# measured. On $OUT/speed.txt (stdout, too); each step's time and the traces in speed.tar.gz.
#
# PARTS: which of grant (sbeetd's own part), cost (what the shim costs), pairs (halves of the GPU), latency (how
# soon jobs start, by traces) and start (job-start.sh); all. COST_S (20), ROUNDS_PAIRS, TRACE_S: how long; the
# defaults take a few minutes. PROCESSES_COST (8): where a process happens to lie counts.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
cost_s=${COST_S:-20}
processes_cost=${PROCESSES_COST:-8}
rounds_pairs=${ROUNDS_PAIRS:-10}
trace_s=${TRACE_S:-4}
parts=" ${PARTS:-grant cost pairs latency start} "
programs=

# PART: whether it is to be run.
wanted() {
	case $parts in
	*" $1 "*) return 0 ;;
	esac
	return 1
}
for part in $parts; do
	case $part in
	grant | cost | pairs | latency | start) ;;
	*) echo "speed.sh: there is no part '$part'" >&2; exit 2 ;;
	esac
done

say() {
	echo "$*" | tee -a "$out/speed.txt"
}

# NAME HOW MODE: started, and ready for turns when it has said "warm".
serve() {
	mkfifo "$scratch/$1.in" "$scratch/$1.out"
	programs="$programs $1"
	case $2 in
	bare) timeout 300 python3 "$here/frameworks/speed.py" "$3" serve \
		"$scratch/$1.in" "$scratch/$1.out" ;;
	shim) managed --log info --task "$1" -- python3 "$here/frameworks/speed.py" "$3" serve \
		"$scratch/$1.in" "$scratch/$1.out" ;;
	esac >"$scratch/$1.log" 2>&1 &
}

# All that were started are warm.
await() {
	for program in $programs; do
		within 100 grep -q '^warm$' "$scratch/$program.log" || {
			tail -n 5 "$scratch/$program.log"
			exit 1
		}
	done
}

turns() { # ROUNDS SECONDS FILE PHASE... -- COMPARISON...
	timeout 200 python3 "$here/frameworks/turns.py" "$scratch" "$@" | tee -a "$out/speed.txt"
}

quantiles() {
	sort -n | awk -v what="$1" '{ v[NR] = $1 } END {
		if (NR) printf "%s: n %d, p50 %.1f, p99 %.1f, max %.1f us\n", what, NR, v[int((NR + 1) / 2)],
			v[int((NR * 99 + 99) / 100)], v[NR] }' | tee -a "$out/speed.txt"
}

# LABEL: quantiles of what the trace of this part says. Waited: from a job's request to its grant.
# Handed on: from a job's end to the next grant, where a job asked before that end.
times_of() {
	tool "$ctl" trace export --format csv "$scratch/trace-$1" | tail -n +2 |
		sed 's/"[^"]*"/x/g' >"$scratch/jobs-$1.csv"
	sort -t, -k12,12n "$scratch/jobs-$1.csv" | awk -F, '$12 != "" && $13 != "" {
			late = 0
			for (i = n; i > n - 4 && i > 0; i--) {
				if ($11 < end[i] && $12 >= end[i]) { late = 1; print "handed", ($12 - end[i]) / 1000; break }
			}
			if (!late) print "free", ($12 - $11) / 1000
			end[++n] = $13
		}' >"$scratch/times-$1"
	awk '$1 == "free" { print $2 }' "$scratch/times-$1" | quantiles "$1: from request to grant"
	awk '$1 == "handed" { print $2 }' "$scratch/times-$1" |
		quantiles "$1: from a job's last operation to the next one's grant"
}

cpu_ticks() {
	awk '{ print $14 + $15 }' "/proc/$daemon/stat"
}

# SPIN: jobs of one program, then of two in turns on the whole GPU, with that setting.
latency() {
	start_daemon --policy fcfs --sharing mps --spin "$1"
	for who in alone both; do
		record_trace "$scratch/trace-$who-$1"
		sleep 0.3
		ticks=$(cpu_ticks)
		echo "$trace_s" >&5
		[ $who = alone ] || echo "$trace_s" >&7
		read -r line <&6
		[ $who = alone ] || read -r line <&8
		say "spin $1, $who: sbeetd took $(($(cpu_ticks) - ticks)) hundredths of a second in $trace_s s"
		stop_trace
		times_of "$who-$1"
	done
	stop_daemon
}

: >"$out/speed.txt"
say "$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader)"
start_mps

# The daemon's own part, with nothing of a GPU in it.
if wanted grant; then
	for spin in 200us 50ms; do
		SBEETD="$here/bin/sbeetd" tool timeout 60 "$here/bin/bench-grant" 2000 200 --spin $spin |
			sed "s/^/spin $spin: /" | tee -a "$out/speed.txt"
	done
fi

# What the shim costs a program that has the GPU for itself.
cost() {
	process=0
	on=
	[ "$(nproc)" -lt 8 ] || on="taskset -c 4,5"
	while [ $process -lt "$processes_cost" ]; do
		process=$((process + 1))
		# shellcheck disable=SC2086 # several words
		managed --task cost --require -- $on python3 "$here/frameworks/cost.py" measure "$cost_s" \
			"$here/lib/libbypass.so" >>"$scratch/cost.json" || exit 1
	done
	python3 "$here/frameworks/cost.py" summary <"$scratch/cost.json" | tee -a "$out/speed.txt"
}

# On halves: alone, in pairs, and beside what takes one thing only.
pairs() {
	tool "$ctl" policy even
	for mode in infer train copy multiply cache launch; do
		serve $mode shim $mode
	done
	serve copy2 shim copy
	serve multiply2 shim multiply
	for mode in infer train copy multiply; do
		serve mps-$mode bare $mode
	done
	await
	turns "$rounds_pairs" 0.35 "$scratch/pairs.json" infer=infer train=train copy=copy multiply=multiply \
		pair=infer+train cm=copy+multiply cc=copy+copy2 mm=multiply+multiply2 \
		tc=train+copy tm=train+multiply tk=train+cache tl=train+launch \
		mps=mps-infer+mps-train mpscm=mps-copy+mps-multiply -- \
		infer@pair/infer@infer train@pair/train@train copy@cm/copy@copy multiply@cm/multiply@multiply \
		copy@cc/copy@copy multiply@mm/multiply@multiply train@tm/train@train train@tl/train@train \
		train@tk/train@train train@tc/train@train mps-infer@mps/infer@infer mps-train@mps/train@train \
		mps-copy@mpscm/copy@copy mps-multiply@mpscm/multiply@multiply
}

if wanted cost || wanted pairs; then
	start_daemon --policy "${POLICY:-steer}" --sharing mps
	! wanted cost || cost
	! wanted pairs || pairs
	tool "$ctl" status >"$out/status.txt"
	stop_daemon
	grep -h "could not be confined\|does not fit" "$scratch"/*.log | sort | uniq -c | tee -a "$out/speed.txt"
fi

# How soon jobs start, with a new daemon for each setting: the programs go on, and meet it.
if wanted latency; then
	rm -f "$scratch"/*.in "$scratch"/*.out
	programs=
	start_daemon --policy fcfs --sharing mps
	serve infer shim infer
	serve train shim train
	await
	exec 5>"$scratch/infer.in" 6<"$scratch/infer.out" 7>"$scratch/train.in" 8<"$scratch/train.out"
	read -r line <&6
	read -r line <&8
	stop_daemon
	for spin in 0s 200us 50ms; do
		latency $spin
	done
	exec 5>&- 6<&- 7>&- 8<&-
fi
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps --exclude='*.in' --exclude='*.out' \
	-czf "$out/speed.tar.gz" .
stop_mps
! wanted start || OUT="$out" sh "$here/job-start.sh" | tee -a "$out/speed.txt"
