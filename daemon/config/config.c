/*
 * config.c: finds and reads the configuration. See config.h.
 */
#include "daemon/config/config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/files.h"
#include "daemon/base/inifile.h"
#include "daemon/base/util.h"
#include "daemon/book/suggest.h"
#include "proto/validate.h"

#define SECTION	       "sbeetd"
#define SECTION_POLICY "policy "

/* One file as it is read. */
struct reading {
	struct config *config;
	struct taskfile *task; /* NULL: it is sbeetd.conf */
	const char *file;
	config_warn_fn warn;
	unsigned line;
	char *why;
	size_t why_size;
};

static void warn_unknown(const struct reading *r, const char *what, const char *name,
			 const struct suggest *s) {
	char text[512];

	snprintf(text, sizeof(text), "%s:%u: unknown %s '%.64s'%s%s%s", r->file, r->line, what,
		 name, s->best ? " (did you mean '" : "", s->best ? s->best : "",
		 s->best ? "'?)" : "");
	r->warn(text);
}

/* The reason, with file and line in front. */
static int refuse(const struct reading *r, const char *why) {
	snprintf(r->why, r->why_size, "%s:%u: %s", r->file, r->line, why);
	return -EINVAL;
}

static void warn_section(const struct reading *r, const char *section) {
	static const char *const known[] = {SECTION,	   "users",	  "user NAME",
					    "group NAME", "policy NAME", "match",
					    "task"};
	struct suggest s = suggest_start(section);

	for (size_t i = r->task ? 5 : 0; i < (r->task ? 7u : 5u); i++) {
		suggest_offer(&s, known[i]);
	}
	warn_unknown(r, "section", section, &s);
}

static void warn_key(const struct reading *r, const char *section, const char *key) {
	struct suggest s = suggest_start(key);

	for (int i = 0; r->task && i < _TASKFILE_KEY_N; i++) {
		if (strcmp(taskfile_table[i].section, section) == 0) {
			suggest_offer(&s, taskfile_table[i].key);
		}
	}
	for (int i = 0; !r->task && strcmp(section, SECTION) == 0 && i < _SETTING_N; i++) {
		suggest_offer(&s, settings_table[i].key);
	}
	for (int i = 0; !r->task && strcmp(section, SECTION) != 0 && i < _ACCESS_KEY_N; i++) {
		suggest_offer(&s, access_table[i].key);
	}
	warn_unknown(r, "key", key, &s);
}

static void warn_nobody(void *userdata, const char *word) {
	struct suggest none = {0};

	warn_unknown(userdata, "user or group", word, &none);
}

/* A key of [sbeetd]. */
static int set_setting(struct reading *r, const char *key, const char *value) {
	int id = settings_find(key);
	char why[512];

	if (id < 0) {
		warn_key(r, SECTION, key);
		return 0;
	}
	if (settings_set(&r->config->settings, (enum setting_id)id, value, SETTING_FILE, r->line) <
	    0) {
		settings_complain((enum setting_id)id, value, why, sizeof(why));
		return refuse(r, why);
	}
	if (id == SETTING_ADMINS &&
	    access_set_admins(&r->config->access, value, warn_nobody, r) < 0) {
		return refuse(r, "admins: expected at most 32 users and groups");
	}
	return 0;
}

/* A key of [policy NAME]. */
static int set_param(struct reading *r, const char *name, const char *key, const char *value) {
	struct policy_values *policy = policies_find(&r->config->policies, name);
	struct suggest s = suggest_start(name);
	char why[512], text[768];
	int result;

	if (!policy) {
		for (size_t i = 0; i < r->config->policies.n; i++) {
			suggest_offer(&s, r->config->policies.list[i].policy->name);
		}
		warn_unknown(r, "policy", name, &s);
		return 0;
	}
	result = policies_set(policy, key, value, SETTING_FILE, r->line, why, sizeof(why));
	if (result == POLICIES_E_KEY) {
		snprintf(text, sizeof(text), "%s:%u: %s", r->file, r->line, why);
		r->warn(text);
		return 0;
	}
	return result < 0 ? refuse(r, why) : 0;
}

/* A key of another section, or of a task's file. */
static int set_other(struct reading *r, const char *section, const char *key, const char *value) {
	char why[512];
	struct suggest none = {0};
	int result;

	if (r->task) {
		result = taskfile_set(r->task, section, key, value, r->line, why, sizeof(why));
		result = result == TASKFILE_E_SECTION ? ACCESS_E_SECTION
			 : result == TASKFILE_E_KEY   ? ACCESS_E_KEY
						      : result;
	} else {
		result = access_set(&r->config->access, section, key, value, r->line, why,
				    sizeof(why));
	}
	switch (result) {
	case ACCESS_E_SECTION:
		warn_section(r, section);
		return 0;
	case ACCESS_E_NOBODY:
		warn_unknown(r, "user or group in section", section, &none);
		return 0;
	case ACCESS_E_KEY:
		warn_key(r, section, key);
		return 0;
	default:
		return result < 0 ? refuse(r, why) : 0;
	}
}

static int on_entry(void *userdata, const char *section, const char *key, const char *value,
		    unsigned line) {
	struct reading *r = userdata;

	r->line = line;
	if (!r->task && strcmp(section, SECTION) == 0) {
		return set_setting(r, key, value);
	}
	if (!r->task && strncmp(section, SECTION_POLICY, strlen(SECTION_POLICY)) == 0) {
		return set_param(r, section + strlen(SECTION_POLICY), key, value);
	}
	return set_other(r, section, key, value);
}

static int read_text(struct reading *r, const char *text, size_t n) {
	char where[256];
	int result = inifile_read(text, n, on_entry, r, where, sizeof(where));

	if (result == -EBADMSG || result == -ENOMEM) {
		snprintf(r->why, r->why_size, "%s:%s", r->file, where);
		return result == -EBADMSG ? -EINVAL : result;
	}
	return result;
}

void config_init(struct config *config) {
	*config = (struct config){0};
	settings_init(&config->settings);
	policies_init(&config->policies);
	access_init(&config->access);
}

void config_deinit(struct config *config) {
	free(config->tasks);
}

int config_read(struct config *config, const char *file, const char *text, size_t n,
		config_warn_fn warn, char *why, size_t why_size) {
	struct reading reading = {
		.config = config, .file = file, .warn = warn, .why = why, .why_size = why_size};

	return read_text(&reading, text, n);
}

int config_read_task(struct config *config, const char *name, const char *file, const char *text,
		     size_t n, config_warn_fn warn, char *why, size_t why_size) {
	struct reading reading = {
		.config = config, .file = file, .warn = warn, .why = why, .why_size = why_size};
	struct taskfile *tasks;
	char check[256];
	int r;

	if (config->n_tasks == TASKFILES_MAX) {
		return refuse(&reading, "expected at most 256 files of tasks");
	}
	tasks = reallocarray(config->tasks, config->n_tasks + 1, sizeof(*tasks));
	if (!tasks) {
		snprintf(why, why_size, "no memory");
		return -ENOMEM;
	}
	config->tasks = tasks;
	reading.task = &tasks[config->n_tasks];
	taskfile_init(reading.task, name);
	r = read_text(&reading, text, n);
	if (r == 0 && taskfile_check(reading.task, check, sizeof(check)) < 0) {
		snprintf(why, why_size, "%s:%s", file, check);
		r = -EINVAL;
	}
	config->n_tasks += r == 0;
	return r;
}

int config_put_task(struct config *config, const struct taskfile *task) {
	struct taskfile *tasks;
	size_t at = 0;

	while (at < config->n_tasks && strcmp(config->tasks[at].file, task->file) < 0) {
		at++;
	}
	if (at == config->n_tasks || strcmp(config->tasks[at].file, task->file) != 0) {
		if (config->n_tasks == TASKFILES_MAX) {
			return -E2BIG;
		}
		tasks = reallocarray(config->tasks, config->n_tasks + 1, sizeof(*tasks));
		if (!tasks) {
			return -ENOMEM;
		}
		config->tasks = tasks;
		memmove(&tasks[at + 1], &tasks[at], (config->n_tasks - at) * sizeof(*tasks));
		config->n_tasks++;
	}
	config->tasks[at] = *task;
	return 0;
}

static int load(const char *file, char **ret_text, size_t *ret_n, char *why, size_t why_size) {
	int r = files_read(AT_FDCWD, file, INIFILE_SIZE_MAX, ret_text, ret_n);

	if (r < 0 && r != -ENOENT) {
		snprintf(why, why_size, "can't read '%s': %s", file,
			 r == -EFBIG	? "it is larger than 64 KiB"
			 : r == -EINVAL ? "it is not a regular file"
					: strerror(-r));
	}
	return r;
}

static int read_main(struct config *config, config_warn_fn warn, char *why, size_t why_size) {
	char file[PROTO_PATH_MAX + sizeof(CONFIG_FILE) + 1];
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r;

	snprintf(file, sizeof(file), "%s/" CONFIG_FILE, config->directory);
	r = load(file, &text, &n, why, why_size);
	if (r < 0) {
		return r == -ENOENT ? 0 : r;
	}
	config->found = true;
	return config_read(config, file, text, n, warn, why, why_size);
}

/* NAME.conf. Others are no concern of ours: editors leave copies. */
static int is_task_file(const struct dirent *entry) {
	size_t n = strlen(entry->d_name);

	return n > 5 && strcmp(entry->d_name + n - 5, ".conf") == 0;
}

static int read_task(struct config *config, const char *entry, config_warn_fn warn, char *why,
		     size_t why_size) {
	char file[PROTO_PATH_MAX + sizeof(CONFIG_TASKS) + 258], name[256];
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r;

	snprintf(file, sizeof(file), "%s/" CONFIG_TASKS "/%s", config->directory, entry);
	snprintf(name, sizeof(name), "%.*s", (int)strlen(entry) - 5, entry);
	if (validate_name(name) < 0) {
		snprintf(why, why_size,
			 "%s: expected a task's name before '.conf', 1 to %d of [A-Za-z0-9._@:+-]",
			 file, PROTO_NAME_MAX);
		return -EINVAL;
	}
	r = load(file, &text, &n, why, why_size);
	if (r < 0) {
		return r == -ENOENT ? 0 : r; /* gone since the folder was listed */
	}
	return config_read_task(config, name, file, text, n, warn, why, why_size);
}

static int read_tasks(struct config *config, config_warn_fn warn, char *why, size_t why_size) {
	char folder[PROTO_PATH_MAX + sizeof(CONFIG_TASKS) + 1];
	struct dirent **entries;
	int n, r = 0;

	snprintf(folder, sizeof(folder), "%s/" CONFIG_TASKS, config->directory);
	n = scandir(folder, &entries, is_task_file, alphasort);
	if (n < 0) {
		if (errno == ENOENT) {
			return 0;
		}
		r = -errno;
		snprintf(why, why_size, "can't read '%s': %s", folder, strerror(-r));
		return r;
	}
	for (int i = 0; i < n; i++) {
		if (r == 0) {
			r = read_task(config, entries[i]->d_name, warn, why, why_size);
		}
		free(entries[i]);
	}
	free(entries);
	return r;
}

int config_new(struct config **ret, const struct options *options, config_warn_fn warn, char *why,
	       size_t why_size) {
	const struct files_places places = {
		.variable = "SBEET_CONFIG_DIR",
		.option = options->config_dir,
		.systemd = "CONFIGURATION_DIRECTORY",
		.root = "/etc/sbeet",
		.user = "XDG_CONFIG_HOME",
		.home = ".config/sbeet",
	};
	struct config *config = malloc(sizeof(*config));
	int r;

	snprintf(why, why_size, "no memory");
	if (!config) {
		return -ENOMEM;
	}
	config_init(config);
	r = files_choose(&places, config->directory, sizeof(config->directory));
	if (r == -ENAMETOOLONG) {
		snprintf(why, why_size, "the name of the configuration's folder is too long");
	} else if (r == 0 && options->config_dir && access(config->directory, F_OK) < 0) {
		r = -errno;
		snprintf(why, why_size, "can't read the configuration's folder '%s': %s",
			 config->directory, strerror(-r));
	} else if (r == 0) {
		r = read_main(config, warn, why, why_size);
		r = r == 0 ? read_tasks(config, warn, why, why_size) : r;
	} else {
		r = 0; /* nobody knows of one: the defaults serve */
	}
	for (int i = 0; i < _SETTING_N && r == 0; i++) {
		if (options->texts[i]) {
			r = settings_set(&config->settings, (enum setting_id)i, options->texts[i],
					 SETTING_COMMAND_LINE, 0);
		}
	}
	if (r < 0) {
		config_free(config);
		return r;
	}
	*ret = config;
	return 0;
}

struct config *config_free(struct config *config) {
	if (config) {
		config_deinit(config);
		free(config);
	}
	return NULL;
}
