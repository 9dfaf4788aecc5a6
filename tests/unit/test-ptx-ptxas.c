/*
 * test-ptx-ptxas.c: the assembler accepts every twin module: those of the sample programs' kernels
 * and of the files in tests/ptx, for the oldest, a middle and the newest architecture.
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

/* Return: how many assemblies failed. */
static int check(const char *ptxas, const char *path, const char *scratch) {
	char error[200] = "";
	struct transform *t = NULL;
	size_t size;
	char *text = read_file(path, &size);
	int failed = 0;
	FILE *f;

	if (transform_new(&t, text, size, error, sizeof(error)) < 0) {
		printf("%s: %s\n", path, error);
		free(text);
		return 1;
	}
	for (size_t i = 0; i < t->n_kernels; i++) {
		const struct twin_kernel *k = &t->kernels[i];

		printf("%s: %s: %s%s%s\n", path, k->name,
		       k->confinable ? "twin" : "no twin: ", k->reason ? k->reason : "",
		       k->uses_barriers ? ", votes" : "");
	}
	if (t->ptx) {
		f = fopen(scratch, "we");
		if (!f || fwrite(t->ptx, 1, t->ptx_size, f) != t->ptx_size || fclose(f) != 0) {
			perror(scratch);
			exit(1);
		}
		for (size_t i = 0; i < sizeof(archs) / sizeof(archs[0]); i++) {
			if (archs[i] >= target_of(text, size) &&
			    assemble(ptxas, archs[i], scratch) < 0) {
				printf("%s: not accepted for sm_%u\n", path, archs[i]);
				failed++;
			}
		}
	}
	transform_free(t);
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
