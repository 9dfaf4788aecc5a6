#!/bin/sh
# test-man.sh SBEETCTL SBEETD SBEETCTL.1 SBEETD.8 SBEETD.CONF.5 [PAGE...]: man pages are clean, and those of the two
# programs know every verb, option and policy that their --help has.
set -eu

sbeetctl=$1
sbeetd=$2
shift 2
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
		# Of long names of tests nobody can make even lines; groff 1.23 says so.
		said=$(groff -ww -mandoc -Tascii "$page" 2>&1 >/dev/null | grep -v 'cannot adjust line' || true)
		[ -z "$said" ] || { echo "groff: $said"; failed=1; }
	fi
done

# Some verbs are two words.
verbs=$("$sbeetctl" help | sed -n '/^Verbs:/,/^$/s/^  \([a-z][a-z -]*[a-z]\)  .*/\1/p')
[ -n "$verbs" ]
while read -r verb; do
	# verbs of one noun may share its section
	grep -q "^\.Ss $verb\$" "$1" ||
		{ grep -q "^\.Ss ${verb% *}\$" "$1" && grep -q "^\.Cm $verb\$" "$1"; } ||
		{ echo "$1: no section for the verb '$verb'"; failed=1; }
	# shellcheck disable=SC2086
	options=$("$sbeetctl" help $verb | sed -nE 's/^  (-., |    )--([a-z-]*).*/\2/p')
	for option in $options; do
		grep -q "Fl -$option\( \|\$\)" "$1" ||
			{ echo "$1: option '--$option' of '$verb' is missing"; failed=1; }
	done
done <<END
$verbs
END

options=$("$sbeetd" --help | sed -nE 's/^  (-., |    )--([a-z-]*).*/\2/p')
policies=$("$sbeetd" --help | sed -nE 's/^ {27}([a-z-]+): .*/\1/p')
[ -n "$options" ] && [ -n "$policies" ]
for option in $options; do
	# what the file takes too may be described there alone
	grep -q "^\.It.* Fl Fl $option\( \|\$\)" "$2" || grep -q "^\.It Cm $option\$" "$3" ||
		{ echo "$2, $3: option '--$option' is missing"; failed=1; }
done
for policy in $policies; do
	grep -q "^\.It.* Cm $policy\( \|\$\)" "$2" ||
		{ echo "$2: policy '$policy' is missing"; failed=1; }
done
[ $failed = 0 ] || exit 1
exit $checked
