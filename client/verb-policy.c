/*
 * verb-policy.c: `sbeetctl policy`: the policies there are, and the parameters that they read; with
 * a name, sets the one that sbeetd follows from now on, and its parameters.
 */
#include <stdio.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/base/listing.h"
#include "client/base/table.h"
#include "client/live/control.h"
#include "client/live/snapshot.h"
#include "client/options.h"
#include "client/sim/params.h"
#include "client/sim/select.h"
#include "client/verb.h"

/* What sbeetd says; all empty if it can't be asked. */
struct told {
	char policy[64]; /* in force */
	unsigned profiles;
	struct control_answer config; /* its values: see told_value() */
	bool has_config;
};

static void told_deinit(struct told *t) {
	if (t->has_config) {
		control_answer_deinit(&t->config);
	}
}

/* Return: whether it could be asked. */
static bool ask(struct told *ret) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__ConfigRequest config = SBEET__CONTROL__CONFIG_REQUEST__INIT;
	struct control *control;
	struct snapshot s;
	char error[2048];
	bool told;

	*ret = (struct told){0};
	if (control_open(&control, error, sizeof(error)) != CTL_EXIT_OK) {
		return false;
	}
	told = snapshot_init(&s, control, error, sizeof(error)) == CTL_EXIT_OK;
	if (told) {
		snprintf(ret->policy, sizeof(ret->policy), "%s", s.service->policy);
		ret->profiles = s.service->profiles;
		snapshot_deinit(&s);
		request.body_case = SBEET__CONTROL__REQUEST__BODY_CONFIG;
		request.config = &config;
		ret->has_config =
			control_call(control, &request, &ret->config, error, sizeof(error)) == 0;
	}
	control_close(control);
	return told;
}

/* The value of a policy's parameter; NULL: sbeetd does not tell, as it is the default of a policy
 * that is not in force. */
static const char *told_value(const struct told *t, const char *policy, const char *param) {
	char section[128];

	snprintf(section, sizeof(section), "policy %s", policy);
	for (size_t i = 0; t->has_config && i < t->config.n_replies; i++) {
		const Sbeet__Control__Reply *reply = t->config.replies[i];

		if (reply->body_case != SBEET__CONTROL__REPLY__BODY_CONFIG) {
			continue;
		}
		for (size_t j = 0; j < reply->config->n_values; j++) {
			const Sbeet__Control__ConfigValue *v = reply->config->values[j];

			if (strcmp(v->section, section) == 0 && strcmp(v->key, param) == 0) {
				return v->value;
			}
		}
	}
	return NULL;
}

static void warn_without_profiles(const struct ctl *ctl, const char *name) {
	struct told told;

	if (ask(&told) && told.profiles == 0) {
		ctl_warn(ctl,
			 "policy '%s' plans by profiles, and sbeetd has none: jobs start in order "
			 "of arrival; 'sbeetctl profile run' measures profiles, sbeetd reads them "
			 "when it starts",
			 name);
	}
	told_deinit(&told);
}

/* What the policy can be told live, each with its value in sbeetd, or its default. */
static json_t *values_json(const struct sched_policy *policy, const struct told *told) {
	json_t *o = json_object();
	struct sched_params live;

	sched_params_live(&live);
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		const char *name = sched_param_rows[i].name;
		char text[SCHED_PARAM_TEXT_MAX];
		const char *value;

		if (sched_param_is_live(policy, (enum sched_param_id)i)) {
			value = told_value(told, policy->name, name);
			sched_param_print(&live, (enum sched_param_id)i, text);
			json_object_set_new(o, name, json_text(value ? value : text));
		}
	}
	return o;
}

static json_t *policies_json(const struct told *told) {
	json_t *policies = json_array(), *params = json_array(), *defaults;
	struct param param;
	struct params p;

	for (const struct sched_policy *const *i = sched_policies(); *i; i++) {
		json_array_append_new(
			policies,
			json_pack("{s:s, s:s, s:b, s:b, s:o, s:o}", "policy", (*i)->name, "summary",
				  (*i)->summary, "distributes", (*i)->distribute != NULL, "plans",
				  (*i)->plans, "active",
				  *told->policy
					  ? json_boolean(strcmp(told->policy, (*i)->name) == 0)
					  : json_null(),
				  "params", values_json(*i, told)));
	}
	params_default(&p);
	defaults = params_json(&p);
	for (unsigned i = 0; params_describe(i, &param); i++) {
		json_array_append_new(params,
				      json_pack("{s:s, s:s, s:s, s:O, s:b}", "param", param.name,
						"summary", param.summary, "values", param.expected,
						"default", json_object_get(defaults, param.name),
						"simulated", param.simulated));
	}
	json_decref(defaults);
	return json_pack("{s:o, s:o}", "policies", policies, "params", params);
}

/* A name and a line about it; the policy in force is marked. */
static int print_policies(const struct ctl *ctl, const struct told *told) {
	static const struct table_column columns[] = {{"policy", "POLICY"},
						      {"summary", "WHAT IT DOES"}};
	struct table *t;

	if (table_new(&t, columns, 2) < 0) {
		ctl_error("cannot list the policies: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (const struct sched_policy *const *i = sched_policies(); *i; i++) {
		bool is_active = strcmp(told->policy, (*i)->name) == 0;
		char text[512];

		snprintf(text, sizeof(text), "%s%s", is_active ? "(in force) " : "", (*i)->summary);
		table_text(t, (*i)->name);
		table_text(t, text);
	}
	return listing_print(ctl, t, "the policies");
}

/* The value is that of the policy in force; "-": it does not read this parameter. */
static int print_params(const struct ctl *ctl, const struct told *told) {
	static const struct table_column columns[] = {
		{"param", "PARAMETER"}, {"value", "VALUE"}, {"summary", "VALUES"}};
	struct param param;
	struct table *t;

	if (table_new(&t, columns, 3) < 0) {
		ctl_error("cannot list the parameters: out of memory");
		return CTL_EXIT_FAILED;
	}
	for (unsigned i = 0; params_describe(i, &param); i++) {
		const char *value = told_value(told, told->policy, param.name);
		char text[512];

		snprintf(text, sizeof(text), "%s: %s", param.expected, param.summary);
		table_text(t, param.name);
		table_text(t, value ? value : "-");
		table_text(t, text);
	}
	return listing_print(ctl, t, "the policies");
}

/* KEY=VALUE in two. Return: false, with a message, if it is none. */
static bool split(char *text, Sbeet__Control__PolicyParam *ret) {
	char *equals = strchr(text, '=');

	if (!equals || equals == text) {
		ctl_error("'%s': expected KEY=VALUE, such as reading=literal", text);
		return false;
	}
	*equals = '\0';
	sbeet__control__policy_param__init(ret);
	ret->name = text;
	ret->value = equals + 1;
	return true;
}

static int set(const struct ctl *ctl) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__PolicyRequest wanted = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__PolicyParam params[_SCHED_PARAM_N], *pointers[_SCHED_PARAM_N];
	const struct sched_policy *policy;
	int r;

	for (size_t i = 1; i < ctl->n_args; i++) {
		if (!split(ctl->args[i], &params[i - 1])) {
			return CTL_EXIT_USAGE;
		}
		pointers[i - 1] = &params[i - 1];
	}
	policy = select_policy(ctl->args[0]);
	if (!policy) {
		return CTL_EXIT_NO_OBJECT;
	}
	wanted.name = ctl->args[0];
	wanted.n_params = ctl->n_args - 1;
	wanted.params = pointers;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &wanted;
	r = control_change(&request);
	if (r == CTL_EXIT_OK && policy->plans) {
		warn_without_profiles(ctl, policy->name);
	}
	return r;
}

static int policy(const struct ctl *ctl) {
	struct told told;
	int r;

	if (ctl->n_args > 0) {
		return set(ctl);
	}
	ask(&told);
	if (ctl->common.json != JSON_OFF) {
		r = listing_json(ctl, policies_json(&told));
	} else {
		r = print_policies(ctl, &told);
		if (r == CTL_EXIT_OK) {
			printf("\n");
			r = print_params(ctl, &told);
		}
	}
	told_deinit(&told);
	return r;
}

const struct verb verb_policy = {
	.name = "policy",
	.args = "[NAME [KEY=VALUE]...]",
	.summary = "list the scheduling policies and their parameters, or set sbeetd's",
	.max_args = 1 + _SCHED_PARAM_N,
	.flags = VERB_READS,
	.function = policy,
};
