#!/bin/sh
# Runs on a machine with a GPU, in the folder that bundle.sh made: a folder of programs of others'
# making, NVIDIA's CUDA samples say, each as it is, under the shim, and beside another one; under MPS
# with policy even (green contexts), then without it (exclusive; smid). A program is right if it ends
# with exit code 0 and, where the bare run is the same twice, says the same as there.
#
# usage: samples.sh FOLDER [PROGRAM...]
#
# SBEET_DEPENDENT=1: under the shim kernels are launched as dependent ones; without it code is left alone.
#
# Times and rates differ from run to run, and so does the order in which blocks print: numbers with a
# unit or a point are left out of what is compared, and lines are sorted. What fails under MPS without
# sbeet too is not ours. The table is $OUT/samples.md (stdout too), what they wrote in $OUT/samples.tar.gz. Exit 0 if
# all are right.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"

folder=$(cd "$1" && pwd)
shift
programs=${*:-$(cd "$folder" && ls)}
work=$scratch/work
mkdir -p "$work"

# What a program said, without what may differ.
words() {
	sed -E 's/[0-9]+\.[0-9]+(e[-+]?[0-9]+)?//g; s/[0-9]+ *(ms|us|ns|s|sec|GB|MB|GFlop|Gflop|KB)//g; s/0x[0-9a-f]+//g; s/[0-9]{4,}//g' "$1" | sort
}

# HOW PROGRAM COMMAND...: in a folder of its own, as some write files.
keep() {
	file=$scratch/$1-$2
	mkdir -p "$work/$1-$2"
	shift 2
	(cd "$work/$(basename "$file")" && "$@" </dev/null) >"$file.out" 2>"$file.err"
	echo $? >"$file.code"
}

under_shim() { # HOW PROGRAM
	keep "$1" "$2" managed --task "$1-$2" -- "$folder/$2"
}

# All at HOW, alone; then each beside its successor.
all_managed() { # HOW
	for program in $programs; do
		under_shim "$1" "$program"
	done
	set -- "$1" $programs
	how=$1
	shift
	while [ $# -ge 2 ]; do
		under_shim "$how-pair" "$1" &
		first=$!
		under_shim "$how-pair" "$2"
		wait "$first"
		shift 2
	done
	[ $# -eq 0 ] || under_shim "$how-pair" "$1"
}

verdict() { # HOW PROGRAM
	code=$(cat "$scratch/$1-$2.code" 2>/dev/null)
	case $1 in
	mps*) if [ "$code" != 0 ] && [ "$code" = "$(cat "$scratch/plain-$2.code")" ]; then
		echo "as without sbeet"
		return
	fi ;;
	esac
	[ "$code" = "$(cat "$scratch/bare-$2.code")" ] || {
		echo "EXIT CODE ${code:-none}"
		return
	}
	words "$scratch/bare-$2.out" >"$scratch/a"
	words "$scratch/again-$2.out" >"$scratch/b"
	words "$scratch/$1-$2.out" >"$scratch/c"
	if ! cmp -s "$scratch/a" "$scratch/b"; then
		echo "exit code $code"
	elif cmp -s "$scratch/a" "$scratch/c"; then
		echo equal
	else
		echo "OTHER OUTPUT"
	fi
}

# HOW PROGRAM: by which means its jobs were held, of all SMs or a part.
enforcement() {
	awk -F, -v task="\"$1-$2\"" '$3 == task { gsub(/"[^"]*"/, "x"); n[$9]++ }
		END { for (e in n) if (e != "") printf "%s%s %d", c++ ? ", " : "", e, n[e] }' "$scratch/jobs-${1%-pair}.csv"
}

began=$(date +%s)
n=0
for how in bare again; do
	for program in $programs; do
		keep $how "$program" timeout 60 "$folder/$program" &
		n=$((n + 1))
		[ $((n % 4)) -ne 0 ] || wait
	done
	wait
done
echo "bare: $(($(date +%s) - began)) s" >&2
for how in mps exclusive; do
	if [ $how = mps ]; then
		start_mps
		[ "$mps" = true ] || [ -n "${SIMGPU:-}" ] || continue
	fi
	if [ $how = mps ]; then
		for program in $programs; do
			keep plain "$program" timeout 60 "$folder/$program"
		done
	fi
	start_daemon --policy even --sharing $how
	record_trace "$scratch/trace-$how"
	all_managed $how
	stop_trace
	tool "$ctl" trace export --format csv "$scratch/trace-$how" >"$scratch/jobs-$how.csv"
	stop_daemon
	stop_mps
	echo "$how: $(($(date +%s) - began)) s" >&2
done

{
	echo "| sample | bare | MPS, without sbeet | MPS, alone | MPS, pair | exclusive, alone | exclusive, pair | jobs under MPS | jobs exclusive |"
	echo "|---|---|---|---|---|---|---|---|---|"
	for program in $programs; do
		echo "| $program | $(cat "$scratch/bare-$program.code") | $(verdict plain "$program" | tr A-Z a-z) |" \
			"$(verdict mps "$program") | $(verdict mps-pair "$program") |" \
			"$(verdict exclusive "$program") | $(verdict exclusive-pair "$program") |" \
			"$(enforcement mps "$program") | $(enforcement exclusive "$program") |"
	done
} | tee "$out/samples.md"
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps --exclude=work -czf "$out/samples.tar.gz" .
! grep -qE "EXIT CODE|OTHER OUTPUT" "$out/samples.md"
