#!/bin/sh
# evaluate.sh on the simulated GPU: it measures profiles, runs task sets without a manager and under two
# policies, keeps a line each, measures nothing twice, and draws. Programs that lookahead plans with make
# the parts of the GPU before their first job. What the numbers are is not looked at.
#
# usage: test-evaluate.sh SOURCE; $SBEET_BUILD is the build folder.
set -eu

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/gpu/periodic tests/gpu/evaluate; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
ldd "$SBEET_BUILD/shim/libsbeet.so" | awk '/libprotobuf-c/ { print $3 }' | while read -r library; do
	ln -s "$library" "$folder/lib/"
done
cp "$gpu/evaluate.sh" "$gpu/manage.sh" "$folder/"
export SIMGPU=32:mps SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu"
export GPU_NAME="Simulated GPU with 32 SMs" SCALE=0 SMS="8 16 32" STEP=8 TASKS=3 WINDOW_S=1 RUNS=2
export UTILISATIONS=0.4 SETS=1 POWER_MS=100 BUDGET_S=100

run() { # COLUMNS
	COLUMNS=$1 sh "$folder/evaluate.sh" "$folder/out" >"$folder/log" 2>&1 || {
		cat "$folder/log" "$folder/out/errors.txt"
		exit 1
	}
}

rows() {
	awk -F, 'NR > 1 && NF == 13 && $6 > 0 && $7 > 0' "$folder/out/evaluate.csv" | wc -l
}

run "mps fcfs"
[ "$(rows)" -eq 2 ] || { cat "$folder/out/evaluate.csv"; exit 1; }
cp "$folder/out/evaluate.csv" "$folder/before"
SBEET_LOG=debug run "mps fcfs lookahead"
grep -q "Made [0-9]* parts of the GPU ahead" "$folder/out/errors.txt" || { head -n 50 "$folder/out/errors.txt"; exit 1; }
[ "$(rows)" -eq 3 ] || { cat "$folder/out/evaluate.csv"; exit 1; }
head -n 3 "$folder/out/evaluate.csv" | cmp - "$folder/before"
grep -q lookahead "$folder/out/evaluate.svg"
tail -n 1 "$folder/out/evaluate.svg" | grep -q "</svg>"
