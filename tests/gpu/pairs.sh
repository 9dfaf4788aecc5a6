#!/bin/sh
# Runs on a machine with a GPU and MPS (or on the simulated one), in the folder that bundle.sh made: what the
# GPU draws while two kernels run side by side on a split of its SMs, against what Eq. 2.2 predicts from
# each of them alone (Figure 2.6).
#
# usage: pairs.sh FOLDER     has watts.txt, what was measured; if it is there, nothing is measured again
#
# All pairs of WORKS (stream matmul hotspot histogram compute, see periodic.c) on all SPLITS (A:B, in whole
# groups of SMs, of which an H200 may have 14 of 8; those left over are idle), MS (1000) each. SCALE (100; 0:
# tiny kernels). IDLE_W (0): P^idle(M). LIMIT_W (the GPU's power limit): it slows down rather than draw more.
# The table is also in FOLDER/pairs.txt. Exit 1 if something could not be measured.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/manage.sh"
mkdir -p "$1" || exit 2
folder=$(cd "$1" && pwd)
works=${WORKS:-stream matmul hotspot histogram compute}
splits=${SPLITS:-32:32 32:64 64:32 32:80 48:64 80:32}
limit=${LIMIT_W:-$(nvidia-smi --query-gpu=power.limit --format=csv,noheader,nounits 2>/dev/null | head -n 1)}

cells() {
	echo "$works" | tr ' ' '\n' | while read -r work; do
		echo "$splits" | tr -s ' :' '\n' | sort -nu | sed "s/^/$work:/"
	done
	echo static # when the GPU is warm
	rest=$works
	for one in $works; do
		rest=${rest#"$one"}
		rest=${rest# }
		for two in $rest; do
			for split in $splits; do
				echo "$one:${split%:*}+$two:${split#*:}"
			done
		done
	done
}

failed=0
if [ ! -s "$folder/watts.txt" ]; then
	start_mps
	# shellcheck disable=SC2046 # many cells
	"$here/bin/periodic" power "${SCALE:-100}" "${MS:-1000}" $(cells) >"$scratch/watts.txt" || failed=1
	cp "$scratch/watts.txt" "$folder/"
fi
awk -v idle="${IDLE_W:-0}" -v limit="${limit:-0}" '
	$2 <= 0 { print $1 " was not measured"; exit failed = 1 }
	{ watts[$1] = $2 }
	!/\+/ { next }
	!n++ { printf "%-28s %-9s %10s %11s %8s\n", "PAIR", "SPLIT", "MEASURED W", "PREDICTED W", "ERROR %" }
	{
		split($1, part, "+")
		split(part[1], one, ":")
		split(part[2], two, ":")
		# (2.2), with P_d(m) = P(m) - P_s - P_idle(M - m) of each alone
		by = watts[part[1]] + watts[part[2]] - watts["static"] - idle
		if (limit > 0 && by > limit) by = limit
		error = 100 * (by - $2) / $2
		printf "%-28s %-9s %10.1f %11.1f %+8.2f\n", one[1] " " two[1], one[2] ":" two[2], $2, by, error
		error = error < 0 ? -error : error
		sum += error
		if (error > most) most = error
	}
	END { if (!failed) printf "error of %d splits: mean %.2f %%, max %.2f %%\n", n, sum / n, most; exit failed }' \
	"$folder/watts.txt" >"$folder/pairs.txt" || failed=1
cat "$folder/pairs.txt"
exit $failed
