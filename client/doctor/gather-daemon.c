/*
 * gather-daemon.c: what sbeetd tells, and what stands beside it; see gather.h.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "client/doctor/gather.h"
#include "client/live/runs.h"
#include "client/live/snapshot.h"
#include "daemon/core/sched.h"
#include "daemon/core/state.h"
#include "daemon/mps/mps-find.h"
#include "proto/packet.h"

static void look_at_socket(const char *name, struct socket_facts *ret) {
	struct stat st;

	if (packet_socket_path(name, ret->path, sizeof(ret->path)) == 0) {
		ret->exists = stat(ret->path, &st) == 0;
		ret->writable = access(ret->path, W_OK) == 0;
	}
}

/* "a, b": each task once. */
static void add_unplanned(char *list, size_t size, const char *task) {
	size_t n = strlen(list), len = strlen(task);

	for (const char *p = list; (p = strstr(p, task)); p += len) {
		if ((p == list || p[-1] == ' ') && (p[len] == ',' || p[len] == '\0')) {
			return;
		}
	}
	snprintf(list + n, size - n, "%s%s", n > 0 ? ", " : "", task);
}

static void take_snapshot(struct daemon_facts *d, const struct snapshot *s) {
	const struct sched_policy *policy = sched_policy_find(s->service->policy);

	snprintf(d->version, sizeof(d->version), "%s", s->service->version);
	snprintf(d->policy, sizeof(d->policy), "%s", s->service->policy);
	d->plans = policy && policy->plans;
	d->steers = policy && policy->steers;
	d->n_profiles = s->service->profiles;
	d->n_gpus = (unsigned)s->n_gpus;
	if (s->n_gpus > 0) {
		snprintf(d->sharing, sizeof(d->sharing), "%s", s->gpus[0]->sharing);
		snprintf(d->preemption, sizeof(d->preemption), "%s", s->gpus[0]->preemption);
	}
	for (size_t i = 0; i < s->n_sessions; i++) {
		if (s->sessions[i]->deadline_ns > 0 && !s->sessions[i]->planned) {
			add_unplanned(d->unplanned, sizeof(d->unplanned), s->sessions[i]->task);
		}
	}
	if (s->mps) {
		snprintf(d->mps, sizeof(d->mps), "%s", s->mps->state);
		snprintf(d->mps_directory, sizeof(d->mps_directory), "%s", s->mps->pipe_directory);
		snprintf(d->mps_note, sizeof(d->mps_note), "%s", s->mps->note);
		d->mps_owner = s->mps->owner;
	}
}

/* Where sbeetd has its profiles: as its configuration says. */
static int ask_for_profiles(struct control *control, struct profile_facts *ret, char *error,
			    size_t error_size) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__ConfigRequest wanted = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	struct control_answer answer;
	int r;

	request.body_case = SBEET__CONTROL__REQUEST__BODY_CONFIG;
	request.config = &wanted;
	r = control_call(control, &request, &answer, error, error_size);
	if (r != 0) {
		return r;
	}
	for (size_t i = 0; i < answer.n_replies; i++) {
		const Sbeet__Control__Config *c = answer.replies[i]->config;

		if (answer.replies[i]->body_case != SBEET__CONTROL__REPLY__BODY_CONFIG) {
			continue;
		}
		for (size_t j = 0; j < c->n_values && !*ret->directory; j++) {
			if (strcmp(c->values[j]->key, "profile-dir") == 0) {
				snprintf(ret->directory, sizeof(ret->directory), "%s",
					 c->values[j]->value);
			}
		}
		if (*c->directory && !*ret->directory) {
			snprintf(ret->directory, sizeof(ret->directory), "%s/profiles",
				 c->directory);
		}
	}
	control_answer_deinit(&answer);
	return 0;
}

static bool is_profile(const char *name) {
	size_t n = strlen(name);

	return *name != '.' && n > 5 && strcmp(name + n - 5, ".json") == 0;
}

/* @uptime: of sbeetd, in ns. */
static void look_at_profiles(struct profile_facts *p, nsec_t uptime) {
	/* Not by time(), which may be some milliseconds, and so a second, behind. */
	nsec_t started = runs_now() - uptime;
	struct dirent *entry;
	struct stat st;
	DIR *directory;

	p->exists = *p->directory && stat(p->directory, &st) == 0;
	directory = p->exists ? opendir(p->directory) : NULL;
	if (!directory) {
		return;
	}
	p->readable = true;
	while ((entry = readdir(directory))) {
		if (is_profile(entry->d_name) &&
		    fstatat(dirfd(directory), entry->d_name, &st, 0) == 0) {
			p->n_files++;
			p->n_changed += nsec_from_timespec(st.st_ctim) > started;
		}
	}
	closedir(directory);
}

void gather_daemon(struct daemon_facts *ret, struct profile_facts *ret_profiles) {
	struct control *control;
	struct snapshot s;

	look_at_socket("control.sock", &ret->control);
	look_at_socket("shim.sock", &ret->shim);
	ret->code = control_open(&control, ret->why, sizeof(ret->why));
	if (ret->code != CTL_EXIT_OK) {
		return;
	}
	ret->code = snapshot_init(&s, control, ret->why, sizeof(ret->why));
	if (ret->code == CTL_EXIT_OK) {
		take_snapshot(ret, &s);
		ret->code = ask_for_profiles(control, ret_profiles, ret->why, sizeof(ret->why));
		look_at_profiles(ret_profiles, s.service->uptime_ns);
		snapshot_deinit(&s);
	}
	control_close(control);
	/* The service's sockets may have come with our question. */
	look_at_socket("control.sock", &ret->control);
	look_at_socket("shim.sock", &ret->shim);
}

void gather_mps(const struct daemon_facts *daemon, struct mps_facts *ret) {
	struct mps_directories own = {0};
	struct mps_found found;
	size_t n = strlen(daemon->shim.path);
	char *slash;
	int r;

	/* The one that sbeetd itself runs. */
	if (n > 0 && n + sizeof("/mps/pipe") < sizeof(own.pipe)) {
		memcpy(own.pipe, daemon->shim.path, n + 1);
		slash = strrchr(own.pipe, '/');
		strcpy(slash ? slash : own.pipe, "/mps/pipe");
	}
	r = mps_find(&found, &own, ret->why, sizeof(ret->why));
	if (r != -EPERM) {
		ret->why[0] = '\0';
	}
	if (r == 0) {
		if (found.pidfd >= 0) {
			close(found.pidfd);
		}
		ret->found = true;
		ret->owner = found.owner;
		snprintf(ret->directory, sizeof(ret->directory), "%s", found.directories.pipe);
	}
	snprintf(own.pipe, sizeof(own.pipe), "%s", daemon->mps_directory);
	ret->reachable = *own.pipe && mps_stands(&own);
}
