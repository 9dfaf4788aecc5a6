/*
 * admin.c: see admin.h.
 */
#include "daemon/admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/reload.h"
#include "daemon/server.h"
#include "daemon/util.h"

static bool is_admin(const struct control_client *client) {
	return client->uid == 0 || client->uid == geteuid();
}

static void send_config(struct control_client *client, uint32_t id, bool last,
			Sbeet__Control__Config *config) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = last;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_CONFIG;
	reply.config = config;
	control_client_send(client, &reply);
}

static void fill_setting(const struct reload *reload, int id, const char *file,
			 Sbeet__Control__ConfigValue *ret) {
	const struct settings *s = &reload->config->settings;

	sbeet__control__config_value__init(ret);
	ret->section = (char *)"sbeetd";
	ret->key = (char *)settings_table[id].key;
	ret->value = (char *)s->origin[id].text;
	ret->source = (char *)settings_source_name(s->origin[id].source);
	ret->file = (char *)(s->origin[id].source == SETTING_FILE ? file : "");
	ret->line = s->origin[id].line;
	ret->live = settings_table[id].live;
	ret->pending = reload->pending[id];
	ret->help = (char *)settings_table[id].help;
}

void admin_config(struct control_client *client, const Sbeet__Control__Request *request) {
	struct reload *reload = client->server->reload;
	Sbeet__Control__ConfigValue values[_SETTING_N], *pointers[_SETTING_N];
	Sbeet__Control__Config config = SBEET__CONTROL__CONFIG__INIT;
	char file[PROTO_PATH_MAX + sizeof(CONFIG_FILE) + 1], why[PROTO_TEXT_MAX];

	if (request->config->reload && !is_admin(client)) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
				     "only admins may make sbeetd read its configuration again");
		return;
	}
	if (request->config->reload && reload_now(reload, why, sizeof(why)) < 0) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_CONFIG,
				     why);
		return;
	}
	snprintf(file, sizeof(file), "%s/" CONFIG_FILE, reload->config->directory);
	for (int i = 0; i < _SETTING_N; i++) {
		fill_setting(reload, i, file, &values[i]);
		pointers[i] = &values[i];
	}
	config.values = pointers;
	config.n_values = _SETTING_N;
	config.directory = reload->config->directory;
	config.found = reload->config->found;
	send_config(client, request->id, true, &config);
}
