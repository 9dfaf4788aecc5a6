/*
 * admin.c: see admin.h.
 */
#include "daemon/control/admin.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/session/admission.h"
#include "daemon/session/session-task.h"
#include "daemon/watch/report.h"

bool admin_may(const struct control_client *client) {
	struct peer peer;

	return peer_read(client->fd, &peer) == 0 &&
	       access_is_admin(&client->control->reload->config->access, &peer, client->power);
}

struct log_budget *admin_log(const struct control_client *client) {
	return admin_may(client) ? NULL : quota_log_changes(client->user);
}

bool admin_may_change(const struct control_client *client, const struct session *s) {
	/* Sessions of uid 0 may be those of several containers. */
	bool own = client->cred.uid == s->cred.uid && (s->cred.uid != 0 || client->power);

	return own || admin_may(client);
}

void admin_reply(struct control_client *client, uint32_t id, Sbeet__Control__Done *done) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_DONE;
	reply.done = done;
	control_client_send(client, &reply);
}

static void send_done(struct control_client *client, uint32_t id, uint32_t changed) {
	Sbeet__Control__Done done = SBEET__CONTROL__DONE__INIT;

	done.changed = changed;
	admin_reply(client, id, &done);
}

void admin_refuse(struct control_client *client, uint32_t id, Sbeet__ErrorCode code,
		  const char *format, ...) {
	char text[PROTO_TEXT_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	control_client_error(client, id, code, text);
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

/* Values on their way to the peer, in packets of some. */
#define VALUES_PER_PACKET 32

struct values {
	struct control_client *client;
	uint32_t id;
	Sbeet__Control__Config config;
	Sbeet__Control__ConfigValue list[VALUES_PER_PACKET], *pointers[VALUES_PER_PACKET];
	struct {
		char section[PROTO_NAME_MAX + 16], file[2 * PROTO_PATH_MAX];
		char value[SCHED_PARAM_TEXT_MAX];
	} texts[VALUES_PER_PACKET];
};

/* The next value, all defaults, with its own room for texts. */
static Sbeet__Control__ConfigValue *next_value(struct values *v, const char *section,
					       const char *name, const char *file) {
	size_t n = v->config.n_values;
	const char *directory = v->client->control->reload->config->directory;

	if (n == VALUES_PER_PACKET) {
		send_config(v->client, v->id, false, &v->config);
		v->config.n_values = n = 0;
	}
	snprintf(v->texts[n].section, sizeof(v->texts[n].section), "%s%s%s", section,
		 *name ? " " : "", name);
	snprintf(v->texts[n].file, sizeof(v->texts[n].file), "%s%s%s", *file ? directory : "",
		 *file ? "/" : "", file);
	sbeet__control__config_value__init(&v->list[n]);
	v->list[n].section = v->texts[n].section;
	v->list[n].file = v->texts[n].file;
	v->list[n].live = true;
	v->pointers[n] = &v->list[n];
	v->config.n_values++;
	return &v->list[n];
}

/* @policy: in force, which somebody may have set since the files were read. */
static void add_settings(struct values *values, const struct reload *reload, const char *policy) {
	const struct settings *s = &reload->config->settings;

	for (int i = 0; i < _SETTING_N; i++) {
		bool from_file = s->origin[i].source == SETTING_FILE;
		Sbeet__Control__ConfigValue *v =
			next_value(values, "sbeetd", "", from_file ? CONFIG_FILE : "");

		v->key = (char *)settings_table[i].key;
		v->value = (char *)s->origin[i].text;
		v->source = (char *)settings_source_name(s->origin[i].source);
		v->line = s->origin[i].line;
		v->live = settings_table[i].live;
		v->pending = reload->pending[i];
		v->help = (char *)settings_table[i].help;
		if (i == SETTING_POLICY && strcmp(v->value, policy) != 0) {
			v->value = (char *)policy;
			v->source = (char *)settings_source_name(SETTING_REQUEST);
			v->file = (char *)"";
			v->line = 0;
		}
	}
}

/* Of the policy in force, @policy, all parameters; of others, those that somebody has set. */
static void add_policies(struct values *values, const struct policies *policies,
			 const struct sched_policy *policy) {
	for (size_t i = 0; i < policies->n; i++) {
		const struct policy_values *p = &policies->list[i];

		for (int k = 0; k < _SCHED_PARAM_N; k++) {
			enum sched_param_id which = (enum sched_param_id)k;
			bool from_file = p->origin[k].source == SETTING_FILE;
			Sbeet__Control__ConfigValue *v;

			if (!sched_param_is_live(p->policy, which) ||
			    (p->policy != policy && p->origin[k].source == SETTING_DEFAULT)) {
				continue;
			}
			v = next_value(values, "policy", p->policy->name,
				       from_file ? CONFIG_FILE : "");
			v->key = (char *)sched_param_rows[k].name;
			v->value = values->texts[values->config.n_values - 1].value;
			sched_param_print(&p->params, which, v->value);
			v->source = (char *)settings_source_name(p->origin[k].source);
			v->line = p->origin[k].line;
			v->help = (char *)sched_param_rows[k].summary;
		}
	}
}

static void add_access(struct values *values, const struct access *access) {
	for (size_t i = 0; i < access->n_rules; i++) {
		const struct access_rule *rule = &access->rules[i];

		for (int k = 0; k < _ACCESS_KEY_N; k++) {
			unsigned line = rule->values[k].line;
			Sbeet__Control__ConfigValue *v;

			if (!rule->values[k].set) {
				continue;
			}
			v = next_value(values, rule->section, "", line ? CONFIG_FILE : "");
			v->key = (char *)access_table[k].key;
			v->value = (char *)rule->values[k].text;
			v->source =
				(char *)settings_source_name(line ? SETTING_FILE : SETTING_DEFAULT);
			v->line = line;
			v->help = (char *)access_table[k].help;
		}
	}
}

static void add_task(struct values *values, const struct taskfile *task) {
	char file[sizeof(CONFIG_TASKS) + sizeof(task->file)];

	snprintf(file, sizeof(file), CONFIG_TASKS "/%s", task->file);
	for (int k = 0; k < _TASKFILE_KEY_N; k++) {
		Sbeet__Control__ConfigValue *v;

		if (!task->values[k].set) {
			continue;
		}
		v = next_value(values, "task", task->name, file);
		v->key = (char *)taskfile_table[k].key;
		v->value = (char *)task->values[k].text;
		v->source = (char *)settings_source_name(SETTING_FILE);
		v->line = task->values[k].line;
		v->help = (char *)taskfile_table[k].help;
	}
}

void admin_config(struct control_client *client, const Sbeet__Control__Request *request) {
	struct reload *reload = client->control->reload;
	struct values values = {.client = client, .id = request->id};
	char why[PROTO_TEXT_MAX];

	if (request->config->reload && !admin_may(client)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "only admins may make sbeetd read its configuration again");
		return;
	}
	if (request->config->reload && reload_now(reload, why, sizeof(why)) < 0) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_CONFIG, "%s", why);
		return;
	}
	sbeet__control__config__init(&values.config);
	values.config.values = values.pointers;
	add_settings(&values, reload,
		     sched_get_policy(engine_sched(client->control->engine))->name);
	add_policies(&values, &reload->config->policies,
		     sched_get_policy(engine_sched(client->control->engine)));
	add_access(&values, &reload->config->access);
	for (size_t i = 0; i < reload->config->n_tasks; i++) {
		add_task(&values, &reload->config->tasks[i]);
	}
	values.config.directory = reload->config->directory;
	values.config.found = reload->config->found;
	send_config(client, request->id, true, &values.config);
}

void admin_drain_gpu(struct control_client *client, const Sbeet__Control__Request *request) {
	const Sbeet__Control__GpuDrain *wanted = request->gpu_drain;
	struct control *control = client->control;
	bool changed;

	if (!admin_may(client)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			     "only admins may drain or resume a GPU");
		return;
	}
	if (wanted->gpu >= inventory_n_gpus(control->inventory)) {
		admin_refuse(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT,
			     "there is no GPU %u", wanted->gpu);
		return;
	}
	changed = sched_gpu(engine_sched(control->engine), wanted->gpu)->drained == wanted->resume;
	if (changed) {
		log_change(admin_log(client),
			   &(struct log_about){.id = LOG_ID_CHANGE,
					       .gpu = (int)wanted->gpu,
					       .uid = client->cred.uid},
			   "GPU %u is %s by user %u", wanted->gpu,
			   wanted->resume ? "resumed" : "drained", client->cred.uid);
		engine_drain_gpu(control->engine, wanted->gpu, !wanted->resume);
		report_drain(control->report, wanted->gpu, !wanted->resume);
	}
	send_done(client, request->id, changed);
}
