#!/bin/sh
# after-install.sh PREFIX LIBDIR DATADIR: makes what was installed known to this machine, if root installed it here:
# the library, the account, the folders in /etc, the units, the catalog of messages. Enables and starts nothing. Says
# what remains to be done where LD_PRELOAD=libsbeet.so or Python's `import sbeet` does not find its file.
#
# `meson install` runs it unless DESTDIR is set; packages do the same in their own way.
set -u
PATH=$PATH:/usr/sbin:/sbin

make_known() { # PREFIX
	ldconfig
	if command -v systemd-sysusers >/dev/null; then
		systemd-sysusers "$1/lib/sysusers.d/sbeet.conf"
	elif ! getent passwd sbeet >/dev/null; then # as in a container
		useradd --system --user-group --no-create-home --home-dir / --shell /usr/sbin/nologin sbeet ||
			echo "sbeet: the service needs a user and a group 'sbeet'" >&2
	fi
	if command -v systemd-tmpfiles >/dev/null; then
		systemd-tmpfiles --create "$1/lib/tmpfiles.d/sbeet.conf"
	fi
	if [ -d /run/systemd/system ]; then
		systemctl daemon-reload
		journalctl --update-catalog 2>/dev/null
	fi
}

[ "$(id -u)" != 0 ] || make_known "$1"
if ! ldconfig -p | grep -q 'libsbeet\.so '; then
	echo "sbeet: the dynamic linker does not look in $2: use LD_PRELOAD=$2/libsbeet.so, or as root" >&2
	echo "    echo $2 >/etc/ld.so.conf.d/sbeet.conf && ldconfig" >&2
fi
if command -v python3 >/dev/null && ! (cd / && python3 -B -c 'import sbeet' 2>/dev/null); then
	echo "sbeet: $(command -v python3) does not find the module sbeet; in a virtual environment" >&2
	echo "    pip install $3/sbeet/*.whl" >&2
fi
exit 0
