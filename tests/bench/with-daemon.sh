# with-daemon.sh SBEETD LIBSBEET PROGRAM...: runs PROGRAM under libsbeet.so and an sbeetd of its own
# with two GPUs that exist nowhere.
set -eu
sbeetd=$1 shim=$2
shift 2
SBEET_RUNTIME_DIR=$(mktemp -d)
export SBEET_RUNTIME_DIR
"$sbeetd" --gpus 80,40 --policy even --sharing exclusive --drain 1ms 2>"$SBEET_RUNTIME_DIR/log" &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null || :; rm -rf "$SBEET_RUNTIME_DIR"' EXIT
until [ -S "$SBEET_RUNTIME_DIR/shim.sock" ]; do
	kill -0 $daemon || { cat "$SBEET_RUNTIME_DIR/log" >&2; exit 1; }
	sleep 0.05
done
LD_PRELOAD=$shim SBEET_REQUIRE=1 "$@"
