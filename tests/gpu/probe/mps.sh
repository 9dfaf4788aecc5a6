#!/bin/sh
# Runs the probes that need MPS, on a machine with a GPU, nvcc and gcc, PyTorch for `leave`, and the folder of
# ../bundle.sh for `terms`. They start an MPS of their own and end it.
#
# usage: mps.sh FOLDER channels | copies | copy-parts | copy-back | holds | cap | carveout | leave | terms BUNDLE COLUMN... [-- U:SET...]
#	FOLDER: what they build and write
set -eu

here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
folder=$(cd "$1" && pwd)
part=$2
shift 2
PATH=$PATH:/usr/local/cuda/bin:/usr/local/nvidia/bin
cuda=$(dirname "$(dirname "$(command -v nvcc)")")
export PROBE_PAGE="$folder/page"

begin_mps() {
	export CUDA_MPS_PIPE_DIRECTORY="$folder/mps" CUDA_MPS_LOG_DIRECTORY="$folder/mps-log"
	mkdir -p "$CUDA_MPS_PIPE_DIRECTORY" "$CUDA_MPS_LOG_DIRECTORY"
	nvidia-cuda-mps-control -d
	trap 'echo quit | nvidia-cuda-mps-control >/dev/null; rm -f "$PROBE_PAGE"' EXIT
}

preloaded() { # NAME
	[ -f "$folder/$1.so" ] || gcc -std=gnu17 -D_GNU_SOURCE -O2 -shared -fPIC -I"$cuda/include" -o "$folder/$1.so" \
		"$here/$1.c"
}

program() { # NAME
	[ -f "$folder/$1" ] || nvcc -O2 -arch=sm_90 -o "$folder/$1" "$here/$1.cu" -lcuda
}

# BULK-PIECE HELD: an urgent copy of 2 MiB by the engine and by SMs, then one of 16 MiB, beside it.
beside() {
	for urgent in "2097152 0" "2097152 1" "16777216 0"; do
		"$folder/copies" bulk "$1" "$2" 1.7 &
		sleep 0.6
		# shellcheck disable=SC2086 # two words
		"$folder/copies" urgent $urgent 2500 0.9
		wait $!
	done
}

case $part in
channels)
	program copies
	for n in 8 9 32; do "$folder/copies" channels $n; done
	begin_mps
	echo "-- with MPS"
	for n in 8 9 32; do "$folder/copies" channels $n; done
	echo "-- with MPS and CUDA_DEVICE_MAX_CONNECTIONS=32"
	for n in 8 9 32; do CUDA_DEVICE_MAX_CONNECTIONS=32 "$folder/copies" channels $n; done
	;;
carveout)
	program carveout
	"$folder/carveout"
	begin_mps
	# A and B as the probe says: KiB, carve-out.
	for c in "0 -1 0 -1" "0 -1 48 -1" "48 -1 0 -1" "0 100 48 100" "48 100 0 100"; do
		# shellcheck disable=SC2086 # four words
		set -- $c
		"$folder/carveout" a "$1" "$2" 4 &
		sleep 0.7
		echo "MPS, A $1 KiB, carve-out $2; B $3 KiB, carve-out $4: $("$folder/carveout" b "$3" "$4")"
		wait $!
	done
	;;
copies)
	program copies
	begin_mps
	for urgent in "2097152 0" "2097152 1" "16777216 0"; do
		# shellcheck disable=SC2086 # two words
		"$folder/copies" urgent $urgent 2500 0.5
	done
	for bulk in "0 0" "1048576 0" "262144 1" "1048576 1" "4194304 1"; do
		echo "-- beside copies of 64 MiB, pieces of ${bulk% *}, held ${bulk#* }"
		# shellcheck disable=SC2086 # two words
		beside $bulk
	done
	;;
copy-parts)
	[ -f "$folder/copy-parts" ] || gcc -O2 -I"$cuda/include" -o "$folder/copy-parts" "$here/copy-parts.c" \
		-L"$cuda/lib64/stubs" -lcuda -lpthread
	begin_mps
	"$folder/copy-parts" 1000 1500
	"$folder/copy-parts" back 1000
	for piece in 16 4 1; do
		echo "-- beside 16 MiB back in pieces of $piece"
		"$folder/copy-parts" load 6 $piece &
		sleep 1.5
		"$folder/copy-parts" back 1500
		wait $!
	done
	;;
copy-back)
	program copy-back
	begin_mps
	echo "-- alone"
	"$folder/copy-back" jobs 200
	"$folder/copy-back" events 300
	for what in back to spin; do
		echo "-- beside $what"
		"$folder/copy-back" load $what &
		sleep 1
		"$folder/copy-back" jobs 150
		"$folder/copy-back" events 300
		kill $!
		wait $! || true
	done
	;;
holds)
	for name in holds copy-parts; do
		[ -f "$folder/$name" ] || gcc -O2 -I"$cuda/include" -o "$folder/$name" "$here/$name.c" \
			-L"$cuda/lib64/stubs" -lcuda -lpthread
	done
	program cap
	begin_mps
	echo "-- alone"
	"$folder/holds" gpu 500
	for piece in 16 4; do
		echo "-- beside three programs that copy 16 MiB back in pieces of $piece"
		for n in 1 2 3; do "$folder/copy-parts" load 6 $piece & done
		sleep 1.5
		"$folder/holds" gpu 500
		wait %1 %2 %3
	done
	for level in 0 -5; do
		echo "-- beside kernels of the whole GPU at level $level"
		"$folder/cap" busy $level all 6 &
		sleep 1.5
		"$folder/holds" gpu 500
		wait $!
	done
	echo "-- threads without a pause, as programs with held copies have them"
	for n in 1 6 12 "$(nproc)" "$(($(nproc) * 2))"; do "$folder/holds" host 3 "$n"; done
	;;
cap)
	program cap
	begin_mps
	# PERCENT LEVEL-OF-BUSY SET-OF-BUSY PERCENT LEVEL SET BLOCKS
	while read -r percent level set urgent; do
		echo "busy: $percent %, level $level, on $set SMs; urgent: % level SMs blocks: $urgent"
		if [ "$set" != none ]; then
			CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$percent "$folder/cap" busy "$level" "$set" 1.9 &
			sleep 0.7
		fi
		# shellcheck disable=SC2086 # several words
		set -- $urgent
		CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=$1 "$folder/cap" urgent "$2" "$3" 0.9 "$4"
		wait
		echo
	done <<-ROWS
		100 0 none 100 0 all 1024
		100 0 none 50 0 all 512
		100 0 all 100 -5 all 1024
		50 0 all 50 0 all 512
		50 0 all 50 -1 all 512
		50 0 all 50 -5 all 512
		50 0 all 100 0 all 1024
		50 0 all 100 -5 all 1024
		50 0 all 100 0 all 64
		50 0 all 100 -5 all 64
		100 0 68 100 0 all 1024
		100 0 68 100 -5 all 1024
		100 0 68 100 0 all 64
		100 0 68 100 -5 all 64
		100 0 68 100 0 64 512
		100 0 68 100 -5 64 512
	ROWS
	;;
leave)
	program urgent
	preloaded leave
	begin_mps
	printf 'alone-whole 0 0 0 0\nalone-set 0 1 0 0\n' | "$folder/urgent" 0.8 10000
	for load in products train; do
		rm -f "$PROBE_PAGE"
		LD_PRELOAD="$folder/leave.so" timeout 90 python3 "$here/load.py" "$folder/leave.so" $load \
			>"$folder/load.out" &
		until grep -q ready "$folder/load.out"; do
			kill -0 $! || exit 1
			sleep 0.1
		done
		echo "-- beside $load, $(cat "$folder/load.out")"
		timeout 60 "$folder/urgent" "${SECONDS_EACH:-2}" 10000 <<-ROWS
			same-level 0 0 0 0
			level -5 0 0 0
			level-set -5 1 0 0
			level-5ms -5 0 0 5000
			level-1ms -5 0 0 1000
			level-0.2ms -5 0 0 200
			leave -5 1 1 0
			leave-5ms -5 1 1 5000
			leave-1ms -5 1 1 1000
			leave-0.2ms -5 1 1 200
			kept-out -5 1 2 0
		ROWS
		wait $!
	done
	;;
terms)
	bundle=$1
	shift
	preloaded terms
	cp "$here/../evaluation/measured.txt" "$folder/"
	begin_mps
	python3 "$here/terms.py" "$bundle" "$folder" "$@"
	;;
esac
