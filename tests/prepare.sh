#!/bin/sh
# Sees to it that everything is there that building and testing sbeet needs. As root on a machine
# with apt-get it installs what is missing (Debian 12, Ubuntu 24.04 and later); otherwise it says
# what is missing and the command that installs it, and exits 1.
#
# usage: prepare.sh [-q | --wishes | --fuzzer | --arm64]
#	-q		says nothing when nothing is missing
#	--wishes	also what single tests need and are skipped without, as far as it can be had
#	--fuzzer	exits 0 if clang can build fuzz targets, else 1; installs nothing
#	--arm64		what tests/arm64.sh needs, as far as it can be had
set -eu

missing_what=
missing_packages=

miss() { # WHAT PACKAGE
	missing_what="$missing_what  $1
"
	case " $missing_packages " in
	*" $2 "*) ;;
	*) missing_packages="$missing_packages $2" ;;
	esac
}

need_command() { # COMMAND PACKAGE
	command -v "$1" >/dev/null 2>&1 || miss "command $1" "$2"
}

need_library() { # PKG-CONFIG-NAME PACKAGE
	pkg-config --exists "$1" 2>/dev/null || miss "library $1" "$2"
}

look() {
	missing_what=
	missing_packages=
	need_command cc gcc
	echo '#include <stdio.h>' | cc -E - >/dev/null 2>&1 || miss "C library headers" libc6-dev
	need_command meson meson
	need_command ninja ninja-build
	need_command pkg-config pkg-config
	need_command protoc-c protobuf-c-compiler
	need_command groff groff
	need_command tmux tmux
	need_library libevent_core libevent-dev
	need_library libprotobuf-c libprotobuf-c-dev
	need_library libsystemd libsystemd-dev
	need_library inih libinih-dev
	need_library jansson libjansson-dev
	need_library libzstd libzstd-dev
	need_library liblz4 liblz4-dev
	need_library ncursesw libncurses-dev
	need_library cmocka libcmocka-dev
	missing_packages=${missing_packages# }
}

# libFuzzer comes in a package of its own, named after clang's version.
can_fuzz() {
	echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return 0; }' |
		clang -fsanitize=fuzzer,address,undefined -x c - -o /dev/null 2>/dev/null
}

# A browser for the timeline, a second shell for completion, another reader of man pages and what their
# examples use, a second compiler, tools that make packages and clean systems to try them on, Slurm. Tests
# that need what is not to be had (Ubuntu's chromium needs snap) say so and are skipped.
wish() {
	missing_packages=
	need_command clang clang
	install_wishes
	missing_packages=
	can_fuzz || ! command -v clang >/dev/null 2>&1 ||
		miss libFuzzer "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
	need_command chromium chromium
	need_command zsh zsh
	need_command mandoc mandoc
	need_command musl-gcc musl-tools
	need_command jq jq
	python3 -c 'import ensurepip' 2>/dev/null || miss "Python's environments" python3-venv
	need_command mmdebstrap mmdebstrap
	need_command g++ build-essential
	need_command dh debhelper
	need_command dh_python3 dh-python
	need_command lintian lintian
	install_wishes
	missing_packages=
	wish_slurm
	install_without_services
}

# Nothing of it may begin to run here: the test starts what it needs itself.
wish_slurm() {
	echo '#include <slurm/spank.h>' | cc -E - >/dev/null 2>&1 || miss "Slurm's headers" libslurm-dev
	for tool in munged:munge slurmctld:slurmctld slurmd:slurmd srun:slurm-client; do
		PATH=$PATH:/usr/sbin need_command "${tool%:*}" "${tool#*:}"
	done
}

install_without_services() {
	policy=/usr/sbin/policy-rc.d
	if [ -n "$missing_packages" ] && [ "$(id -u)" = 0 ] && [ ! -e $policy ]; then
		printf '#!/bin/sh\nexit 101\n' >$policy
		chmod 755 $policy
		install_wishes
		rm -f $policy
	else
		install_wishes
	fi
}

# What is in missing_packages, if it can be had.
install_wishes() {
	if [ -z "$missing_packages" ] || [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
		return
	fi
	export DEBIAN_FRONTEND=noninteractive
	timeout 60 apt-get update >/dev/null 2>&1 || true
	for package in $missing_packages; do
		if timeout 300 apt-get install -y --no-install-recommends "$package" >/dev/null 2>&1; then
			echo "Installed $package"
		else
			echo "No $package is to be had here: what needs it is skipped"
		fi
	done
}

if [ "${1:-}" = --fuzzer ]; then
	can_fuzz || exit 1
	exit 0
fi

if [ "${1:-}" = --arm64 ]; then
	need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
	[ -e /usr/aarch64-linux-gnu/include/stdio.h ] || miss "arm64's C library" libc6-dev-arm64-cross
	need_command qemu-aarch64 qemu-user
	need_command mmdebstrap mmdebstrap
	install_wishes
	exit 0
fi

look
if [ -z "$missing_packages" ]; then
	[ "${1:-}" = -q ] || echo "Nothing is missing."
	[ "${1:-}" != --wishes ] || wish
	exit 0
fi

install="apt-get install -y --no-install-recommends $missing_packages"
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null 2>&1; then
	{
		echo "These are missing:"
		printf %s "$missing_what"
		echo "On Debian and Ubuntu this installs them:"
		echo "  sudo $install"
	} >&2
	exit 1
fi

echo "Installing $missing_packages"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
# Package lists may be absent, as in a fresh container, or too old to install from.
if ! $install >"$log" 2>&1 && ! { apt-get update >>"$log" 2>&1 && $install >>"$log" 2>&1; }; then
	cat "$log" >&2
	echo "Installing failed; the command was: $install" >&2
	exit 1
fi

look
if [ -n "$missing_packages" ]; then
	{
		echo "Still missing after installing:"
		printf %s "$missing_what"
	} >&2
	exit 1
fi
[ "${1:-}" != --wishes ] || wish
