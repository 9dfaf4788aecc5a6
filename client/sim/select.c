/* select.c: see select.h. */
#include "client/sim/select.h"

#include <errno.h>
#include <string.h>

#include "client/base/ctl.h"
#include "client/sim/simulated.h"
#include "daemon/book/suggest.h"

int select_parse(const char *text, void *target) {
	struct select_words *words = target;

	if (words->n == SELECT_MAX) {
		return -ERANGE;
	}
	words->list[words->n++] = text;
	return 0;
}

static void add(const struct sched_policy **policies, size_t *n, const struct sched_policy *p) {
	for (size_t i = 0; i < *n; i++) {
		if (policies[i] == p) {
			return;
		}
	}
	if (*n < SELECT_MAX) {
		policies[(*n)++] = p;
	}
}

/* @any: mps and its like may have been meant. */
static void complain(const char *name, bool any) {
	struct suggest s = suggest_start(name);

	for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
		suggest_offer(&s, (*p)->name);
	}
	for (size_t i = 0; any && simulated_mps(i); i++) {
		suggest_offer(&s, simulated_mps(i)->name);
	}
	if (s.best) {
		ctl_error("no policy '%s'. Did you mean '%s'?", name, s.best);
	} else {
		ctl_error("no policy '%s'; 'sbeetctl policy' lists them", name);
	}
}

const struct sched_policy *select_policy(const char *name) {
	const struct sched_policy *policy = sched_policy_find(name);

	if (!policy) {
		complain(name, false);
	}
	return policy;
}

int select_policies(const struct select_words *words,
		    const struct sched_policy *ret_policies[SELECT_MAX], size_t *ret_n) {
	size_t n = 0;

	for (size_t i = 0; i < words->n; i++) {
		const struct sched_policy *policy = simulated_find(words->list[i]);

		if (policy && policy->by_table) {
			ctl_error("policy '%s' follows what 'sbeetctl plan --table' has written: "
				  "only sbeetd does",
				  policy->name);
			return CTL_EXIT_USAGE;
		}
		if (policy) {
			add(ret_policies, &n, policy);
			continue;
		}
		if (strcmp(words->list[i], "all") != 0) {
			complain(words->list[i], true);
			return CTL_EXIT_NO_OBJECT;
		}
		for (const struct sched_policy *const *p = sched_policies(); *p; p++) {
			/* of use only for tasks that say where they go */
			if (strcmp((*p)->name, "fixed") != 0 && !(*p)->by_table) {
				add(ret_policies, &n, *p);
			}
		}
	}
	if (n == 0) {
		const struct sched_policy *ours = sched_policy_find("lookahead");

		ret_policies[n++] = ours ? ours : sched_policies()[0];
	}
	*ret_n = n;
	return CTL_EXIT_OK;
}

int select_params(const struct select_words *words, struct params *ret) {
	char error[256];
	struct params p;

	params_default(&p);
	for (size_t i = 0; i < words->n; i++) {
		if (params_set(&p, words->list[i], error, sizeof(error)) < 0) {
			ctl_error("%s", error);
			return CTL_EXIT_USAGE;
		}
	}
	*ret = p;
	return CTL_EXIT_OK;
}
