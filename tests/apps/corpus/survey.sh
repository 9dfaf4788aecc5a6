#!/bin/sh
# Counts the kernels of programs and libraries that can be confined, and the reasons why others can't.
#
# usage: survey.sh SBEETCTL FILE...
set -eu

sbeetctl=$1
shift
for file; do
	"$sbeetctl" ptx --json "$file" || true # entries that can't be read are said on stderr
done | jq -rs '
	def row(name): [length, (map(select(.confinable)) | length), name] | @tsv;
	(["KERNELS", "TWINS", "FILE"] | @tsv), (.[] | .file as $file | .kernels | row($file)),
	(map(.kernels[]) | row("(all)")), "",
	(["KERNELS", "WHY NOT"] | @tsv),
	(map(.kernels[] | select(.confinable | not)) | group_by(.reason) | sort_by(-length)[] |
		[length, .[0].reason] | @tsv)'
