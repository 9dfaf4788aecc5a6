/* admin-task.c: see admin-task.h. */
#include "daemon/control/admin-task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/files.h"
#include "daemon/base/inifile.h"
#include "daemon/base/log.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/config/saving.h"
#include "daemon/config/taskedit.h"
#include "daemon/control/admin.h"
#include "daemon/session/admission.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "proto/task-text.h"

/* ---- programs that run ---- */

/* What is to be changed. */
struct wanted {
	uint32_t mask; /* task_field_bit() */
	bool save;
	struct task_spec spec; /* its name is the task's */
};

static bool has(const struct wanted *wanted, enum task_field field) {
	return wanted->mask & task_field_bit(field);
}

static struct wanted read_wanted(const Sbeet__Control__TaskChange *change) {
	struct wanted wanted = {.mask = change->mask, .save = change->save};

	task_spec_from_wire(change->spec, &wanted.spec);
	snprintf(wanted.spec.name, sizeof(wanted.spec.name), "%s", change->task);
	wanted.mask &= ~task_field_bit(TASK_FIELD_TASK);
	return wanted;
}

/* A running program can't move: its GPU is for later ones. */
static bool is_elsewhere(const struct session *s, const struct wanted *wanted) {
	return has(wanted, TASK_FIELD_GPU) && wanted->spec.gpu >= 0 &&
	       (s->gpus & ~BIT((unsigned)wanted->spec.gpu));
}

/* What of it session @s, one of the task, becomes. */
static struct task_spec changed(const struct session *s, const struct wanted *wanted) {
	struct task_spec task = s->task;

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		if (has(wanted, field) && !(field == TASK_FIELD_GPU && is_elsewhere(s, wanted))) {
			task_field_copy(field, &wanted->spec, &task);
		}
	}
	return task;
}

static bool is_of_task(const struct session *s, const char *name) {
	return s->state == SESSION_ACTIVE && strcmp(s->task.name, name) == 0;
}

/* Why the values do not go together; NULL: they do. */
static const char *contradiction(const struct task_spec *task) {
	if (task->period && task->deadline > task->period) {
		return "the deadline would be beyond the period";
	}
	if (task->job.max_sms > 0 && task->job.min_sms > task->job.max_sms) {
		return "min-sms would be above max-sms";
	}
	return NULL;
}

/* Why this session's task may not become so; false: it may. */
static bool object(struct control_client *client, uint32_t id, const struct session *s,
		   const struct wanted *wanted) {
	const struct config *config = client->control->reload->config;
	struct task_spec task = changed(s, wanted);
	const char *why = contradiction(&task);
	struct peer peer;

	if (why) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "task '%s' in session %llu: %s", task.name, (unsigned long long)s->id,
			     why);
		return true;
	}
	if (!wanted->save && is_elsewhere(s, wanted)) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "task '%s' in session %llu uses another GPU and can't move while it "
			     "runs; --save sets the GPU of its next start",
			     task.name, (unsigned long long)s->id);
		return true;
	}
	if (!admin_may(client) &&
	    (peer_read(client->fd, &peer) < 0 || admission_limit(config, &peer, &task))) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "user %u may not have this class or priority (see 'sbeetctl config')",
			     client->cred.uid);
		return true;
	}
	return false;
}

/* Sets @n_found, of any user, and @n_own, that the peer may change. Return: whether nothing is
 * to be said against it; else the peer has been told. */
static bool look(struct control_client *client, uint32_t id, const struct wanted *wanted,
		 uint32_t *ret_found, uint32_t *ret_own) {
	struct session *s;

	*ret_found = *ret_own = 0;
	TAILQ_FOREACH(s, &client->control->sessions->list, link) {
		if (!is_of_task(s, wanted->spec.name)) {
			continue;
		}
		++*ret_found;
		if (!admin_may_change(client, s)) {
			continue;
		}
		++*ret_own;
		if (object(client, id, s, wanted)) {
			return false;
		}
	}
	return true;
}

/* Changes those that @client may change; NULL: all, for an admin. Return: how many. */
static uint32_t apply(struct control *control, const struct control_client *client, uid_t uid,
		      const struct wanted *wanted) {
	bool restart = has(wanted, TASK_FIELD_PERIOD) || has(wanted, TASK_FIELD_OFFSET);
	struct session *s;
	uint32_t n = 0;

	TAILQ_FOREACH(s, &control->sessions->list, link) {
		struct task_spec task;

		if (!is_of_task(s, wanted->spec.name) || (client && !admin_may_change(client, s))) {
			continue;
		}
		task = changed(s, wanted);
		if (!contradiction(&task)) { /* which one could be that came meanwhile */
			session_task_set(s, &task, restart);
			n++;
		}
	}
	log_change(client ? admin_log(client) : NULL,
		   &(struct log_about){
			   .id = LOG_ID_CHANGE, .task = wanted->spec.name, .gpu = -1, .uid = uid},
		   "Task '%s' is changed in %u sessions by user %u%s", wanted->spec.name, n, uid,
		   wanted->save ? ", and saved" : "");
	return n;
}

/* ---- its file ---- */

struct task_save {
	struct control *control;       /* borrowed */
	struct control_client *client; /* borrowed; NULL: it is gone */
	uint32_t request;
	uid_t uid;
	struct wanted wanted;
	struct taskfile file;
	char path[2 * PROTO_PATH_MAX];
	struct saving *saving; /* owned */
};

struct values {
	struct taskedit_value list[_TASK_FIELD_N];
	char texts[_TASK_FIELD_N][TASK_TEXT_MAX];
	size_t n;
};

/* As lines of the file. */
static void list_values(const struct wanted *wanted, struct values *v) {
	v->n = 0;
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		if (has(wanted, field)) {
			v->list[v->n].key = task_fields[field].key;
			v->list[v->n].value = task_text_print(field, &wanted->spec, v->texts[v->n]);
			v->n++;
		}
	}
}

static void ignore(const char *why) {
	(void)why; /* whoever reads the file next will be told */
}

/* The file's text with the values, and what it means. Return: 0, or a negative errno, with @why. */
static int edit(struct task_save *save, char **ret_text, size_t *ret_n, char *why, size_t size) {
	_cleanup_free_ char *old = NULL, *text = NULL;
	char head[PROTO_NAME_MAX + 64];
	struct config config;
	struct values values;
	size_t n = 0;
	int r;

	r = files_read(AT_FDCWD, save->path, INIFILE_SIZE_MAX, &old, &n);
	if (r < 0 && r != -ENOENT) {
		snprintf(why, size, "can't read '%.700s': %s", save->path, strerror(-r));
		return r;
	}
	if (r == -ENOENT && save->control->reload->config->n_tasks == TASKFILES_MAX) {
		snprintf(why, size, "can't write '%.700s': there are %d files of tasks already",
			 save->path, TASKFILES_MAX);
		return -E2BIG;
	}
	list_values(&save->wanted, &values);
	snprintf(head, sizeof(head), "By 'sbeetctl task set %s --save'.", save->wanted.spec.name);
	r = taskedit_apply(old, n, head, values.list, values.n, &text, &n);
	if (r < 0) {
		snprintf(why, size, "no memory");
		return r;
	}
	config_init(&config);
	r = config_read_task(&config, save->wanted.spec.name, save->path, text, n, ignore, why,
			     size);
	if (r == 0) {
		save->file = config.tasks[0];
		*ret_text = TAKE_PTR(text);
		*ret_n = n;
	}
	config_deinit(&config);
	return r;
}

static void complain(const struct task_save *save, int error, char *why, size_t size) {
	const char *advice = "";

	if (error == -EACCES || error == -EPERM || error == -EROFS) {
		advice =
			"; whom sbeetd runs as must own the folder, or write the file yourself and "
			"run 'sbeetctl reload'";
	} else if (error == -ENOSPC || error == -EDQUOT) {
		advice = "; what was there before stays";
	}
	snprintf(why, size, "can't write '%.700s': %s%s", save->path, strerror(-error), advice);
}

static void on_saved(void *userdata, int error) {
	struct task_save *save = userdata;
	struct control *control = save->control;
	Sbeet__Control__Done done = SBEET__CONTROL__DONE__INIT;
	char text[PROTO_TEXT_MAX];

	if (error == 0) {
		error = config_put_task(control->reload->config, &save->file);
	}
	if (error < 0) {
		complain(save, error, text, sizeof(text));
		log_warning("Task '%s' is not saved: %s", save->wanted.spec.name, text);
		if (save->client) {
			admin_refuse(save->client, save->request,
				     SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "%s", text);
		}
	} else {
		done.changed = apply(control, NULL, save->uid, &save->wanted);
		if (save->client) {
			admin_reply(save->client, save->request, &done);
		}
	}
	control->task_save = admin_task_save_free(save);
}

/* Return: whether it has begun; else the peer has been told. */
static bool begin_save(struct control_client *client, uint32_t id, const struct wanted *wanted) {
	const char *directory = client->control->reload->config->directory;
	char why[PROTO_TEXT_MAX] = "no memory", folder[PROTO_PATH_MAX + sizeof(CONFIG_TASKS) + 1];
	struct task_save *save = calloc(1, sizeof(*save));
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r = -ENOMEM;

	if (save) {
		save->control = client->control;
		save->client = client;
		save->request = id;
		save->uid = client->cred.uid;
		save->wanted = *wanted;
		taskfile_init(&save->file, wanted->spec.name);
		snprintf(folder, sizeof(folder), "%s/" CONFIG_TASKS, directory);
		snprintf(save->path, sizeof(save->path), "%s/%s", folder, save->file.file);
		r = edit(save, &text, &n, why, sizeof(why));
	}
	if (r == 0) {
		snprintf(why, sizeof(why), "can't save '%.700s'", save->path);
		r = saving_new(&save->saving, client->control->base, folder, save->file.file, text,
			       n, on_saved, save);
	}
	if (r < 0) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "%s", why);
		admin_task_save_free(save);
		return false;
	}
	client->control->task_save = save;
	return true;
}

void admin_task_client_gone(const struct control_client *client) {
	struct task_save *save = client->control->task_save;

	if (save && save->client == client) {
		save->client = NULL;
	}
}

struct task_save *admin_task_save_free(struct task_save *save) {
	if (save) {
		saving_free(save->saving);
		free(save);
	}
	return NULL;
}

static void save(struct control_client *client, uint32_t id, const struct wanted *wanted) {
	if (!admin_may(client)) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "only admins may save what tasks are, as that holds for all users; "
			     "without --save you change your own programs that run");
	} else if (!*client->control->reload->config->directory) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_CONFIG,
			     "there is no folder for the configuration (see --config-dir in "
			     "sbeetd(8))");
	} else if (client->control->task_save) {
		admin_refuse(client, id, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "another task is being saved; try again");
	} else {
		begin_save(client, id, wanted);
	}
}

void admin_change_task(struct control_client *client, const Sbeet__Control__Request *request) {
	struct wanted wanted = read_wanted(request->task_change);
	Sbeet__Control__Done done = SBEET__CONTROL__DONE__INIT;
	uint32_t n_found, n_own;

	if (has(&wanted, TASK_FIELD_GPU) && wanted.spec.gpu >= 0 &&
	    (size_t)wanted.spec.gpu >= inventory_n_gpus(client->control->inventory)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no GPU %d", wanted.spec.gpu);
		return;
	}
	if (!look(client, request->id, &wanted, &n_found, &n_own)) {
		return;
	}
	if (wanted.save) {
		save(client, request->id, &wanted);
		return;
	}
	if (n_own == 0) {
		admin_refuse(client, request->id,
			     n_found > 0 ? SBEET__ERROR_CODE__ERROR_CODE_DENIED
					 : SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     n_found > 0 ? "task '%s' is another user's: only admins may change it"
					 : "no program of a task '%s' is connected",
			     wanted.spec.name);
		return;
	}
	done.changed = apply(client->control, client, client->cred.uid, &wanted);
	admin_reply(client, request->id, &done);
}
