#!/bin/sh
# sbeet.h compiles under strict standards of C and C++ without a warning, and alone.
# usage: header.sh FOLDER COMPILER...   FOLDER: of sbeet.h
folder=$1
shift
compile() { # COMPILER...
	printf '#include "sbeet.h"\nint main(void) { sbeet_job_begin(0); sbeet_job_end(); return 0; }\n' |
		"$@" -x "$language" -std="$standard" -pedantic -Wall -Wextra -Werror -I"$folder" -fsyntax-only -
}
status=0
for language in c c++; do
	case $language in
	c) standards='c99 c17' ;;
	c++)
		echo 'int main() { return 0; }' | "$@" -x c++ -fsyntax-only - 2>/dev/null || continue # none is installed
		standards='c++11 c++17'
		;;
	esac
	for standard in $standards; do
		compile "$@" || { echo "sbeet.h: not $standard" && status=1; }
	done
done
exit $status
