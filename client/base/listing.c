/*
 * listing.c: see listing.h.
 */
#include "client/base/listing.h"

#include <errno.h>
#include <unistd.h>

#include "client/base/terminal.h"

struct table_style listing_style(const struct ctl *ctl) {
	return (struct table_style){
		.no_legend = ctl->common.no_legend,
		.colour = terminal_colour(ctl->common.colour, STDOUT_FILENO),
		.width = terminal_width(STDOUT_FILENO),
	};
}

int listing_arrange(const struct ctl *ctl, struct table *t) {
	const struct ctl_common *c = &ctl->common;
	char error[512];
	int r = 0;

	if (c->columns) {
		r = table_select(t, c->columns, error, sizeof(error));
	}
	if (r == 0 && c->sort) {
		r = table_sort(t, c->sort, error, sizeof(error));
	}
	if (r < 0) {
		ctl_error("%s", error);
		return r == -EINVAL ? CTL_EXIT_USAGE : CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

int listing_print(const struct ctl *ctl, struct table *t, const char *what) {
	struct table_style style = listing_style(ctl);
	int r = table_print(t, &style, stdout);

	table_free(t);
	if (r < 0) {
		ctl_error("cannot show %s: out of memory", what);
		return CTL_EXIT_FAILED;
	}
	return CTL_EXIT_OK;
}

int listing_show(const struct ctl *ctl, struct table *t, const char *what) {
	int r = listing_arrange(ctl, t);

	if (r != CTL_EXIT_OK) {
		table_free(t);
		return r;
	}
	return listing_print(ctl, t, what);
}

int listing_json(const struct ctl *ctl, json_t *value) {
	int r = json_write(value, ctl->common.json, stdout);

	if (r == -ENOMEM) {
		ctl_error("cannot write JSON: out of memory");
	}
	return r < 0 ? CTL_EXIT_FAILED : CTL_EXIT_OK; /* main() says what is wrong with stdout */
}
