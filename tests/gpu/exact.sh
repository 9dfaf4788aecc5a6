#!/bin/sh
# Results under many preemptions, without MPS, in the folder that bundle.sh made: sample programs, a CUDA
# graph and programs of Python's frameworks run under policy steer while an urgent program has a job of
# 1.5 ms every 2.5 ms, for which they are preempted all the time. Samples compare their results with the CPU's;
# what frameworks say of theirs is compared with a run without sbeet. The table is also on $OUT/exact.txt.
#
# usage: exact.sh [PREEMPTIONS]		ends after so many (100000), or after BUDGET_S (85)
#
# FRAMEWORKS: programs of frameworks/ (those of the list below that are installed); SAMPLES: others.
# URGENT_ROUNDS: of arithmetic in the urgent kernel; measured if not given.
# TURN: how long turns are, such as 20ms: the endless ones and all others that are always busy take turns, and it
# ends after so many turns instead, for where one has the GPU short time slices may do. Without it there are none.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
began=$(date +%s)
wanted=${1:-100000}
until=$((began + ${BUDGET_S:-85}))
page=$scratch/page
go=$scratch/go
table=$out/exact.txt
turn=${TURN:-}
counted=${turn:+turns}
counted=${counted:-preemptions}
samples=${SAMPLES:-$(ls "$here"/apps/* | grep -v stubborn) $here/bin/graph}
frameworks=
for program in ${FRAMEWORKS-pytorch torch-threads triton-add cupy-raw jax-jit torch-networks:resnet torch-networks:transformer}; do
	case $program in
	pytorch | torch-*) module=torch ;;
	*) module=${program%%-*} ;;
	esac
	python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$module'))" &&
		frameworks="$frameworks $program"
done
: >"$table"
: >"$scratch/runs"

say() {
	echo "$*" | tee -a "$table"
}

key() { # KEY: of the GPU
	tool "$ctl" status --json=short | tr ',{' '\n\n' | sed -n "s/^\"$1\":\([0-9]*\).*/\1/p" | head -n 1
}

goes_on() {
	[ "$(date +%s)" -lt $until ] && [ ! -e "$scratch/enough" ]
}

# PROGRAM VERDICT
note() {
	echo "$1 $2" >>"$scratch/runs"
}

# HOW PROGRAM: what it says of its results, to $scratch/PROGRAM.HOW.
run_framework() {
	file=$scratch/$(echo "$2" | tr : -).$1
	how=plain
	[ "$1" = bare ] || how="managed --task $(echo "$2" | tr : -) --"
	args=
	case $2 in *:*) args=${2#*:} ;; esac
	# shellcheck disable=SC2086 # several words
	$how python3 "$here/frameworks/${2%%:*}.py" $args >"$file.out" 2>"$file.err" || echo "exit code $?" >>"$file.out"
	grep -E '^report |^exit code' "$file.out" >"$file"
}

# PROGRAM: once without sbeet, while others are preempted, then under it.
framework() {
	bare=$scratch/$(echo "$1" | tr : -).bare
	run_framework bare "$1"
	run_framework preempted "$1"
	if [ -s "$bare" ] && cmp -s "$bare" "${bare%bare}preempted"; then
		note "$1" equal
	else
		note "$1" DIFFERENT
	fi
}

# NUMBER: all samples, from the number-th on.
samples_loop() {
	n=0
	while goes_on; do
		for app in $samples; do
			n=$((n + 1))
			[ $n -ge "$1" ] && goes_on || continue
			name=$(basename "$app")
			if managed --task "$name" -- "$app" --frames "${FRAMES:-200}" --json >"$scratch/$name.$1.out" 2>&1 &&
				grep -q '"ok":true' "$scratch/$name.$1.out"; then
				note "$name" equal
			else
				note "$name" DIFFERENT
				cp "$scratch/$name.$1.out" "$out/different-$name-$n.txt"
			fi
		done
	done
}

rounds=${URGENT_ROUNDS:-$(plain "$here/bin/urgent" rounds 1500)} || exit 1
start_daemon --policy steer --log-level debug ${turn:+--turn "$turn"}
touch "$go"
waiting=
endless=
for n in 1 2; do
	managed --task "endless-$n" --job marks -- "$here/bin/segments" go="$go" kernels=16 rounds="$rounds" \
		>"$scratch/endless-$n.out" 2>&1 &
	endless="$endless $!"
done
for program in $frameworks; do
	framework "$program" &
	waiting="$waiting $!"
done
for n in 1 6; do
	samples_loop $n &
	waiting="$waiting $!"
done
# Ends of itself when nobody wants it any more: a window at a time.
while goes_on; do
	managed --task urgent --class realtime --period 2500us --deadline 2500us -- "$here/bin/urgent" jobs "$page" 0 \
		"$rounds" 2500 "${WINDOW_S:-10}" >>"$scratch/urgent.out" 2>&1 || say "urgent FAILED: $(tail -n 2 "$scratch/urgent.out")"
	[ "$(key "$counted")" -lt "$wanted" ] || touch "$scratch/enough"
done
touch "$scratch/enough"
for pid in $waiting; do
	wait "$pid"
done
rm "$go"
for pid in $endless; do
	if wait "$pid"; then note endless equal; else note endless DIFFERENT; fi
done
say "program                          runs  different"
sort "$scratch/runs" | awk '{ n[$1]++; bad[$1] += $2 != "equal" }
	END { for (p in n) printf "%-30s %6d %10d\n", p, n[p], bad[p] }' | sort | tee -a "$table"
tool "$ctl" status --json=short >"$out/exact-status.json"
say "$(key preemptions) preemptions, min, mean, max us: $(for k in min_ns mean_ns ns; do echo $(($(key preempt_$k) / 1000)); done | tr '\n' ' ')"
[ -z "$turn" ] || say "$(key turns) turns of $turn"
say "$(($(date +%s) - began)) s"
stop_daemon
grep "preempted .* refused" "$scratch/sbeetd.log" | tail -n 1 | tee -a "$table"
[ -z "$turn" ] || grep -q "^[1-9][0-9]* turns" "$table" || say "turns FAILED: there were none"
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps -czf "$out/exact.tar.gz" .
! grep -q DIFFERENT "$scratch/runs" && ! grep -q FAILED "$table"
