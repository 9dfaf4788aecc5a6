/*
 * verb-config.c: `sbeetctl config` and `reload`: what sbeetd is told, and where each value comes
 * from.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/live/control.h"
#include "client/verb.h"

static int ask(bool reload, struct control_answer *ret) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__ConfigRequest wanted = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	struct control *control;
	char error[2048];
	int r = control_open(&control, error, sizeof(error));

	if (r == 0) {
		wanted.reload = reload;
		request.body_case = SBEET__CONTROL__REQUEST__BODY_CONFIG;
		request.config = &wanted;
		r = control_call(control, &request, ret, error, sizeof(error));
		control_close(control);
	}
	if (r != 0) {
		ctl_error("%s", error);
	}
	return r;
}

typedef int (*value_fn)(const Sbeet__Control__ConfigValue *v, void *data);

/* Stops at the first call that does not return 0, and returns that. */
static int for_each(const struct control_answer *answer, value_fn call, void *data) {
	for (size_t i = 0; i < answer->n_replies; i++) {
		const Sbeet__Control__Reply *reply = answer->replies[i];

		if (reply->body_case != SBEET__CONTROL__REPLY__BODY_CONFIG) {
			continue;
		}
		for (size_t j = 0; j < reply->config->n_values; j++) {
			int r = call(reply->config->values[j], data);

			if (r != 0) {
				return r;
			}
		}
	}
	return 0;
}

static int add_json(const Sbeet__Control__ConfigValue *v, void *data) {
	return json_array_append_new(
		data, json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b}", "section",
				json_text(v->section), "key", json_text(v->key), "value",
				json_text(v->value), "source", json_text(v->source), "file",
				json_text(*v->file ? v->file : NULL), "line",
				json_u64_known(v->line), "live", v->live, "pending", v->pending));
}

static int add_row(const Sbeet__Control__ConfigValue *v, void *data) {
	struct table *t = data;
	char where[1100];

	snprintf(where, sizeof(where), "%s:%u", v->file, v->line);
	table_text(t, v->section);
	table_text(t, v->key);
	table_text(t, v->value);
	table_text(t, *v->file ? where : v->source);
	table_text(t, v->pending ? "changes at restart" : v->live ? "reload" : "restart");
	return 0;
}

static int print_table(const struct ctl *ctl, const struct control_answer *answer) {
	static const struct table_column columns[] = {{"section", "SECTION"},
						      {"key", "KEY"},
						      {"value", "VALUE"},
						      {"source", "FROM"},
						      {"changes", "CHANGES BY"}};
	struct table *t;
	int r = table_new(&t, columns, sizeof(columns) / sizeof(columns[0]));

	if (r < 0) {
		ctl_error("cannot list the configuration: out of memory");
		return CTL_EXIT_FAILED;
	}
	for_each(answer, add_row, t);
	return listing_show(ctl, t, "the configuration");
}

static int print_json(const struct ctl *ctl, const struct control_answer *answer) {
	const Sbeet__Control__Config *last = answer->replies[answer->n_replies - 1]->config;
	json_t *values = json_array();

	if (!values || for_each(answer, add_json, values) != 0) {
		json_decref(values);
		ctl_error("cannot list the configuration: out of memory");
		return CTL_EXIT_FAILED;
	}
	return listing_json(ctl,
			    json_pack("{s:o, s:b, s:o}", "directory", json_text(last->directory),
				      "found", last->found, "values", values));
}

static int config(const struct ctl *ctl) {
	struct control_answer answer;
	int r = ask(false, &answer);

	if (r != 0) {
		return r;
	}
	r = ctl->common.json != JSON_OFF ? print_json(ctl, &answer) : print_table(ctl, &answer);
	control_answer_deinit(&answer);
	return r;
}

static int warn_pending(const Sbeet__Control__ConfigValue *v, void *data) {
	if (v->pending) {
		ctl_warn(data, "'%s' changes when sbeetd is restarted", v->key);
	}
	return 0;
}

static int reload(const struct ctl *ctl) {
	struct control_answer answer;
	int r = ask(true, &answer);

	if (r == 0) {
		for_each(&answer, warn_pending, (void *)ctl);
		control_answer_deinit(&answer);
	}
	return r;
}

const struct verb verb_config = {
	.name = "config",
	.args = "",
	.summary = "show sbeetd's settings and where each comes from",
	.flags = VERB_READS | VERB_TABLE,
	.function = config,
};

const struct verb verb_reload = {
	.name = "reload",
	.args = "",
	.summary = "make sbeetd reread its configuration",
	.function = reload,
};
