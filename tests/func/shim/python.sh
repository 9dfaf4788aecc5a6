#!/bin/sh
# python.sh PYTHON SOURCE WHEEL: `import sbeet` in virtual environments: after `pip install` of the module's
# folder, and of the wheel that the build makes. Neither needs the network or a compiler.
set -u
. "$(dirname "$0")/../../lib.sh"
python=$1
dir=$(mktemp -d)
logs=$dir/log
trap 'rm -rf "$dir"' EXIT
export PYTHONDONTWRITEBYTECODE=1 PIP_NO_INDEX=1 PIP_CONFIG_FILE=/dev/null PIP_NO_CACHE_DIR=1 CC=false
unset PYTHONPATH PIP_FIND_LINKS

# In Debian this is a package of its own; another Python may have it.
"$python" -c 'import ensurepip' 2>/dev/null || python=python3
"$python" -c 'import ensurepip' 2>/dev/null || {
	echo "Python makes no virtual environments here"
	exit 77
}
for what in "$2/shim/python" "$3"; do
	rm -rf "$dir/venv"
	"$python" -m venv "$dir/venv" >"$dir/log" 2>&1 || fail "python3 -m venv"
	cd /
	! "$dir/venv/bin/python" -c 'import sbeet' 2>/dev/null || fail "a new environment has it already"
	"$dir/venv/bin/pip" install "$what" >"$dir/log" 2>&1 || fail "pip install $what"
	"$dir/venv/bin/python" -c 'import sbeet; sbeet.job' 2>"$dir/log" || fail "import after pip install $what"
	"$dir/venv/bin/pip" check >"$dir/log" 2>&1 || fail "pip check"
	"$dir/venv/bin/pip" uninstall --yes sbeet >"$dir/log" 2>&1 || fail "pip uninstall"
	! "$dir/venv/bin/python" -c 'import sbeet' 2>/dev/null || fail "pip uninstall leaves it"
done
