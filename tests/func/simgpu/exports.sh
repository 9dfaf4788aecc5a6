#!/bin/sh
# usage: exports.sh libcuda.so.1 driver.def: the library exports what the list says, no more, no less.
set -eu
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
nm -D --defined-only "$1" | awk '$2 == "T" { print $3 }' | sort >"$scratch/exported"
sed -n -e 's/^ENTRY([^,]*, \([^,]*\),.*/\1/p' -e 's/^THREAD(\(.*\))$/\1/p' "$2" | sort -u >"$scratch/listed"
[ -s "$scratch/listed" ]
diff "$scratch/listed" "$scratch/exported"
