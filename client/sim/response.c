/* response.c: see response.h. */
#include "client/sim/response.h"

#include <string.h>

#include "daemon/book/suggest.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

const struct rta_method *response_find_method(const char *name) {
	const struct rta_method *m = name ? rta_method_find(name) : &rta_methods[0];
	struct suggest s = suggest_start(name ? name : "");

	for (size_t k = 0; !m && k < rta_n_methods; k++) {
		suggest_offer(&s, rta_methods[k].name);
	}
	if (!m) {
		ctl_error("no method '%s'%s%s%s", name, s.best ? ". Did you mean '" : "",
			  s.best ? s.best : "",
			  s.best ? "'?" : "; 'sbeetctl response-time --help' lists them");
	}
	return m;
}

int response_read_readings(const struct select_words *words, struct rta_readings *ret) {
	const struct {
		const char *name;
		bool *target;
	} known[] = {
		{"x-by-formula", &ret->x_by_formula},
		{"updates-by-segment", &ret->updates_by_segment},
		{"updates-as-gcaps", &ret->updates_as_gcaps},
		{"bxc-alone", &ret->bxc_alone},
		{"bxc-floor", &ret->bxc_floor},
		{"mpcp-boosted-section", &ret->mpcp_boosted_section},
	};

	for (size_t i = 0; i < words->n; i++) {
		struct suggest s = suggest_start(words->list[i]);
		size_t k = 0;

		for (; k < N(known) && strcmp(known[k].name, words->list[i]) != 0; k++) {
			suggest_offer(&s, known[k].name);
		}
		if (k == N(known)) {
			ctl_error("no reading '%s'%s%s%s", words->list[i],
				  s.best ? ". Did you mean '" : "", s.best ? s.best : "",
				  s.best ? "'?" : "; sbeetctl(1) lists them");
			return CTL_EXIT_USAGE;
		}
		*known[k].target = true;
	}
	return CTL_EXIT_OK;
}
