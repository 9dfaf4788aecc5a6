/*
 * gather-strays.c: processes that should have libsbeet.so and have not; see gather.h.
 *
 * What cannot be read, such as other users' processes, is passed over.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/program.h"
#include "client/doctor/gather.h"
#include "client/preload.h"
#include "proto/task-spec.h"

/* A process of which more is to be read is passed over. */
#define FILE_SIZE_MAX (8 << 20)

struct process {
	int pid;
	int folder;	   /* of it in /proc; owned */
	char *environment; /* owned: each "NAME=value" and the last end in zero bytes */
};

/* The file @name of @p. Return: owned by the caller, two zero bytes at its end; NULL: can't. */
static char *read_file(const struct process *p, const char *name) {
	int fd = openat(p->folder, name, O_RDONLY | O_CLOEXEC);
	size_t used = 0, size = 0;
	char *text = NULL;
	ssize_t n = 1;

	while (fd >= 0 && n > 0 && used < FILE_SIZE_MAX) {
		if (size - used < 4096) {
			char *larger = realloc(text, size = 2 * size + 16384);

			if (!larger) {
				n = -1;
				break;
			}
			text = larger;
		}
		n = read(fd, text + used, size - used - 2);
		used += n > 0 ? (size_t)n : 0;
	}
	if (fd >= 0) {
		close(fd);
	}
	if (!text || n != 0) {
		free(text);
		return NULL;
	}
	text[used] = text[used + 1] = '\0';
	return text;
}

/* Return: "" if it is not set. */
static const char *variable(const struct process *p, const char *name) {
	size_t n = strlen(name);

	for (const char *v = p->environment; *v; v += strlen(v) + 1) {
		if (strncmp(v, name, n) == 0 && v[n] == '=') {
			return v + n + 1;
		}
	}
	return "";
}

/* What of libsbeet.so's variables says that @p is to be managed. NULL: nothing does. */
static const char *declared_by(const struct process *p) {
	static const char *const others[] = {"SBEET_REQUIRE", "SBEET_RUN", "SBEET_WHOLE",
					     "SBEET_MARK"};

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		const char *name = task_fields[field].variable;

		if (name && *variable(p, name)) {
			return name;
		}
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		if (*variable(p, others[i])) {
			return others[i];
		}
	}
	return NULL;
}

/* Copies the entry of LD_PRELOAD that names libsbeet.so; empty: none does. */
static void find_entry(const struct process *p, char *entry, size_t size) {
	char *entries = strdup(variable(p, "LD_PRELOAD")), *save = NULL;

	entry[0] = '\0';
	for (char *e = entries ? strtok_r(entries, PRELOAD_SEPARATORS, &save) : NULL; e;
	     e = strtok_r(NULL, PRELOAD_SEPARATORS, &save)) {
		if (preload_is_named(e)) {
			snprintf(entry, size, "%s", e);
		}
	}
	free(entries);
}

/* By @maps, which it changes: the driver's library is loaded, libsbeet.so is not. */
static bool is_without(char *maps) {
	bool uses_gpu = false;
	char *save = NULL;

	for (char *l = strtok_r(maps, "\n", &save); l; l = strtok_r(NULL, "\n", &save)) {
		const char *slash = strrchr(l, '/'), *name = slash ? slash + 1 : "";

		/* " (deleted)" or a version may follow. */
		if (strncmp(name, PRELOAD_NAME, strlen(PRELOAD_NAME)) == 0) {
			return false;
		}
		uses_gpu = uses_gpu || strncmp(name, "libcuda.so", strlen("libcuda.so")) == 0;
	}
	return uses_gpu;
}

/* These use the GPU, but not as a task. */
static bool is_a_tool(const char *name) {
	static const char *const tools[] = {"sbeetctl", "sbeetd", "nvidia-cuda-mps"};

	for (size_t i = 0; i < sizeof(tools) / sizeof(tools[0]); i++) {
		if (strncmp(name, tools[i], strlen(tools[i])) == 0) {
			return true;
		}
	}
	return false;
}

/* Whether libsbeet.so in it would ask the sbeetd whose socket is @socket. */
static bool asks_this(const struct process *p, const char *socket) {
	const char *theirs = variable(p, "SBEET_RUNTIME_DIR"), *ours = getenv("SBEET_RUNTIME_DIR");
	size_t n = strlen(theirs);

	if (n == 0) {
		return !ours || !*ours;
	}
	return strncmp(socket, theirs, n) == 0 &&
	       !strchr(socket + n + strspn(socket + n, "/"), '/');
}

/* Whether the path @entry leads nowhere, in the file system of @p. */
static bool is_absent(const struct process *p, const char *entry) {
	char path[PROTO_PATH_MAX + 8];
	struct stat st;

	/* The dynamic linker replaces "$LIB" and the like. */
	if (*entry != '/' || strchr(entry, '$')) {
		return false;
	}
	snprintf(path, sizeof(path), "root%s", entry);
	return fstatat(p->folder, path, &st, 0) < 0 && errno == ENOENT;
}

static void tell(const struct process *p, const char *name, const char *declared, const char *entry,
		 const char *library, struct stray_list *ret) {
	struct stray_facts *s = &ret->first[ret->n];
	char executable[32];
	struct program program;

	if (ret->n++ >= FACTS_STRAYS_MAX) {
		return;
	}
	s->pid = p->pid;
	snprintf(s->name, sizeof(s->name), "%s", name);
	snprintf(s->variable, sizeof(s->variable), "%s", declared ? declared : "");
	snprintf(s->entry, sizeof(s->entry), "%s", entry);
	s->absent = is_absent(p, entry);
	snprintf(executable, sizeof(executable), "/proc/%d/exe", p->pid);
	program_inspect(&program, executable);
	s->unmanaged = program_unmanaged(&program, library);
}

static void look_at(const struct process *p, const char *socket, const char *library,
		    struct stray_list *ret) {
	const char *declared = declared_by(p);
	char entry[PROTO_PATH_MAX], *name, *maps;

	find_entry(p, entry, sizeof(entry));
	if ((!declared && !*entry) || strcmp(variable(p, "SBEET_DISABLE"), "1") == 0 ||
	    !asks_this(p, socket)) {
		return;
	}
	name = read_file(p, "comm");
	maps = read_file(p, "maps");
	if (name && maps && !is_a_tool(name) && is_without(maps)) {
		name[strcspn(name, "\n")] = '\0';
		tell(p, name, declared, entry, library, ret);
	}
	free(name);
	free(maps);
}

void gather_strays(const char *socket, const char *library, struct stray_list *ret) {
	DIR *all = opendir("/proc");

	for (const struct dirent *e = all ? readdir(all) : NULL; e; e = readdir(all)) {
		struct process p = {.pid = atoi(e->d_name)};

		if (p.pid <= 0) {
			continue;
		}
		p.folder = openat(dirfd(all), e->d_name, O_DIRECTORY | O_PATH | O_CLOEXEC);
		p.environment = read_file(&p, "environ");
		if (p.environment) {
			look_at(&p, socket, library, ret);
		}
		free(p.environment);
		if (p.folder >= 0) {
			close(p.folder);
		}
	}
	if (all) {
		closedir(all);
	}
}
