/*
 * wait-first.c: rewrites the machine code of sm_90 in a program, in place, so that its kernels wait
 * first of all (shim/ptx/sass.h): for probes of what the shim does when a program loads it. The
 * code must not be compressed (nvcc -no-compress).
 *
 * usage: wait-first PROGRAM
 *
 * Says which stay as they are. Exit 1 if all do.
 */
#include <string.h>
#include <sys/stat.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/sass.h"
#include "tests/gpu/probe/probe.h"

/* The end of the machine code at @at, which is not at the begin of the file; 0: none there. */
static size_t code_end(const uint8_t *file, size_t size, size_t at) {
	struct elf elf;
	const char *why;
	size_t n;

	if (at + 64 > size || !elf_is(file + at, size - at)) {
		return 0;
	}
	n = elf_extent(file + at);
	return n > 0 && n <= size - at && elf_init(&elf, file + at, n, &why) == 0 &&
			       elf.machine == ELF_MACHINE_CUDA
		       ? at + n
		       : 0;
}

int main(int argc, char **argv) {
	int fd = argc == 2 ? open(argv[1], O_RDWR | O_CLOEXEC) : -1, found = 0;
	uint8_t *file, *rewritten;
	struct stat st;
	char error[200];
	size_t end;

	if (fd < 0 || fstat(fd, &st) < 0) {
		perror("wait-first");
		return 1;
	}
	file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED) {
		perror("wait-first");
		return 1;
	}
	for (size_t at = 8; at < (size_t)st.st_size; at += 8) {
		end = code_end(file, (size_t)st.st_size, at);
		if (end == 0) {
			continue;
		}
		if (sass_wait_first(&rewritten, file + at, end - at, error, sizeof(error)) < 0) {
			printf("%s: byte %zu stays: %s\n", argv[1], at, error);
			continue;
		}
		memcpy(file + at, rewritten, end - at);
		free(rewritten);
		found++;
	}
	printf("%s: %d rewritten\n", argv[1], found);
	return found == 0;
}
