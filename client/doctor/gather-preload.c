/*
 * gather-preload.c: libsbeet.so, and what it is loaded into; see gather.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/base/program.h"
#include "client/doctor/gather.h"
#include "client/preload.h"
#include "proto/taskvars.h"

#define SAID_MAX 16384

/* Runs @path with these variables, NULL at the end; what it says on both its outputs is in @said.
 * Return: the status of waitpid(), or -1. */
static int run(const char *path, char *const *variables, char *said, size_t size) {
	int pipe_fds[2], status = -1;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0) {
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		dup2(pipe_fds[1], STDOUT_FILENO);
		dup2(pipe_fds[1], STDERR_FILENO);
		execle(path, path, NULL, variables);
		_exit(127);
	}
	close(pipe_fds[1]);
	/* All is read, that it does not wait for us; what is too much is dropped. */
	while (pid > 0) {
		char rest[512];
		bool full = used + 1 >= size;

		n = read(pipe_fds[0], full ? rest : said + used,
			 full ? sizeof(rest) : size - 1 - used);
		if (n == 0 || (n < 0 && errno != EINTR)) {
			break;
		}
		used += n > 0 && !full ? (size_t)n : 0;
	}
	said[used] = '\0';
	close(pipe_fds[0]);
	return pid > 0 && waitpid(pid, &status, 0) == pid ? status : -1;
}

/* "LD_PRELOAD=that", owned by the caller. */
static char *preload_variable(const char *library) {
	char *text;

	return asprintf(&text, "LD_PRELOAD=%s", library) < 0 ? NULL : text;
}

/* A program of this system that is linked dynamically; the one that runs is. */
static const char *harmless_program(void) {
	struct program p;

	program_inspect(&p, "/bin/true");
	return p.is_dynamic ? "/bin/true" : NULL;
}

/* "NAME=value" of the environment, owned by the caller; NULL: it is not set. */
static char *variable_of(const char *name) {
	const char *value = getenv(name);
	char *text;

	return value && asprintf(&text, "%s=%s", name, value) >= 0 ? text : NULL;
}

/* Asks the dynamic linker, as ldd(1) does, what LD_PRELOAD=libsbeet.so is. */
static void find_by_name(struct preload_facts *p) {
	static const char arrow[] = "\t" PRELOAD_NAME " => ";
	char *folders = variable_of("LD_LIBRARY_PATH");
	char *variables[] = {(char *)"LD_TRACE_LOADED_OBJECTS=1",
			     (char *)"LD_PRELOAD=" PRELOAD_NAME, folders, NULL};
	const char *program = harmless_program();
	char said[SAID_MAX], *at;

	if (program && run(program, variables, said, sizeof(said)) == 0) {
		at = strstr(said, arrow);
		if (at) {
			at += sizeof(arrow) - 1;
			at[strcspn(at, "\n")] = '\0';
			at[strcspn(at, " ")] = '\0';
			snprintf(p->by_name, sizeof(p->by_name), "%s", at);
		}
	}
	free(folders);
}

static void try_preload(struct preload_facts *p) {
	char *variables[] = {preload_variable(p->library), NULL};
	const char *program = harmless_program();
	char said[sizeof(p->said)];
	int status;

	if (!variables[0] || !program) {
		free(variables[0]);
		return;
	}
	status = run(program, variables, said, sizeof(said));
	p->tried = true;
	said[strcspn(said, "\n")] = '\0';
	if (*said) {
		snprintf(p->said, sizeof(p->said), "%s", said);
	} else if (status != 0) {
		snprintf(p->said, sizeof(p->said), "%s fails with it", program);
	}
	free(variables[0]);
}

void gather_preload(const char *library, const char *why, struct preload_facts *ret) {
	struct program self, it;

	snprintf(ret->glibc, sizeof(ret->glibc), "%s", gnu_get_libc_version());
	find_by_name(ret);
	if (!library) {
		snprintf(ret->why, sizeof(ret->why), "%s", why);
		return;
	}
	snprintf(ret->library, sizeof(ret->library), "%s", library);
	program_inspect(&self, "/proc/self/exe");
	program_inspect(&it, library);
	ret->other_machine =
		!it.is_elf || it.elf_class != self.elf_class || it.elf_machine != self.elf_machine;
	try_preload(ret);
}

static bool same_file(const char *a, const char *b) {
	struct stat sa, sb;

	return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_ino == sb.st_ino &&
	       sa.st_dev == sb.st_dev;
}

/* An entry of LD_PRELOAD that names libsbeet.so. */
static void look_at_entry(const char *entry, const struct preload_facts *p,
			  struct environment_facts *ret) {
	const char *path = strchr(entry, '/') ? entry : p->by_name;

	if (!*path) {
		ret->not_found = true;
	} else if (!*p->library || !same_file(path, p->library)) {
		snprintf(ret->other_shim, sizeof(ret->other_shim), "%s", path);
	}
}

void gather_environment(const struct preload_facts *preload, struct environment_facts *ret) {
	struct taskvar_source from[_TASK_FIELD_N];
	const char *text = getenv("SBEET_DISABLE");
	char *entries, *save = NULL;
	struct task_spec task;
	enum task_field wrong;

	ret->disabled = text && strcmp(text, "1") == 0;
	text = getenv("LD_PRELOAD");
	entries = strdup(text ? text : "");
	for (char *e = entries ? strtok_r(entries, PRELOAD_SEPARATORS, &save) : NULL; e;
	     e = strtok_r(NULL, PRELOAD_SEPARATORS, &save)) {
		if (preload_is_named(e)) {
			look_at_entry(e, preload, ret);
		}
	}
	free(entries);
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		from[field].name = task_fields[field].variable;
		text = from[field].name ? getenv(from[field].name) : NULL;
		from[field].text = text && *text ? text : NULL;
	}
	if (taskvars_read(&task, from, &wrong, ret->wrong, sizeof(ret->wrong)) < 0) {
		snprintf(ret->wrong_variable, sizeof(ret->wrong_variable), "%s", from[wrong].name);
	} else {
		ret->wrong[0] = '\0';
	}
}

/* NVIDIA's runtime library has a text in it, wherever it is linked in. We must not, in one piece:
 * a search for it, as in tests/sim.sh, would find the library in sbeetctl. */
static bool has_mark(const char *file, size_t size) {
	static const char begin[] = "cudaErrorCudart", end[] = "Unloading";
	const size_t n = sizeof(begin) - 1, m = sizeof(end) - 1;
	const char *at = file;

	while ((at = memmem(at, size - (size_t)(at - file), begin, n))) {
		at += n;
		if (size - (size_t)(at - file) >= m && memcmp(at, end, m) == 0) {
			return true;
		}
	}
	return false;
}

static bool has_runtime(const char *path) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	bool found = false;
	void *file;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			found = has_mark(file, (size_t)st.st_size);
			munmap(file, (size_t)st.st_size);
		}
	}
	if (fd >= 0) {
		close(fd);
	}
	return found;
}

/* A line of ldd(1): "<tab>libfoo.so => /lib/libfoo.so (0x7f00)", or without the first. Return:
 * whether libraries behind it stand in for nothing any more. */
static bool note_library(char *line, struct program_facts *ret) {
	char *path = strstr(line, " => "), *end;

	path = path ? path + 4 : line + strspn(line, "\t ");
	end = strstr(path, " (");
	if (!end || *path != '/') {
		return false;
	}
	*end = '\0';
	if (strncmp(strrchr(path, '/'), "/libcuda.so", strlen("/libcuda.so")) == 0) {
		return true;
	}
	if (gather_stands_in(path)) {
		snprintf(ret->stands_in, sizeof(ret->stands_in), "%s", path);
		return true;
	}
	return false;
}

/* What the dynamic linker finds and does not find, as ldd(1) asks it: nothing of the program runs.
 */
static void look_at_libraries(const char *path, struct program_facts *ret) {
	char *variables[] = {(char *)"LD_TRACE_LOADED_OBJECTS=1", variable_of("LD_LIBRARY_PATH"),
			     NULL, NULL};
	char said[SAID_MAX], *preload = variable_of("LD_PRELOAD"), *save = NULL;
	const size_t size = sizeof(ret->lacks);
	bool all = gather_stands_in(path);
	size_t n = 0;

	if (all) {
		snprintf(ret->stands_in, sizeof(ret->stands_in), "%s", path);
	}
	variables[variables[1] ? 2 : 1] = preload;
	if (run(path, variables, said, sizeof(said)) != 0) {
		said[0] = '\0';
	}
	free(variables[variables[1] == preload ? 2 : 1]);
	free(preload);
	for (char *l = strtok_r(said, "\n", &save); l && n < size;
	     l = strtok_r(NULL, "\n", &save)) {
		char *end = strstr(l, " => not found");

		if (end) {
			n += (size_t)snprintf(ret->lacks + n, size - n, "%s%.*s", n ? ", " : "",
					      (int)(end - l - 1), l + 1);
		} else if (!all) {
			all = note_library(l, ret);
		}
	}
}

void gather_program(const char *name, const char *library, struct program_facts *ret) {
	struct program p;
	int r;

	if (!name) {
		return;
	}
	ret->given = true;
	snprintf(ret->name, sizeof(ret->name), "%s", name);
	r = program_init(&p, name);
	if (r < 0) {
		ret->error = -r;
		return;
	}
	ret->unmanaged = program_unmanaged(&p, library);
	ret->has_runtime = has_runtime(p.path);
	/* A static program would run. */
	if (p.is_dynamic && !p.is_script && !ret->unmanaged) {
		look_at_libraries(p.path, ret);
	}
	program_deinit(&p);
}
