#!/bin/sh
# The second forms of functions that libsbeet.so stands in for are known with the version of CUDA that they came with.
# usage: test-lookup-versions.sh SHIM-FOLDER [CUDATYPEDEFS.H]
set -eu

lookup=$1/lookup.c
hooks=$(sed -n 's/^[A-Z_]*(\(cu[A-Za-z0-9_]*\),.*/\1/p' "$1/hooks.def")
listed=$(sed -n 's/^	{"\(cu[A-Za-z0-9_]*\)", \([0-9]*\)},$/\1:\2/p' "$lookup")
failed=
n=0

# NAME CUDATYPEDEFS.H: the version of its newest form
newest() {
	sed -n "s/^.*PFN_$1_v\([0-9]*\))(.*/\1/p" "$2" | sort -n | tail -n 1
}

[ -n "$hooks" ] && [ -n "$listed" ] || { echo "FAILED: hooks.def or lookup.c is not understood"; exit 1; }
for second in $(echo "$hooks" | grep '_v2$'); do
	echo "$hooks" | grep -qx "${second%_v2}" || continue
	n=$((n + 1))
	since=$(echo "$listed" | sed -n "s/^$second:\(.*\)/\1/p")
	if [ -z "$since" ]; then
		echo "FAILED: $second is not in $lookup"
		failed=yes
	elif [ -n "${2-}" ] && [ "$(newest "${second%_v2}" "$2")" != "$since" ]; then
		echo "FAILED: $second is not of CUDA $since"
		failed=yes
	fi
done
[ "$n" -gt 10 ] || { echo "FAILED: too few second forms were found"; exit 1; }
! echo "$hooks" | grep '_v[3-9]$' || { echo "FAILED: a third form, which lookup.c does not know"; exit 1; }
[ -z "$failed" ]
