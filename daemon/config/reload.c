/*
 * reload.c: from one configuration to the next. See reload.h.
 */
#include "daemon/config/reload.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/notify.h"

static void warn(const char *why) {
	log_warning("%s, ignoring", why);
}

int reload_init(struct reload *reload, const struct options *options, char *why, size_t why_size) {
	*reload = (struct reload){.options = options};
	return config_new(&reload->config, options, warn, why, why_size);
}

void reload_deinit(struct reload *reload) {
	config_free(reload->config);
	*reload = (struct reload){0};
}

/* What needs a restart stays as it was. The typed values of such settings are read at the start
 * alone, so only what is shown must be kept. */
static void keep_what_is_fixed(struct reload *reload, const struct settings *old,
			       struct settings *new) {
	reload->n_pending = 0;
	for (int i = 0; i < _SETTING_N; i++) {
		bool pending =
			!settings_table[i].live && settings_differ(old, new, (enum setting_id)i);

		reload->pending[i] = pending;
		if (pending) {
			log_warning("'%s' is '%s' from the next start on; until then it stays '%s'",
				    settings_table[i].key, new->origin[i].text,
				    old->origin[i].text);
			new->origin[i] = old->origin[i];
			reload->n_pending++;
		}
	}
}

int reload_now(struct reload *reload, char *why, size_t why_size) {
	struct config *old = reload->config, *new;
	int r;

	notify_reloading();
	r = config_new(&new, reload->options, warn, why, why_size);
	if (r < 0) {
		log_error("%s; the configuration stays as it was", why);
		notify_reloaded();
		return r;
	}
	keep_what_is_fixed(reload, &old->settings, &new->settings);
	policies_keep(&new->policies, &old->policies);
	reload->config = new;
	log_set_level(new->settings.log_level);
	if (reload->apply) {
		reload->apply(reload->userdata, &old->settings, &new->settings);
	}
	config_free(old);
	log_info("The configuration in '%s' is read again", new->directory);
	notify_reloaded();
	return 0;
}
