/* policies.c: see policies.h. */
#include "daemon/config/policies.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/book/suggest.h"

void policies_init(struct policies *p) {
	p->n = 0;
	for (const struct sched_policy *const *i = sched_policies(); *i; i++) {
		struct policy_values *v = &p->list[p->n];

		if ((*i)->simulated) {
			continue;
		}
		assert(p->n < POLICIES_MAX);
		*v = (struct policy_values){.policy = *i};
		sched_params_live(&v->params);
		v->file = v->params;
		p->n++;
	}
}

struct policy_values *policies_find(struct policies *p, const char *name) {
	for (size_t i = 0; i < p->n; i++) {
		if (strcmp(p->list[i].policy->name, name) == 0) {
			return &p->list[i];
		}
	}
	return NULL;
}

/* "policy 'fcfs' has no parameter 'reading'; it has none", or those that it has. */
static int refuse_key(const struct policy_values *v, const char *key, char *why, size_t size) {
	struct suggest s = suggest_start(key);
	int n = snprintf(why, size, "policy '%s' has no parameter '%.64s'", v->policy->name, key);
	const char *between = "; it has ";

	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		if (sched_param_is_live(v->policy, (enum sched_param_id)i)) {
			suggest_offer(&s, sched_param_rows[i].name);
		}
	}
	if (s.best) {
		snprintf(why + n, size - (size_t)n, ". Did you mean '%s'?", s.best);
		return POLICIES_E_KEY;
	}
	for (int i = 0; i < _SCHED_PARAM_N && (size_t)n < size; i++) {
		if (sched_param_is_live(v->policy, (enum sched_param_id)i)) {
			n += snprintf(why + n, size - (size_t)n, "%s%s", between,
				      sched_param_rows[i].name);
			between = ", ";
		}
	}
	if (*between == ';' && (size_t)n < size) {
		snprintf(why + n, size - (size_t)n, "; it has none");
	}
	return POLICIES_E_KEY;
}

int policies_set(struct policy_values *v, const char *key, const char *text,
		 enum setting_source source, unsigned line, char *why, size_t size) {
	int which = sched_param_find(key);

	if (which < 0 || !sched_param_is_live(v->policy, (enum sched_param_id)which)) {
		return refuse_key(v, key, why, size);
	}
	if (sched_param_set(&v->params, (enum sched_param_id)which, text) < 0) {
		snprintf(why, size, "%s '%.64s': expected %s", key, text,
			 sched_param_rows[which].expected);
		return -EINVAL;
	}
	if (source == SETTING_FILE) {
		sched_param_set(&v->file, (enum sched_param_id)which, text);
	}
	v->origin[which].source = source;
	v->origin[which].line = line;
	return 0;
}

static void keep(struct policy_values *v, const struct policy_values *old) {
	for (int i = 0; i < _SCHED_PARAM_N; i++) {
		enum sched_param_id which = (enum sched_param_id)i;
		char text[SCHED_PARAM_TEXT_MAX];

		if (old->origin[i].source == SETTING_REQUEST &&
		    sched_param_number(&v->file, which) == sched_param_number(&old->file, which)) {
			sched_param_print(&old->params, which, text);
			sched_param_set(&v->params, which, text);
			v->origin[i] = old->origin[i];
		}
	}
}

void policies_keep(struct policies *p, const struct policies *old) {
	for (size_t i = 0; i < p->n; i++) {
		keep(&p->list[i], &old->list[i]);
	}
}
