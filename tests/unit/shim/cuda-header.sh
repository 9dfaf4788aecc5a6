#!/bin/sh
# What shim/cuda/cuda.h says, as lines of C for a comparison with the toolkit's header:
#
# usage: cuda-header.sh table HEADER          its numbers, layouts and names, see cuda-header-table.c
#        cuda-header.sh declarations HEADER   its functions, see cuda-header-declarations.c
set -eu

case $1 in
table)
	sed -n 's/^\t\(CU[A-Za-z0-9_]*\) = .*/NUMBER(\1)/p
		s/^#define \(CU_[A-Z0-9_]*\)[[:space:]].*(.*/NUMBER(\1)/p
		s/^#define \(cu[A-Za-z0-9]*\)[[:space:]].*/NAME(\1)/p' "$2"
	awk '
		/^typedef (struct|union) .*\{$/ { inside = 1; next }
		/^\}/ && inside {
			inside = 0
			type = $2
			sub(/;/, "", type)
			print "SIZE(" type ")"
			for (i = 1; i <= n; i++) {
				print "MEMBER(" type ", " member[i] ")"
			}
			n = 0
		}
		/^\t[^\t].*;$/ && inside && !/[ _]pad\[/ {
			sub(/ __attribute__.*/, ";")
			sub(/;$/, "")
			count = split($0, part, ",")
			for (i = 1; i <= count; i++) {
				sub(/\[.*/, "", part[i])
				sub(/.*[ \t*}]/, "", part[i])
				member[++n] = part[i]
			}
		}' "$2"
	;;
declarations)
	awk '/^CUresult CUDAAPI/ { inside = 1 } inside { print } /;/ { inside = 0 }' "$2"
	;;
esac
