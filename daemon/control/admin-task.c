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
#include "proto/change.h"

/* ---- programs that run ---- */

/* The first values are those that policies and the grid of releases depend on. */
static void change(const Sbeet__Control__TaskChange *wanted, struct task *task, nsec_t now) {
	if (wanted->mask & CHANGE_CLASS) {
		task->task_class = wanted->task_class;
	}
	if (wanted->mask & CHANGE_DEADLINE) {
		task->deadline = wanted->deadline_ns;
	}
	if (wanted->mask & CHANGE_OFFSET) {
		task->offset = wanted->offset_ns;
	}
	if (wanted->mask & CHANGE_PERIOD) {
		task->period = wanted->period_ns;
	}
	if (wanted->mask & (CHANGE_PERIOD | CHANGE_OFFSET)) {
		task_start(task, now);
	}
	if (wanted->mask & CHANGE_PRIORITY) {
		task->priority = wanted->priority;
	}
	if (wanted->mask & CHANGE_PROFILE) {
		snprintf(task->profile, sizeof(task->profile), "%s", wanted->profile);
	}
	if (wanted->mask & CHANGE_GPU) {
		task->gpu = wanted->gpu < 0 ? -1 : wanted->gpu;
	}
	if (wanted->mask & CHANGE_MIN_SMS) {
		task->min_sms = wanted->min_sms;
	}
	if (wanted->mask & CHANGE_MAX_SMS) {
		task->max_sms = wanted->max_sms;
	}
}

/* A running program can't move: its GPU is for later ones. */
static bool is_elsewhere(const struct session *s, const Sbeet__Control__TaskChange *wanted) {
	return (wanted->mask & CHANGE_GPU) && wanted->gpu >= 0 &&
	       (s->gpus & ~BIT((unsigned)wanted->gpu));
}

/* What of it session @s, one of the task, becomes. */
static struct task changed(const struct session *s, const Sbeet__Control__TaskChange *wanted) {
	Sbeet__Control__TaskChange fitting = *wanted;
	struct task task = s->task;

	if (is_elsewhere(s, wanted)) {
		fitting.mask &= ~(uint32_t)CHANGE_GPU;
	}
	change(&fitting, &task, s->all->now());
	return task;
}

static bool is_of_task(const struct session *s, const char *name) {
	return s->state == SESSION_ACTIVE && strcmp(s->task.name, name) == 0;
}

/* Why the values do not go together; NULL: they do. */
static const char *contradiction(const struct task *task) {
	if (task->period && task->deadline > task->period) {
		return "the deadline would be beyond the period";
	}
	if (task->max_sms > 0 && task->min_sms > task->max_sms) {
		return "min-sms would be above max-sms";
	}
	return NULL;
}

/* Why this session's task may not become so; false: it may. */
static bool object(struct control_client *client, uint32_t id, const struct session *s,
		   const Sbeet__Control__TaskChange *wanted) {
	const struct config *config = client->control->reload->config;
	struct task task = changed(s, wanted);
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
static bool look(struct control_client *client, uint32_t id,
		 const Sbeet__Control__TaskChange *wanted, uint32_t *ret_found, uint32_t *ret_own) {
	struct session *s;

	*ret_found = *ret_own = 0;
	TAILQ_FOREACH(s, &client->control->sessions->list, link) {
		if (!is_of_task(s, wanted->task)) {
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
		      const Sbeet__Control__TaskChange *wanted) {
	struct session *s;
	uint32_t n = 0;

	TAILQ_FOREACH(s, &control->sessions->list, link) {
		struct task task;

		if (!is_of_task(s, wanted->task) || (client && !admin_may_change(client, s))) {
			continue;
		}
		task = changed(s, wanted);
		if (!contradiction(&task)) { /* which one could be that came meanwhile */
			session_task_set(s, &task);
			n++;
		}
	}
	log_change(client ? admin_log(client) : NULL,
		   &(struct log_about){
			   .id = LOG_ID_CHANGE, .task = wanted->task, .gpu = -1, .uid = uid},
		   "Task '%s' is changed in %u sessions by user %u%s", wanted->task, n, uid,
		   wanted->save ? ", and saved" : "");
	return n;
}

/* ---- its file ---- */

struct task_save {
	struct control *control;       /* borrowed */
	struct control_client *client; /* borrowed; NULL: it is gone */
	uint32_t request;
	uid_t uid;
	Sbeet__Control__TaskChange wanted; /* with the texts below */
	char profile[PROTO_NAME_MAX + 1];
	struct taskfile file;
	char path[2 * PROTO_PATH_MAX];
	struct saving *saving; /* owned */
};

#define VALUES_MAX 9
#define VALUE_MAX  80

struct values {
	struct taskedit_value list[VALUES_MAX];
	char texts[VALUES_MAX][VALUE_MAX];
	size_t n;
};

__attribute__((format(printf, 3, 4))) static void add(struct values *v, const char *key,
						      const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(v->texts[v->n], VALUE_MAX, format, args);
	va_end(args);
	v->list[v->n] = (struct taskedit_value){key, v->texts[v->n]};
	v->n++;
}

/* Exactly, in the largest unit of which it is a whole number. */
static void add_time(struct values *v, const char *key, nsec_t t) {
	static const struct {
		nsec_t length;
		const char *name;
	} units[] = {{NSEC_PER_SEC, "s"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_USEC, "us"}, {1, "ns"}};
	size_t i = 0;

	if (t == 0) {
		add(v, key, "none");
		return;
	}
	while (t % units[i].length > 0) {
		i++;
	}
	add(v, key, "%llu%s", (unsigned long long)(t / units[i].length), units[i].name);
}

static void add_sms(struct values *v, const char *key, uint32_t n) {
	if (n == 0) {
		add(v, key, "none");
	} else {
		add(v, key, "%u", n);
	}
}

/* As lines of the file. */
static void list_values(const Sbeet__Control__TaskChange *wanted, struct values *v) {
	v->n = 0;
	if (wanted->mask & CHANGE_CLASS) {
		add(v, "class",
		    wanted->task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME ? "realtime"
										 : "best-effort");
	}
	if (wanted->mask & CHANGE_PERIOD) {
		add_time(v, "period", wanted->period_ns);
	}
	if (wanted->mask & CHANGE_DEADLINE) {
		add_time(v, "deadline", wanted->deadline_ns);
	}
	if (wanted->mask & CHANGE_OFFSET) {
		add_time(v, "offset", wanted->offset_ns);
	}
	if (wanted->mask & CHANGE_PRIORITY) {
		add(v, "priority", "%d", wanted->priority);
	}
	if (wanted->mask & CHANGE_PROFILE) {
		add(v, "profile", "%s", wanted->profile);
	}
	if (wanted->mask & CHANGE_GPU && wanted->gpu < 0) {
		add(v, "gpu", "any");
	} else if (wanted->mask & CHANGE_GPU) {
		add(v, "gpu", "%d", wanted->gpu);
	}
	if (wanted->mask & CHANGE_MIN_SMS) {
		add_sms(v, "min-sms", wanted->min_sms);
	}
	if (wanted->mask & CHANGE_MAX_SMS) {
		add_sms(v, "max-sms", wanted->max_sms);
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
	snprintf(head, sizeof(head), "By 'sbeetctl task set %s --save'.", save->wanted.task);
	r = taskedit_apply(old, n, head, values.list, values.n, &text, &n);
	if (r < 0) {
		snprintf(why, size, "no memory");
		return r;
	}
	config_init(&config);
	r = config_read_task(&config, save->wanted.task, save->path, text, n, ignore, why, size);
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
		log_warning("Task '%s' is not saved: %s", save->wanted.task, text);
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
static bool begin_save(struct control_client *client, uint32_t id,
		       const Sbeet__Control__TaskChange *wanted) {
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
		snprintf(save->profile, sizeof(save->profile), "%s", wanted->profile);
		save->wanted.profile = save->profile;
		taskfile_init(&save->file, wanted->task);
		save->wanted.task = save->file.name;
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

static void save(struct control_client *client, uint32_t id,
		 const Sbeet__Control__TaskChange *wanted) {
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
	const Sbeet__Control__TaskChange *wanted = request->task_change;
	Sbeet__Control__Done done = SBEET__CONTROL__DONE__INIT;
	uint32_t n_found, n_own;

	if ((wanted->mask & CHANGE_GPU) && wanted->gpu >= 0 &&
	    (size_t)wanted->gpu >= inventory_n_gpus(client->control->inventory)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no GPU %d", wanted->gpu);
		return;
	}
	if (!look(client, request->id, wanted, &n_found, &n_own)) {
		return;
	}
	if (wanted->save) {
		save(client, request->id, wanted);
		return;
	}
	if (n_own == 0) {
		admin_refuse(client, request->id,
			     n_found > 0 ? SBEET__ERROR_CODE__ERROR_CODE_DENIED
					 : SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     n_found > 0 ? "task '%s' is another user's: only admins may change it"
					 : "no program of a task '%s' is connected",
			     wanted->task);
		return;
	}
	done.changed = apply(client->control, client, client->cred.uid, wanted);
	admin_reply(client, request->id, &done);
}
