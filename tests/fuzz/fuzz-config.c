/*
 * fuzz-config.c: any bytes are a configuration within its bounds, or refused with a message; as
 * sbeetd.conf, and as the file of a task.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/config/task.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void warn(const char *why) {
	if (!*why) {
		abort();
	}
}

static void check_access(const struct access *access) {
	struct peer peer = {.cred = {.uid = 1}};
	struct access_rights rights;

	access_rights(access, &peer, &rights);
	if (rights.limits.rate > 1000000 || rights.limits.most[QUOTA_BYTES] < 64 * 1024 ||
	    access->n_rules > ACCESS_RULES_MAX || access->n_admins > ACCESS_ADMINS_MAX) {
		abort();
	}
}

static void check_task(const struct taskfile *file) {
	const struct taskfile_program program = {"/usr/bin/x", "x", "/a.slice/b.service"};
	struct task_spec task;

	task_init(&task, NULL, "x");
	taskfile_matches(file, &program);
	taskfile_apply(file, &task);
	if ((task.period && task.deadline > task.period) || task.gpu >= SCHED_GPUS_MAX) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct config c;
	char why[512] = "";

	config_init(&c);
	if (config_read(&c, "input", (const char *)bytes, size, warn, why, sizeof(why)) < 0 &&
	    !*why) {
		abort();
	}
	if (!c.settings.policy || c.settings.gpus.n > SCHED_GPUS_MAX || c.settings.drain == 0) {
		abort();
	}
	check_access(&c.access);
	why[0] = '\0';
	if (config_read_task(&c, "x", "input", (const char *)bytes, size, warn, why, sizeof(why)) <
	    0) {
		if (!*why) {
			abort();
		}
	} else {
		check_task(&c.tasks[0]);
	}
	config_deinit(&c);
	return 0;
}
