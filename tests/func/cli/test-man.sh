#!/bin/sh
# test-man.sh SBEETCTL SBEETCTL.1 [PAGE...]: man pages are clean, and sbeetctl(1) knows every option.
set -eu

sbeetctl=$1
shift
checked=77
failed=0

for page; do
	if command -v mandoc >/dev/null; then
		checked=0
		# the date and the references need no database
		mandoc -Tlint -W warning "$page" | grep -v 'outdated mandoc.db' && failed=1
	fi
	if command -v groff >/dev/null; then
		checked=0
		said=$(groff -ww -mandoc -Tascii "$page" 2>&1 >/dev/null)
		[ -z "$said" ] || { echo "groff: $said"; failed=1; }
	fi
done

for verb in $("$sbeetctl" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
	grep -q "^\.Ss $verb\$" "$1" || { echo "$1: no section for the verb '$verb'"; failed=1; }
	for option in $("$sbeetctl" help "$verb" | sed -nE 's/^  (-., |    )--([a-z-]*).*/\2/p'); do
		grep -q "Fl -$option\( \|\$\)" "$1" ||
			{ echo "$1: option '--$option' of '$verb' is missing"; failed=1; }
	done
done
[ $failed = 0 ] || exit 1
exit $checked
