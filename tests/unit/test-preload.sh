#!/bin/sh
# libsbeet.so can't hurt a program that it is preloaded into: it needs no library but the C library's own, no
# symbol that is newer than glibc 2.28 (2018), takes nothing from the program, and shows it only what it stands in
# for.
# usage: test-preload.sh LIBSBEET
set -eu

library=$1
failed=

fail() {
	echo "FAILED: $*"
	failed=yes
}

command -v objdump >/dev/null || { echo "no objdump here"; exit 77; }

for needed in $(objdump -p "$library" | awk '$1 == "NEEDED" { print $2 }'); do
	case $needed in
	libc.so.6 | libpthread.so.0 | libdl.so.2 | ld-linux*.so.*) ;;
	*) fail "it needs $needed: link that statically, or do without it" ;;
	esac
done
if objdump -p "$library" | grep TEXTREL; then
	fail "its code is relocated when it is loaded: something in it is not built for shared libraries"
fi

# Lines of "NAME VERSION", by objdump's columns: address, flags, section, size, version, name.
symbols() { # SECTION-PATTERN
	objdump -T "$library" | sed -n 's/^[0-9a-f]\{16\} .\{7\} //p' | awk -v section="$1" '
		$1 ~ section { gsub(/[()]/, "", $3); print $4, $3 }'
}
[ "$(symbols UND | wc -l)" -gt 20 ] || fail "objdump -T is not understood"

for symbol in $(symbols UND | awk '
		$1 ~ /^(_ITM_(de)?registerTMCloneTable|__gmon_start__)$/ { next }
		$2 !~ /^GLIBC_2\.[0-9.]+$/ { print $1; next }
		{ split($2, version, "."); if (version[2] > 28) print $1 "@" $2 }'); do
	case $symbol in
	*@*) fail "$symbol is newer than glibc 2.28: shim/old-glibc.c says what to do" ;;
	*) fail "$symbol comes from the program, or from nowhere" ;;
	esac
done

for symbol in $(symbols '^\.' | cut -d ' ' -f 1); do
	case $symbol in
	dlsym | dlvsym | dlopen | dlmopen | ioctl | sbeet_choose_gpu | sbeet_mark | InitializeInjectionNvtx2) ;;
	*) fail "it shows $symbol: see shim/shim.map" ;;
	esac
done
[ -z "$failed" ]
