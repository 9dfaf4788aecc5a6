#!/bin/sh
# after-install.sh PREFIX: makes what was installed known to this machine, if root installed it here:
# the account, the folders in /etc, the units, the catalog of messages. Enables and starts nothing.
#
# `meson install` runs it unless DESTDIR is set; packages do the same in their own way.
set -u

[ "$(id -u)" = 0 ] || exit 0

if command -v systemd-sysusers >/dev/null; then
	systemd-sysusers "$1/lib/sysusers.d/sbeet.conf"
else
	echo "sbeet: no systemd-sysusers here: the service needs a user and a group 'sbeet'" >&2
fi
if command -v systemd-tmpfiles >/dev/null; then
	systemd-tmpfiles --create "$1/lib/tmpfiles.d/sbeet.conf"
fi
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	journalctl --update-catalog 2>/dev/null
fi
exit 0
