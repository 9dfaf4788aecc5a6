/*
 * ptxas.c: see ptxas.h.
 *
 * The text goes to the assembler as a file in memory, by its name in /proc; the answer is read from
 * a pipe. Of `ptxas -v` these lines count, each about the kernel named last:
 *
 *	ptxas info    : Compiling entry function 'NAME' for 'sm_90'
 *	    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
 *	ptxas info    : Used 12 registers, used 1 barriers, 4096 bytes smem
 */
#include "client/ptx/ptxas.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/program.h"
#include "proto/units.h"

extern char **environ;

/* The number in front of @what in @line. Return: is there one? */
static bool number_before(const char *line, const char *what, unsigned *ret) {
	const char *at = strstr(line, what), *from = at;
	char text[16];
	int64_t n;

	while (at && from > line && from[-1] >= '0' && from[-1] <= '9') {
		from--;
	}
	if (!at || from == at || (size_t)(at - from) >= sizeof(text)) {
		return false;
	}
	memcpy(text, from, (size_t)(at - from));
	text[at - from] = '\0';
	if (units_parse_int(text, 0, INT32_MAX, &n) < 0) {
		return false;
	}
	*ret = (unsigned)n;
	return true;
}

static int add_kernel(struct ptxas *p, const char *name, size_t len) {
	struct ptxas_kernel *kernels = reallocarray(p->kernels, p->n + 1, sizeof(*kernels));

	if (!kernels) {
		return -ENOMEM;
	}
	p->kernels = kernels;
	kernels[p->n] = (struct ptxas_kernel){.name = strndup(name, len)};
	return kernels[p->n++].name ? 0 : -ENOMEM;
}

/* @error: the first complaint, if there was none before. */
static int read_line(struct ptxas *p, const char *line, char *error, size_t error_size) {
	static const char compiling[] = "Compiling entry function '";
	const char *name = strstr(line, compiling), *end;
	struct ptxas_kernel *k;

	if (name) {
		name += sizeof(compiling) - 1;
		end = strchr(name, '\'');
		return end ? add_kernel(p, name, (size_t)(end - name)) : 0;
	}
	if (!*error && (strstr(line, "error") || strstr(line, "fatal"))) {
		snprintf(error, error_size, "%.*s", (int)strcspn(line, "\n"), line);
	}
	if (p->n > 0) {
		k = &p->kernels[p->n - 1];
		number_before(line, " bytes spill stores", &k->spill_bytes);
		if (number_before(line, " registers", &k->registers)) {
			number_before(line, " bytes smem", &k->shared_bytes);
		}
	}
	return 0;
}

static int read_answer(struct ptxas *p, int fd, char *error, size_t error_size) {
	FILE *in = fdopen(fd, "r");
	char *line = NULL;
	size_t capacity = 0;
	int r = 0;

	if (!in) {
		close(fd);
		return -errno;
	}
	while (r == 0 && getline(&line, &capacity, in) >= 0) {
		r = read_line(p, line, error, error_size);
	}
	free(line);
	fclose(in);
	return r;
}

/* A file in memory with the text, under a number that the child gets too. */
static int text_file(const char *text, size_t size) {
	int fd = memfd_create("ptx", 0);

	while (fd >= 0 && size > 0) {
		ssize_t n = write(fd, text, size);

		if (n < 0 && errno != EINTR) {
			int r = -errno;

			close(fd);
			return r;
		}
		if (n > 0) {
			text += n;
			size -= (size_t)n;
		}
	}
	return fd < 0 ? -errno : fd;
}

/* Return: 0 with the reading end of its output; -errno. */
static int start(const char *program, int text, const char *target, pid_t *ret_pid, int *ret_fd) {
	char path[64], arch[32];
	const char *const argv[] = {"ptxas", "-v", arch, path, "-o", "/dev/null", NULL};
	posix_spawn_file_actions_t actions;
	int fds[2], r;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", text);
	snprintf(arch, sizeof(arch), "-arch=%s", target);
	if (pipe2(fds, O_CLOEXEC) < 0) {
		return -errno;
	}
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0) {
		r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDOUT_FILENO);
		if (r == 0) {
			r = posix_spawn_file_actions_adddup2(&actions, fds[1], STDERR_FILENO);
		}
		if (r == 0) {
			r = posix_spawn(ret_pid, program, &actions, NULL, (char *const *)argv,
					environ);
		}
		posix_spawn_file_actions_destroy(&actions);
	}
	close(fds[1]);
	if (r != 0) {
		close(fds[0]);
		return -r;
	}
	*ret_fd = fds[0];
	return 0;
}

/* Along PATH, then in the toolkit's folder. */
static int find_program(struct program *ret, char *toolkit, size_t toolkit_size) {
	const char *home = getenv("CUDA_HOME");
	int r = program_init(ret, "ptxas");

	snprintf(toolkit, toolkit_size, "%s/bin/ptxas", home && *home ? home : "/usr/local/cuda");
	return r == -ENOENT ? program_init(ret, toolkit) : r;
}

static int run(struct ptxas *p, const char *program, int text, const char *target, char *error,
	       size_t error_size) {
	char complaint[256] = "";
	int r, fd = -1, status;
	pid_t pid = -1;

	r = start(program, text, target, &pid, &fd);
	if (r < 0) {
		snprintf(error, error_size, "cannot run '%s': %s", program, strerror(-r));
		return r;
	}
	r = read_answer(p, fd, complaint, sizeof(complaint));
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR) {
			return -errno;
		}
	}
	if (r == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0)) {
		snprintf(error, error_size, "'%s' does not take it for %s: %s", program, target,
			 *complaint ? complaint : "no reason given");
		return -EINVAL;
	}
	return r;
}

int ptxas_init(struct ptxas *ret, const char *text, size_t size, const char *target, char *error,
	       size_t error_size) {
	struct program program = {0};
	struct ptxas p = {0};
	char toolkit[256];
	int r = find_program(&program, toolkit, sizeof(toolkit)), fd;

	if (r < 0) {
		snprintf(
			error, error_size,
			"there is no ptxas along PATH, nor %s; it comes with the CUDA toolkit (set "
			"CUDA_HOME to where that is)",
			toolkit);
		return r;
	}
	*error = '\0';
	fd = text_file(text, size);
	r = fd < 0 ? fd : run(&p, program.path, fd, target, error, error_size);
	if (fd >= 0) {
		close(fd);
	}
	program_deinit(&program);
	if (r < 0) {
		ptxas_deinit(&p);
		if (!*error) {
			snprintf(error, error_size, "cannot run ptxas: %s", strerror(-r));
		}
		return r;
	}
	*ret = p;
	return 0;
}

void ptxas_deinit(struct ptxas *p) {
	for (size_t i = 0; i < p->n; i++) {
		free(p->kernels[i].name);
	}
	free(p->kernels);
	*p = (struct ptxas){0};
}

const struct ptxas_kernel *ptxas_find(const struct ptxas *p, const char *name) {
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->kernels[i].name, name) == 0) {
			return &p->kernels[i];
		}
	}
	return NULL;
}
