#!/bin/sh
# Runs on a machine with a GPU, MPS and Python, in the folder that bundle.sh made: programs of PyTorch,
# Triton, CuPy and JAX as they are, then under the shim alone, then in pairs that run at the same time,
# each on its half of the GPU. Compares what they say of their results, and tells by which means their
# jobs were held. What is not installed is skipped. Then programs of Thrust and CUB, and of nvcc's options, by guests.sh.
#
# usage: frameworks.sh [PROGRAM...]     (all of the list below)
#
# POLICY (even). FLIP=yes: the pairs' max-sms changes all the time; under `steer` their sets follow at once.
# SBEET_DEPENDENT=1: under the shim kernels are launched as dependent ones; without it code is left alone.
#
# The table for the README is $OUT/frameworks.md (stdout, too). Exit 0 if all results are equal.
#
# Only libsbeet.so is put before Python's own libraries: a framework must not meet ours of another version.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"

# PROGRAM: what is started, with arguments; its name in files has none.
programs="torch-networks:resnet torch-networks:transformer pytorch torch-threads torch-processes
	triton-add cupy-raw jax-jit"
pairs="torch-networks:resnet,torch-networks:transformer torch-threads,torch-processes
	pytorch,jax-jit cupy-raw,triton-add"

module_of() {
	case $1 in
	pytorch | torch-*) echo torch ;;
	*) echo "${1%%-*}" ;;
	esac
}

command_of() { # PROGRAM
	printf 'python3 %s/frameworks/%s.py' "$here" "${1%%:*}"
	case $1 in *:*) printf ' %s' "${1#*:}" ;; esac
}

# HOW PROGRAM COMMAND...: runs it, its output in a file; what went wrong is told.
keep() {
	file=$scratch/$1-$(echo "$2" | tr : -)
	label="$2, $1"
	shift 2
	"$@" >"$file.out" 2>"$file.err"
	code=$?
	if [ $code -ne 0 ]; then
		echo "$label: exit code $code" >>"$file.out"
		tail -n 5 "$file.err" >&2
	fi
}

bare() {
	# shellcheck disable=SC2046 # several words
	keep bare "$1" timeout 170 $(command_of "$1")
}

under_shim() { # HOW PROGRAM
	# shellcheck disable=SC2046
	keep "$1" "$2" managed --task "$1-$(echo "$2" | tr : -)" -- $(command_of "$2")
}

reports() { # HOW PROGRAM: what it said of its results
	sed 2>/dev/null -n 's/^report //p; /exit code/p' "$scratch/$1-$(echo "$2" | tr : -).out"
}

# HOW PROGRAM LINE: "equal", or "close": the digest differs, the sum's first five digits don't.
verdict() {
	[ -e "$scratch/$1-$(echo "$2" | tr : -).out" ] || {
		echo "not run"
		return
	}
	got=$(reports "$1" "$2" | sed -n "$3p")
	want=$(reports bare "$2" | sed -n "$3p")
	if [ "$got" = "$want" ]; then
		echo equal
	elif [ -n "$got" ] && [ "${got##* }" != - ] && [ "${got##* }" = "${want##* }" ]; then
		echo "close (the sum is)"
	else
		echo DIFFERENT
	fi
}

# HOW PROGRAM: by which means its jobs held their SMs, and how many did.
enforcement() {
	task=$1-$(echo "$2" | tr : -)
	awk -F, -v task="\"$task\"" '$3 == task { gsub(/"[^"]*"/, "x"); n[$9]++ }
		END { for (e in n) if (e != "") printf "%s%s %d", c++ ? ", " : "", e, n[e] }' "$scratch/jobs.csv"
}

found=
for program in ${*:-$programs}; do
	module=$(module_of "$program")
	if python3 -c "import importlib.util as u, sys; sys.exit(not u.find_spec('$module'))"; then
		found="$found $program"
	else
		echo "$program: skipped, Python has no $module"
	fi
done
has() { case " $found " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

start_mps
began=$(date +%s)
waiting=
for program in $found; do
	bare "$program" &
	waiting="$waiting $!"
done
for pid in $waiting; do
	wait "$pid"
done
echo "bare: $(($(date +%s) - began)) s" >&2
start_daemon --policy "${POLICY:-even}" --sharing mps
record_trace "$scratch/trace"
for program in $found; do
	under_shim alone "$program"
done
echo "alone: $(($(date +%s) - began)) s" >&2
for pair in $pairs; do
	a=${pair%,*}
	b=${pair#*,}
	if ! has "$a" || ! has "$b"; then
		continue
	fi
	under_shim pair "$a" &
	first=$!
	under_shim pair "$b" &
	second=$!
	flips=0
	while [ "${FLIP:-no}" = yes ] && { kill -0 $first || kill -0 $second; } 2>/dev/null; do
		flip_sets "pair-$(echo "$a" | tr : -)" "pair-$(echo "$b" | tr : -)"
		flips=$((flips + 1))
	done
	[ $flips -eq 0 ] || echo "$pair: other sets $((flips * 2)) times" >&2
	wait "$first"
	wait "$second"
done
echo "pairs: $(($(date +%s) - began)) s" >&2
stop_trace
tool "$ctl" trace export --format csv "$scratch/trace" >"$scratch/jobs.csv"
stop_daemon

{
	echo "| program | version | alone | in a pair | jobs by enforcement, alone | in a pair |"
	echo "|---|---|---|---|---|---|"
	for program in $found; do
		version=$(python3 -c "import importlib.metadata as m
names = m.packages_distributions()['$(module_of "$program")']
print(names[0], m.version(names[0]))")
		line=0
		reports bare "$program" | while read -r text; do
			line=$((line + 1))
			text=${text% *}
			echo "| ${program%%-*}: ${text% *} | $version | $(verdict alone "$program" $line) |" \
				"$(verdict pair "$program" $line) | $(enforcement alone "$program") |" \
				"$(enforcement pair "$program") |"
		done
		for how in bare alone pair; do
			! reports $how "$program" | grep "exit code"
		done | sed 's/^/DIFFERENT: /'
	done
} | tee "$out/frameworks.md"
tar -C "$scratch" --exclude=run --exclude=lib --exclude=mps -czf "$out/frameworks.tar.gz" .
stop_mps # guests.sh has its own
SUBJECTS="cub options options-code" OUT="$out" sh "$here/guests.sh" "${POLICY:-even}-mps" || exit 1
! grep -q DIFFERENT "$out/frameworks.md"
