#!/bin/sh
# Asks what preemption of channel groups does on this GPU without MPS, and what graphs do.
# In the folder that build.sh made; PyTorch for network and graph-network.
#
# usage: preempt.sh [PART...]
set -u

cd "$(dirname "$0")" || exit 1
export PROBE_PAGE="/dev/shm/sbeet-probe-$$"
trap 'rm -f "$PROBE_PAGE"' EXIT

if pgrep -x nvidia-cuda-mps-control >/dev/null 2>&1; then
	echo "preempt.sh: MPS is running; stop it first (echo quit | nvidia-cuda-mps-control)" >&2
	exit 1
fi

[ $# -gt 0 ] || set -- ioctl calls slices gaps table levels descriptor graph network network-64 graph-network
for part; do
	echo "== $part"
	rm -f "$PROBE_PAGE"
	case $part in
	ioctl | calls) timeout 60 ./preempt-cost "$part" ;;
	slices | gaps) timeout 60 ./preempt-gaps "$part" ;;
	table | levels) timeout 90 ./owners "$part" ;;
	descriptor) timeout 60 ./descriptor 2 ;;
	graph) for what in levels sets cost; do timeout 30 ./graph-levels $what; done ;;
	network) timeout 180 python3 preempt-network.py 8 ;;
	network-64) SECONDS_CELL=2.7 timeout 120 python3 preempt-network.py 64 products train+products ;;
	graph-network) timeout 90 python3 graph-network.py ;;
	*) echo "preempt.sh: no part named $part" >&2 && exit 2 ;;
	esac || echo "-- $part ended with $?"
done
