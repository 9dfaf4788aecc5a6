/*
 * test-ptx-ptxas.c: the assembler accepts every twin module: those of the sample programs' kernels
 * and of the files in tests/ptx, for the oldest, a middle and the newest architecture. And the same
 * kernels as they are loaded for dependent launches.
 *
 * Arguments: PTX files. SBEET_PTXAS names the assembler; without it the test is skipped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shim/ptx/ptx.h"
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

static int assemble(const char *ptxas, unsigned arch, const char *path) {
	char option[32];
	int status;
	pid_t pid;

	snprintf(option, sizeof(option), "-arch=sm_%u", arch);
	pid = fork();
	if (pid == 0) {
		execl(ptxas, ptxas, option, path, "-o", "/dev/null", (char *)NULL);
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
		if (archs[i] >= sm && assemble(ptxas, archs[i], scratch) < 0) {
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

static int check_wait_first(const char *ptxas, const char *path, const char *scratch,
			    const char *text, size_t size) {
	char error[200] = "", *ret;
	int failed, r = wait_first_text(&ret, text, size, error, sizeof(error));

	if (r < 0) {
		printf("%s: does not wait first: %s\n", path, error);
		return r != -ENOTSUP;
	}
	write_file(scratch, ret, strlen(ret));
	failed = assemble_all(ptxas, path, scratch, target_of(ret, strlen(ret)));
	free(ret);
	return failed;
}

static int check(const char *ptxas, const char *path, const char *scratch) {
	size_t size;
	char *text = read_file(path, &size);
	int failed = check_twins(ptxas, path, scratch, text, size) +
		     check_wait_first(ptxas, path, scratch, text, size);

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
