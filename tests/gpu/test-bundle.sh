# test-bundle.sh: the folder of bundle.sh, made of the build, for scripts that run on the simulated GPU.
# Sourced by test-*.sh with $1, this folder. Sets $folder and $OUT.
set -eu
. "$1/../lib.sh"

gpu=$(cd "$1" && pwd)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir -p "$folder/bin" "$folder/lib" "$folder/sim"
for program in daemon/sbeetd client/sbeetctl tests/gpu/urgent tests/gpu/khz tests/gpu/segments tests/gpu/kills tests/gpu/periodic; do
	ln -s "$SBEET_BUILD/$program" "$folder/bin/"
done
ln -s "$SBEET_BUILD/shim/libsbeet.so" "$folder/lib/"
cp "$gpu"/*.sh "$gpu"/*.awk "$folder/"
export SIMGPU_DIR="$folder/sim" LD_LIBRARY_PATH="$SBEET_BUILD/tests/simgpu"
export PRELOAD="$SBEET_BUILD/tests/simgpu/libsimgpu-ioctl.so" OUT="$folder/out"
logs="$folder/log $OUT/*.txt"
