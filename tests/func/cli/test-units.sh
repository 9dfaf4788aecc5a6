#!/bin/sh
# test-units.sh SYSTEMD_BUILD_DIR SYSTEMD_SOURCE_DIR SBEETD: systemd takes the units, and finds them safe.
set -eu

command -v systemd-analyze >/dev/null || exit 77
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

for instance in system user; do
	mkdir "$dir/$instance"
	cp "$2/$instance"/*.socket "$dir/$instance"
	# verify wants the program to exist; it is not installed yet
	sed "s|^\(Exec[A-Za-z]*\)=.*|\1=$3|" "$1/$instance-sbeetd.service" \
		>"$dir/$instance/sbeetd.service"
done

# Comes with the driver.
sed "s|^ExecStart=.*|ExecStart=$3|" "$2/system/sbeet-mps.service" >"$dir/system/sbeet-mps.service"

said=$(systemd-analyze verify --man=no "$dir"/system/*.service "$dir"/system/*.socket 2>&1)
if [ -n "$said" ]; then
	echo "verify: $said"
	exit 1
fi
# Needs a user's runtime directory for %t.
said=$(XDG_RUNTIME_DIR=$dir systemd-analyze verify --user --man=no "$dir"/user/*.service \
	"$dir"/user/*.socket 2>&1) || true
if printf '%s' "$said" | grep -E '(sbeetd.*(Unknown|Failed|Invalid|ignor))'; then
	exit 1
fi

# In tenths: 10 is 1.0.
if ! systemd-analyze security --offline=true --threshold=10 --no-pager \
	"$dir/system/sbeetd.service" >"$dir/said"; then
	cat "$dir/said"
	exit 1
fi
tail -n 1 "$dir/said"
# NVIDIA's: it must be root, start servers as others and look into processes: 2.5.
if ! systemd-analyze security --offline=true --threshold=25 --no-pager \
	"$dir/system/sbeet-mps.service" >"$dir/said"; then
	cat "$dir/said"
	exit 1
fi
tail -n 1 "$dir/said"
