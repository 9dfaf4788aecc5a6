/*
 * test-ptx-ptxas.c: the assembler accepts every twin module: those of the sample programs' kernels
 * and of the files in tests/ptx, for the oldest, a middle and the newest architecture. And the same
 * kernels as they are loaded for dependent launches, from PTX and from machine code, of which none
 * reads memory before it waits.
 *
 * Arguments: PTX files. SBEET_PTXAS names the assembler; without it the test is skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/ptx.h"
#include "shim/ptx/sass.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/wait-first.h"

#define TEXT_MAX (16u * 1024 * 1024)
#define SKIPPED	 77

static const unsigned archs[] = {75, 80, 86, 89, 90, 100, 120};

static char *read_file(const char *path, size_t *ret_size) {
	FILE *f = fopen(path, "re");
	char *s = malloc(TEXT_MAX);

	if (!f || !s) {
		perror(path);
		exit(1);
	}
	*ret_size = fread(s, 1, TEXT_MAX, f);
	fclose(f);
	return s;
}

static int assemble(const char *ptxas, unsigned arch, const char *path, const char *cubin) {
	char option[32];
	int status;
	pid_t pid;

	snprintf(option, sizeof(option), "-arch=sm_%u", arch);
	pid = fork();
	if (pid == 0) {
		execl(ptxas, ptxas, option, path, "-o", cubin, (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0) {
		perror("ptxas");
		exit(1);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static unsigned target_of(const char *text, size_t size) {
	struct ptx_module *m = NULL;
	unsigned sm;

	if (ptx_module_new(&m, text, size, NULL, 0) < 0) {
		return 0;
	}
	sm = m->target_sm;
	ptx_module_free(m);
	return sm;
}

static void write_file(const char *path, const char *text, size_t size) {
	FILE *f = fopen(path, "we");

	if (!f || fwrite(text, 1, size, f) != size || fclose(f) != 0) {
		perror(path);
		exit(1);
	}
}

/* For all architectures from @sm on. Return: how many assemblies failed. */
static int assemble_all(const char *ptxas, const char *path, const char *scratch, unsigned sm) {
	int failed = 0;

	for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
		if (archs[i] >= sm && assemble(ptxas, archs[i], scratch, "/dev/null") < 0) {
			printf("%s: not accepted for sm_%u\n", path, archs[i]);
			failed++;
		}
	}
	return failed;
}

static int check_twins(const char *ptxas, const char *path, const char *scratch, const char *text,
		       size_t size) {
	char error[200] = "";
	struct transform *t = NULL;
	int failed = 0;

	if (transform_new(&t, text, size, error, sizeof(error)) < 0) {
		printf("%s: %s\n", path, error);
		return 1;
	}
	for (size_t i = 0; i < t->n_kernels; i++) {
		const struct twin_kernel *k = &t->kernels[i];

		printf("%s: %s: %s%s%s\n", path, k->name,
		       k->confinable ? "twin" : "no twin: ", k->reason ? k->reason : "",
		       k->uses_barriers ? ", votes" : "");
	}
	if (t->ptx) {
		write_file(scratch, t->ptx, t->ptx_size);
		failed = assemble_all(ptxas, path, scratch, target_of(text, size));
	}
	transform_free(t);
	return failed;
}

/* Machine code of sm_90, as measured: instructions have 16 bytes, the first 12 bits say which. */
#define SASS_BYTES  16
#define SASS_WAIT   0x82e /* ACQBULK */
#define SASS_BRANCH 0x947
#define SASS_NOP    0x7918

/* Of memory that the program can write: by the low 9 bits. Those of constants have a bank: 0 holds
 * parameters, 4 what the loader writes. */
static bool reads_memory(uint64_t insn) {
	static const uint16_t reads[] = {0x160, 0x161, 0x163, 0x164, 0x166, 0x167, 0x180,
					 0x181, 0x1a5, 0x1a8, 0x1a9, 0x1af, 0x199, 0x19a};
	unsigned opcode = insn & 0x1ff, bank = insn >> 54 & 31;

	for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
		if (opcode == reads[i]) {
			return true;
		}
	}
	return (opcode == 0x182 || opcode == 0x0b9) && bank != 0 && bank != 4;
}

/* Where the branch at @at leads to; SIZE_MAX: it is none, or not taken always. See
 * shim/ptx/sass.c. */
static size_t branch_target(const uint8_t *code, size_t at) {
	uint64_t insn[2], units;

	memcpy(insn, code + at, sizeof(insn));
	if ((insn[0] & 0xffff) != (0x7000 | SASS_BRANCH)) {
		return SIZE_MAX;
	}
	units = (insn[1] << 30 | insn[0] >> 34) << 8 | (insn[0] >> 16 & 0xff);
	return at + SASS_BYTES + 4 * (uint64_t)((int64_t)(units << 8) >> 8); /* 56 bits */
}

/* Where the code goes on from its first instruction, if that is a branch. */
static size_t begin_of(const uint8_t *code) {
	size_t target = branch_target(code, 0);

	return target == SIZE_MAX ? 0 : target;
}

/* Whether the code of a kernel waits, and reads nothing before. */
static bool waits_first(const uint8_t *code, size_t size) {
	uint64_t insn;

	for (size_t i = begin_of(code); i + SASS_BYTES <= size; i += SASS_BYTES) {
		memcpy(&insn, code + i, sizeof(insn));
		if ((insn & 0xfff) == SASS_WAIT || reads_memory(insn)) {
			return (insn & 0xfff) == SASS_WAIT;
		}
	}
	return false;
}

/* The kernels of @m in machine code for sm_90. Return: how many do not wait first. */
static int check_machine_code(const struct ptx_module *m, const char *path, const uint8_t *bytes,
			      size_t size) {
	struct elf_section section;
	size_t seen = 0, kernels = 0;
	int failed = 0;
	const char *why;
	struct elf elf;

	if (elf_init(&elf, bytes, size, &why) < 0) {
		printf("%s: %s\n", path, why);
		exit(1);
	}
	for (size_t f = 0; f < m->n_funcs; f++) {
		kernels += m->funcs[f].is_entry && m->funcs[f].has_body;
		for (uint64_t i = 0; m->funcs[f].is_entry && i < elf.n_sections; i++) {
			if (elf_section(&elf, i, &section) < 0 ||
			    strncmp(section.name, ".text.", 6) != 0 ||
			    !ptx_name_is(m->funcs[f].name, section.name + 6)) {
				continue;
			}
			seen++;
			if (!waits_first(section.data, section.size)) {
				printf("%s: %s reads before it waits\n", path, section.name);
				failed++;
			}
		}
	}
	return failed + (seen != kernels);
}

static const struct ptx_func *find_kernel(const struct ptx_module *m, const char *name) {
	for (size_t i = 0; i < m->n_funcs; i++) {
		const struct ptx_func *f = &m->funcs[i];

		if (f->is_entry && f->has_body && ptx_name_is(f->name, name)) {
			return f;
		}
	}
	return NULL;
}

static bool is_nop(const uint8_t *code) {
	uint64_t insn;

	memcpy(&insn, code, sizeof(insn));
	return insn == SASS_NOP;
}

/*
 * Follows the code @now of a kernel from its entry, which was @before: a branch, the wait, what
 * stood at the entry, a branch behind that; three NOPs are gone. Puts @now back as it was.
 */
static bool follow_and_undo(uint8_t *now, const uint8_t *before, size_t size) {
	size_t room = branch_target(now, 0);
	uint64_t wait;

	if (room % SASS_BYTES || room > size || size - room < 3 * SASS_BYTES) {
		return false;
	}
	memcpy(&wait, now + room, sizeof(wait));
	if (wait != (0x7000 | SASS_WAIT) ||
	    memcmp(now + room + SASS_BYTES, before, SASS_BYTES) != 0 ||
	    branch_target(now, room + 2 * SASS_BYTES) != SASS_BYTES) {
		return false;
	}
	for (size_t at = room; at < room + 3 * SASS_BYTES; at += SASS_BYTES) {
		if (!is_nop(before + at)) {
			return false;
		}
	}
	memcpy(now, before, SASS_BYTES);
	memcpy(now + room, before + room, 3 * SASS_BYTES);
	return true;
}

/* Each kernel of @m, and that nothing else of the file changed, of which @now is the copy. Return:
 * what failed. */
static int check_rewritten(const struct ptx_module *m, const char *path, uint8_t *now,
			   const uint8_t *before, size_t size) {
	struct elf_section section;
	int failed = 0, kernels = 0;
	const char *why;
	struct elf elf;

	if (elf_init(&elf, before, size, &why) < 0) {
		printf("%s: %s\n", path, why);
		return 1;
	}
	for (uint64_t i = 0; i < elf.n_sections; i++) {
		const struct ptx_func *f = NULL;

		if (elf_section(&elf, i, &section) == 0 && !strncmp(section.name, ".text.", 6)) {
			f = find_kernel(m, section.name + 6);
		}
		if (!f) {
			continue;
		}
		kernels++;
		if (!follow_and_undo(now + (section.data - before), section.data, section.size)) {
			printf("%s: %s is not rewritten as it should\n", path, section.name);
			failed++;
		}
	}
	if (kernels == 0 || memcmp(now, before, size) != 0) {
		printf("%s: %s\n", path, kernels ? "more has changed" : "no kernels");
		failed++;
	}
	printf("%s: %d kernels of machine code\n", path, kernels);
	return failed;
}

/* The same of the machine code that ptxas makes of @text, whatever it reads. */
static int check_sass(const char *ptxas, const char *path, const char *scratch, const char *text,
		      size_t size) {
	struct ptx_module *m;
	char error[200] = "";
	uint8_t *cubin, *ret;
	int failed, r;

	if (target_of(text, size) > SASS_SM) {
		return 0;
	}
	write_file(scratch, text, size);
	if (ptx_module_new(&m, text, size, NULL, 0) < 0 ||
	    assemble(ptxas, SASS_SM, scratch, scratch) < 0) {
		printf("%s: not accepted\n", path);
		return 1;
	}
	cubin = (uint8_t *)read_file(scratch, &size);
	r = sass_wait_first(&ret, cubin, size, error, sizeof(error));
	if (r < 0) {
		printf("%s: its machine code stays: %s\n", path, error);
		failed = 1;
	} else {
		failed = check_machine_code(m, path, ret, size) +
			 check_rewritten(m, path, ret, cubin, size);
		free(ret);
	}
	free(cubin);
	ptx_module_free(m);
	return failed;
}

/* As the compiler would have written it for sm_90, which it did for an older one. */
static void make_newer(char *text) {
	char *version = strstr(text, ".version "), *target = strstr(text, ".target sm_");

	if (version && target && target_of(text, strlen(text)) < WAIT_FIRST_SM_MIN) {
		memcpy(version + strlen(".version "), "8.0", 3);
		memcpy(target + strlen(".target sm_"), "90", 2);
	}
}

static int check_wait_first(const char *ptxas, const char *path, const char *scratch, char *text,
			    size_t size) {
	char error[200] = "", *ret;
	struct ptx_module *m;
	char *cubin;
	int failed, r;

	make_newer(text);
	r = wait_first_text(&ret, text, size, error, sizeof(error));
	if (r < 0) {
		printf("%s: does not wait first: %s\n", path, error);
		return r != -ENOTSUP;
	}
	write_file(scratch, ret, strlen(ret));
	failed = assemble_all(ptxas, path, scratch, target_of(ret, strlen(ret)));
	if (failed == 0 && target_of(ret, strlen(ret)) == WAIT_FIRST_SM_MIN) {
		if (ptx_module_new(&m, ret, strlen(ret), NULL, 0) < 0 ||
		    assemble(ptxas, WAIT_FIRST_SM_MIN, scratch, scratch) < 0) {
			printf("%s: not accepted again\n", path);
			exit(1);
		}
		cubin = read_file(scratch, &size);
		failed = check_machine_code(m, path, (const uint8_t *)cubin, size);
		free(cubin);
		ptx_module_free(m);
	}
	free(ret);
	return failed;
}

static int check(const char *ptxas, const char *path, const char *scratch) {
	size_t size;
	char *text = read_file(path, &size);
	int failed = check_twins(ptxas, path, scratch, text, size) +
		     check_sass(ptxas, path, scratch, text, size) +
		     check_wait_first(ptxas, path, scratch, text, size); /* changes it */

	free(text);
	return failed;
}

int main(int argc, char **argv) {
	const char *ptxas = getenv("SBEET_PTXAS");
	char scratch[] = "/tmp/sbeet-twin-XXXXXX";
	int fd, failed = 0;

	if (!ptxas || access(ptxas, X_OK) < 0) {
		printf("skipped: no ptxas\n");
		return SKIPPED;
	}
	fd = mkstemp(scratch);
	if (fd < 0) {
		perror(scratch);
		return 1;
	}
	close(fd);
	for (int i = 1; i < argc; i++) {
		failed += check(ptxas, argv[i], scratch);
	}
	unlink(scratch);
	return failed ? 1 : 0;
}
