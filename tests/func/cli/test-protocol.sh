#!/bin/sh
# test-protocol.sh SBEET-PROTOCOL.7 SBEET.PROTO CONTROL.PROTO STATE.PROTO: the page names every message,
# field, enumeration and value that the files define, and none that they don't.
set -eu

page=$1
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# "shim Hello version", or "shim ErrorCode ERROR_CODE_NONE"; of what has nothing in it "shim Status"
awk '
FNR == 1 { file = FILENAME; sub(/.*\//, "", file); where = file == "sbeet.proto" ? "shim" : file == "control.proto" ? "control" : "restart" }
{ sub(/\/\/.*/, "") }
/^}/ { name = "" }
$1 == "message" || $1 == "enum" { name = $2; print where, name; next }
/=/ && /;/ { sub(/ *= *[0-9]+;.*/, ""); if (name != "" && NF > 0) { print where, name, $NF } }
' "$@" | sort >"$scratch/defined"

awk '
/^\.Sh / { where = /SHIM.SOCK/ ? "shim" : /CONTROL.SOCK/ ? "control" : /PLANNED RESTART/ ? "restart" : ""; next }
where == "" { next }
/^\.Ss / { name = $2; sub(/^\\&/, "", name); print where, name; next }
/^\.It (Fa|Dv) / { print where, name, $3 }
' "$page" | sort >"$scratch/documented"

[ "$(wc -l <"$scratch/defined")" -gt 300 ] || { echo "the files define next to nothing?"; exit 1; }
if ! diff "$scratch/defined" "$scratch/documented" >"$scratch/difference"; then
	echo "$page and the files differ (<: only in the files, >: only in the page):"
	grep '^[<>]' "$scratch/difference"
	exit 1
fi
