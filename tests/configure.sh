#!/bin/sh
# Configures a build folder, whatever state it is in: new, configured before (maybe with other
# options), or left half-way by something that was interrupted.
#
# usage: configure.sh FOLDER [MESON-OPTIONS...]
set -eu

folder=$1
shift
if [ -f "$folder/build.ninja" ]; then
	exec meson setup --reconfigure "$folder" "$@"
fi
rm -rf "$folder/meson-private" "$folder/meson-info"
exec meson setup "$folder" "$@"
