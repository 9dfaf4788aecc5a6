/*
 * config.c: finds and reads the configuration. See config.h.
 */
#include "daemon/config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/suggest.h"
#include "daemon/inifile.h"
#include "daemon/util.h"

#define SECTION "sbeetd"

struct reading {
	struct settings *settings;
	const char *file;
	config_warn_fn warn;
	char *why;
	size_t why_size;
};

static void warn_unknown(const struct reading *r, unsigned line, const char *what, const char *name,
			 const struct suggest *s) {
	char text[512];

	snprintf(text, sizeof(text), "%s:%u: unknown %s '%.64s'%s%s%s", r->file, line, what, name,
		 s->best ? " (did you mean '" : "", s->best ? s->best : "", s->best ? "'?)" : "");
	r->warn(text);
}

static int on_entry(void *userdata, const char *section, const char *key, const char *value,
		    unsigned line) {
	struct reading *r = userdata;
	int id;

	if (strcmp(section, SECTION) != 0) {
		struct suggest s = suggest_start(section);

		suggest_offer(&s, SECTION);
		warn_unknown(r, line, "section", section, &s);
		return 0;
	}
	id = settings_find(key);
	if (id < 0) {
		struct suggest s = suggest_start(key);

		for (int i = 0; i < _SETTING_N; i++) {
			suggest_offer(&s, settings_table[i].key);
		}
		warn_unknown(r, line, "key", key, &s);
		return 0;
	}
	if (settings_set(r->settings, (enum setting_id)id, value, SETTING_FILE, line) < 0) {
		int n = snprintf(r->why, r->why_size, "%s:%u: ", r->file, line);

		if (n > 0 && (size_t)n < r->why_size) {
			settings_complain((enum setting_id)id, value, r->why + n,
					  r->why_size - (size_t)n);
		}
		return -EINVAL;
	}
	return 0;
}

int config_read(struct settings *s, const char *file, const char *text, size_t n,
		config_warn_fn warn, char *why, size_t why_size) {
	struct reading reading = {s, file, warn, why, why_size};
	char where[256];
	int r = inifile_read(text, n, on_entry, &reading, where, sizeof(where));

	if (r == -EBADMSG) {
		snprintf(why, why_size, "%s:%s", file, where);
		return -EINVAL;
	}
	return r;
}

/* Return: 0, -ENAMETOOLONG, or -ENOENT: there is none. */
static int choose_directory(const char *option, char *directory, size_t size) {
	const char *environment = getenv("SBEET_CONFIG_DIR");
	const char *systemd = getenv("CONFIGURATION_DIRECTORY");
	const char *user = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
	int n;

	if (environment && *environment) {
		n = snprintf(directory, size, "%s", environment);
	} else if (option) {
		n = snprintf(directory, size, "%s", option);
	} else if (systemd && *systemd) {
		n = snprintf(directory, size, "%.*s", (int)strcspn(systemd, ":"), systemd);
	} else if (geteuid() == 0) {
		n = snprintf(directory, size, "/etc/sbeet");
	} else if (user && *user) {
		n = snprintf(directory, size, "%s/sbeet", user);
	} else if (home && *home) {
		n = snprintf(directory, size, "%s/.config/sbeet", home);
	} else {
		return -ENOENT;
	}
	return n < 0 || (size_t)n >= size ? -ENAMETOOLONG : 0;
}

static int read_file(struct config *config, config_warn_fn warn, char *why, size_t why_size) {
	char file[PROTO_PATH_MAX + sizeof(CONFIG_FILE) + 1];
	_cleanup_free_ char *text = NULL;
	size_t n;
	int r;

	snprintf(file, sizeof(file), "%s/" CONFIG_FILE, config->directory);
	r = inifile_load(AT_FDCWD, file, &text, &n);
	if (r == -ENOENT) {
		return 0;
	}
	if (r < 0) {
		snprintf(why, why_size, "can't read '%s': %s", file,
			 r == -EFBIG	? "it is larger than 64 KiB"
			 : r == -EINVAL ? "it is not a regular file"
					: strerror(-r));
		return r;
	}
	config->found = true;
	return config_read(&config->settings, file, text, n, warn, why, why_size);
}

int config_new(struct config **ret, const struct options *options, config_warn_fn warn, char *why,
	       size_t why_size) {
	struct config *config = calloc(1, sizeof(*config));
	int r;

	snprintf(why, why_size, "no memory");
	if (!config) {
		return -ENOMEM;
	}
	settings_init(&config->settings);
	r = choose_directory(options->config_dir, config->directory, sizeof(config->directory));
	if (r == -ENAMETOOLONG) {
		snprintf(why, why_size, "the name of the configuration's folder is too long");
	} else {
		r = r < 0 ? 0 : read_file(config, warn, why, why_size);
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
	free(config);
	return NULL;
}
