/*
 * verb-cdi.c: `sbeetctl cdi`: what puts a container's programs under sbeet, as a file of the
 * Container Device Interface or as options of docker and podman.
 *
 * That is libsbeet.so, read-only; the socket for programs, and not that for sbeetctl, which root of
 * a container has no use for; and the folder of MPS, under its own name, as sbeetd tells it to
 * programs.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/json.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/preload.h"
#include "client/verb.h"
#include "proto/limits.h"
#include "proto/packet.h"

#define SHIM_INSIDE    "/usr/local/lib/sbeet/libsbeet.so"
#define SOCKETS_INSIDE "/run/sbeet"

#define SOCKET_NAME   "shim.sock"
#define SOCKET_INSIDE SOCKETS_INSIDE "/" SOCKET_NAME

struct cdi_options {
	const char *shim;
	bool docker;
};

static const struct option cdi_options[] = {
	{"docker", 0, OPTION_FLAG, NULL, "print options of docker run instead", option_flag,
	 offsetof(struct cdi_options, docker), NULL},
	{"shim", 0, OPTION_REQUIRED, "PATH", "use this libsbeet.so", option_string,
	 offsetof(struct cdi_options, shim), NULL},
	{0},
};

/* What a container is given. */
struct edits {
	char *shim;		      /* owned */
	char socket[PROTO_PATH_MAX];  /* for programs */
	char mps[PROTO_PATH_MAX];     /* the folder; empty: no MPS */
};

static const char *const variables[] = {
	"LD_PRELOAD=" SHIM_INSIDE,
	"SBEET_RUNTIME_DIR=" SOCKETS_INSIDE,
};
#define VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* Return: 0, or an enum ctl_exit with one line in @error. */
static int ask_for_mps(struct edits *e, char *error, size_t error_size) {
	struct control *control;
	struct snapshot s;
	int r = control_open(&control, error, error_size);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	r = snapshot_init(&s, control, error, error_size);
	if (r == CTL_EXIT_OK) {
		snprintf(e->mps, sizeof(e->mps), "%s", s.mps ? s.mps->pipe_directory : "");
		snapshot_deinit(&s);
	}
	control_close(control);
	return r;
}

static json_t *mount_json(const char *outside, const char *inside, const char *access) {
	return json_pack("{s:s, s:s, s:[s, s, s, s]}", "hostPath", outside, "containerPath", inside,
			 "options", access, "nosuid", "nodev", "bind");
}

static json_t *edits_json(const struct edits *e) {
	json_t *env = json_array(), *mounts = json_array();

	for (size_t i = 0; i < VARIABLES; i++) {
		json_array_append_new(env, json_string(variables[i]));
	}
	json_array_append_new(mounts, mount_json(e->shim, SHIM_INSIDE, "ro"));
	json_array_append_new(mounts, mount_json(e->socket, SOCKET_INSIDE, "ro"));
	if (*e->mps) {
		json_array_append_new(mounts, mount_json(e->mps, e->mps, "rw"));
	}
	return json_pack("{s:s, s:s, s:[{s:s, s:{s:o, s:o}}]}", "cdiVersion", "0.5.0", "kind",
			 "sbeet/program", "devices", "name", "managed", "containerEdits", "env",
			 env, "mounts", mounts);
}

/* Colons separate the parts of a volume, spaces the options in a shell. */
static bool docker_takes(const char *path) {
	if (path[strcspn(path, ": \t\n\"'\\*?[$`")] == '\0') {
		return true;
	}
	ctl_error("an option of docker can't name '%s': use the file instead (without --docker)",
		  path);
	return false;
}

static int print_docker(const struct edits *e) {
	if (!docker_takes(e->shim) || !docker_takes(e->socket) || !docker_takes(e->mps)) {
		return CTL_EXIT_FAILED;
	}
	printf("--volume %s:" SHIM_INSIDE ":ro --volume %s:" SOCKET_INSIDE ":ro", e->shim,
	       e->socket);
	if (*e->mps) {
		printf(" --ipc host --volume %s:%s", e->mps, e->mps);
	}
	for (size_t i = 0; i < VARIABLES; i++) {
		printf(" --env %s", variables[i]);
	}
	printf("\n");
	return CTL_EXIT_OK;
}

static int cdi(const struct ctl *ctl) {
	const struct cdi_options *o = ctl->options;
	struct edits e = {0};
	char error[512];
	int r;

	if (preload_find(o->shim, &e.shim, error, sizeof(error)) < 0) {
		ctl_error("%s", error);
		return CTL_EXIT_FAILED;
	}
	r = packet_socket_path(SOCKET_NAME, e.socket, sizeof(e.socket));
	if (r < 0) {
		ctl_error("the path of sbeetd's socket is too long");
		free(e.shim);
		return CTL_EXIT_FAILED;
	}
	if (ask_for_mps(&e, error, sizeof(error)) != CTL_EXIT_OK) { /* the rest holds */
		ctl_warn(ctl, "the folder of MPS is left out: %s", error);
	}
	if (o->docker) {
		r = print_docker(&e);
	} else {
		r = json_write(edits_json(&e), JSON_PRETTY, stdout) < 0 ? CTL_EXIT_FAILED
									: CTL_EXIT_OK;
	}
	free(e.shim);
	return r;
}

const struct verb verb_cdi = {
	.name = "cdi",
	.args = "",
	.summary = "print the settings that put a container under sbeet",
	.options = cdi_options,
	.options_size = sizeof(struct cdi_options),
	.help = "As root: sbeetctl cdi >/etc/cdi/sbeet.json, then\n"
		"docker run --gpus all --device sbeet/program=managed IMAGE\n"
		"or, without the file:\n"
		"docker run --gpus all $(sbeetctl cdi --docker) IMAGE\n"
		"IMAGE must have glibc: in one with musl (Alpine) no program starts with the "
		"library.\n",
	.function = cdi,
};
