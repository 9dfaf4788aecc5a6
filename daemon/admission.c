/*
 * admission.c: see admission.h.
 */
#include "daemon/admission.h"

int admission_receive(struct gate *gate, int fd, nsec_t now, struct peer *ret_peer,
		      nsec_t *ret_wait) {
	struct ucred cred;
	nsec_t wait;
	int r = peer_credentials(fd, &cred);

	if (r < 0) {
		return r;
	}
	wait = gate_enter(gate, &cred, now);
	if (wait == GATE_FULL) {
		return ADMISSION_E_FULL;
	}
	r = peer_read(fd, ret_peer);
	if (r < 0) {
		if (wait > 0) {
			gate_waited(gate, &cred);
		}
		return r;
	}
	*ret_wait = wait;
	return 0;
}

void admission_user(const struct config *config, const struct peer *peer, struct quota_user *user) {
	struct access_rights rights;

	access_rights(&config->access, peer, &rights);
	quota_user_set_limits(user, &rights.limits);
}

static const struct taskfile *find_file(const struct config *config, const struct peer *peer,
					const char *told, const char *name) {
	char executable[PROTO_PATH_MAX], cgroup[PROTO_PATH_MAX];
	struct taskfile_program program = {executable, name, cgroup};

	if (config->n_tasks == 0) {
		return NULL;
	}
	peer_executable(peer, executable);
	if (!*executable) {
		program.executable = told;
	}
	peer_cgroup(peer, cgroup);
	for (size_t i = 0; i < config->n_tasks; i++) {
		if (taskfile_matches(&config->tasks[i], &program)) {
			return &config->tasks[i];
		}
	}
	return NULL;
}

unsigned admission_limit(const struct config *config, const struct peer *peer, struct task *task) {
	struct access_rights rights;
	unsigned cut = 0;

	access_rights(&config->access, peer, &rights);
	if (task->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME && !rights.realtime) {
		task->task_class = SBEET__TASK_CLASS__TASK_CLASS_BEST_EFFORT;
		cut |= ADMISSION_REALTIME;
	}
	if (task->priority > rights.priority_max) {
		task->priority = rights.priority_max;
		cut |= ADMISSION_PRIORITY;
	}
	return cut;
}

unsigned admission_task(const struct config *config, const struct peer *peer,
			const char *executable, struct task *task, nsec_t now) {
	const struct taskfile *file = find_file(config, peer, executable, task->name);

	if (file) {
		taskfile_apply(file, task);
		task_start(task, now);
	}
	return admission_limit(config, peer, task);
}
