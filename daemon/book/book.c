/* book.c: see book.h. */
#include "daemon/book/book.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void book_truncate(struct book *b, size_t n) {
	for (size_t i = n; i < b->n_profiles; i++) {
		struct book_profile *p = &b->profiles[i];

		for (size_t k = 0; k < p->n_tables; k++) {
			free(p->tables[k].type);
			free(p->tables[k].points);
		}
		free(p->name);
		free(p->tables);
	}
	b->n_profiles = n;
}

void book_deinit(struct book *b) {
	book_truncate(b, 0);
	free(b->profiles);
	*b = (struct book){0};
}

const struct book_profile *book_find(const struct book *b, const char *name) {
	for (size_t i = 0; i < b->n_profiles; i++) {
		if (strcmp(b->profiles[i].name, name) == 0) {
			return &b->profiles[i];
		}
	}
	return NULL;
}

const struct book_table *book_table(const struct book_profile *p, const char *type) {
	for (size_t i = 0; i < p->n_tables; i++) {
		if (strcmp(p->tables[i].type, type) == 0) {
			return &p->tables[i];
		}
	}
	return NULL;
}

int book_add_profile(struct book *b, const char *name, struct book_profile **ret) {
	struct book_profile *profiles;
	char *copy;

	if (book_find(b, name)) {
		return -EEXIST;
	}
	profiles = reallocarray(b->profiles, b->n_profiles + 1, sizeof(*profiles));
	if (!profiles) {
		return -ENOMEM;
	}
	b->profiles = profiles;
	copy = strdup(name);
	if (!copy) {
		return -ENOMEM;
	}
	profiles[b->n_profiles] = (struct book_profile){.name = copy};
	*ret = &profiles[b->n_profiles++];
	return 0;
}

int book_add_table(struct book_profile *p, const char *type, struct book_table **ret) {
	struct book_table *tables;
	char *copy;

	if (book_table(p, type)) {
		return -EEXIST;
	}
	tables = reallocarray(p->tables, p->n_tables + 1, sizeof(*tables));
	if (!tables) {
		return -ENOMEM;
	}
	p->tables = tables;
	copy = strdup(type);
	if (!copy) {
		return -ENOMEM;
	}
	tables[p->n_tables] = (struct book_table){.type = copy};
	*ret = &tables[p->n_tables++];
	return 0;
}

int book_add_point(struct book_table *t, const struct book_point *point) {
	size_t i = t->n_points;
	struct book_point *points;

	if (point->n_sms < 1 || point->n_sms > PROTO_SMS_MAX || point->best < 1 ||
	    point->best > point->worst || point->worst > PROFILE_TIME_MAX ||
	    point->power_mw > PROFILE_POWER_MAX_MW) {
		return -ERANGE;
	}
	while (i > 0 && t->points[i - 1].n_sms >= point->n_sms) {
		if (t->points[--i].n_sms == point->n_sms) {
			return -EEXIST;
		}
	}
	points = reallocarray(t->points, t->n_points + 1, sizeof(*points));
	if (!points) {
		return -ENOMEM;
	}
	t->points = points;
	memmove(&points[i + 1], &points[i], (t->n_points - i) * sizeof(*points));
	points[i] = *point;
	t->n_points++;
	return 0;
}

unsigned book_doubt(const struct book_table *t, char *why, size_t size) {
	const struct book_point *fastest = NULL;
	char a[32], b[32];

	for (size_t i = 0; i < t->n_points; i++) {
		const struct book_point *p = &t->points[i];

		if (p->mean > 0 && 2 * p->ci95 > p->mean) {
			units_print_nsec(p->mean, a, sizeof(a));
			units_print_nsec(p->ci95, b, sizeof(b));
			snprintf(why, size,
				 "the mean on %u SMs is %s, and may be off by %s: its confidence "
				 "interval is wider than the mean",
				 p->n_sms, a, b);
			return p->n_sms;
		}
		if (fastest && p->worst > fastest->worst + fastest->worst / 2 + BOOK_SLACK) {
			units_print_nsec(p->worst, a, sizeof(a));
			units_print_nsec(fastest->worst, b, sizeof(b));
			snprintf(
				why, size,
				"the worst case on %u SMs, %s, is longer by more than half than on "
				"%u, %s",
				p->n_sms, a, fastest->n_sms, b);
			return p->n_sms;
		}
		fastest = fastest && fastest->worst <= p->worst ? fastest : p;
	}
	return 0;
}

/* "watts" of the point, or its share of the table's "watts_per_sm". */
static int read_power(const struct reader *r, const struct reader_node *at, const uint32_t *per_sm,
		      struct book_point *point) {
	struct reader_node node;

	if (reader_get(at, "watts", &node)) {
		return reader_milli(r, &node, "watts", PROFILE_POWER_MAX_MW, &point->power_mw);
	}
	if (!per_sm) {
		return reader_fail(r, at,
				   "the power is missing: give 'watts' here, or 'watts_per_sm' for "
				   "all points");
	}
	if ((uint64_t)*per_sm * point->n_sms > PROFILE_POWER_MAX_MW) {
		return reader_fail(r, at, "expected at most %u W on all SMs",
				   PROFILE_POWER_MAX_MW / 1000);
	}
	point->power_mw = *per_sm * point->n_sms;
	return 0;
}

static int read_point(const struct reader *r, const struct reader_node *at, const uint32_t *per_sm,
		      struct book_table *t) {
	static const char *const keys[] = {"sms", "worst", "best", "mean", "ci95", "watts", NULL};
	struct book_point point = {0};
	struct reader_node node;
	int64_t n_sms;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "sms", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, PROTO_SMS_MAX, &n_sms)) < 0) {
		return e;
	}
	point.n_sms = (unsigned)n_sms;
	if ((e = reader_need(r, at, "worst", &node)) < 0 ||
	    (e = reader_time(r, &node, 1, PROFILE_TIME_MAX, &point.worst)) < 0) {
		return e;
	}
	point.best = point.worst;
	if (reader_get(at, "best", &node) &&
	    (e = reader_time(r, &node, 1, point.worst, &point.best)) < 0) {
		return e;
	}
	if ((reader_get(at, "mean", &node) &&
	     (e = reader_time(r, &node, 1, PROFILE_TIME_MAX, &point.mean)) < 0) ||
	    (reader_get(at, "ci95", &node) &&
	     (e = reader_time(r, &node, 0, PROFILE_TIME_MAX, &point.ci95)) < 0) ||
	    (e = read_power(r, at, per_sm, &point)) < 0) {
		return e;
	}
	e = book_add_point(t, &point);
	return e == -EEXIST ? reader_fail(r, at, "a second point for %u SMs", point.n_sms) : e;
}

static int read_points(const struct reader *r, const struct reader_node *at, const uint32_t *per_sm,
		       struct book_table *t) {
	int e = reader_array(r, at, PROTO_SMS_MAX);
	char why[256];

	if (e == 0 && json_array_size(at->value) == 0) {
		return reader_fail(r, at, "expected at least one point");
	}
	for (size_t i = 0; e == 0 && i < json_array_size(at->value); i++) {
		struct reader_node node = reader_element(at, i);

		e = read_point(r, &node, per_sm, t);
	}
	if (e == 0 && book_doubt(t, why, sizeof(why)) > 0) {
		return reader_fail(r, at, "%s: measure again, with nothing else on the GPU", why);
	}
	return e;
}

static int read_copies(const struct reader *r, const struct reader_node *at, struct book_table *t) {
	struct reader_node node;
	int e = 0;

	if (reader_get(at, "copy_in", &node)) {
		e = reader_time(r, &node, 0, PROFILE_TIME_MAX, &t->copy_in);
	}
	if (e == 0 && reader_get(at, "copy_out", &node)) {
		e = reader_time(r, &node, 0, PROFILE_TIME_MAX, &t->copy_out);
	}
	return e;
}

/* The shortest time of its kernels together: no part of them takes longer. */
static nsec_t shortest(const struct book_table *t) {
	nsec_t least = t->linear_work;

	for (size_t i = 0; i < t->n_points; i++) {
		least = i == 0 || t->points[i].worst < least ? t->points[i].worst : least;
	}
	return least;
}

/* What the kernels are made of, for GPUs that are shared without asking. */
static int read_kernels(const struct reader *r, const struct reader_node *at,
			struct book_table *t) {
	nsec_t whole = shortest(t), block_max;
	struct reader_node node;
	char text[32];
	int64_t n = 0;
	int e;

	if (reader_get(at, "launches", &node)) {
		e = reader_int(r, &node, 1, BOOK_LAUNCHES_MAX, &n);
		if (e < 0) {
			return e;
		}
		if (n > 1 && whole / (nsec_t)n < BOOK_LAUNCH_MIN) {
			return reader_fail(r, &node, "each launch would take less than 1 us");
		}
		t->launches = (unsigned)n;
	}
	if (!reader_get(at, "block", &node)) {
		return 0;
	}
	e = reader_time(r, &node, 1, PROFILE_TIME_MAX, &t->block);
	block_max = whole / (n > 0 ? (nsec_t)n : 1);
	if (e == 0 && t->block > block_max) {
		units_print_nsec(block_max, text, sizeof(text));
		return reader_fail(r, &node, "a block runs longer than one launch, %s", text);
	}
	return e;
}

static int read_times(const struct reader *r, const struct reader_node *at, struct book_table *t) {
	bool has_power, has_points, has_linear;
	struct reader_node power, points, linear;
	uint32_t per_sm = 0;
	int e;

	has_power = reader_get(at, "watts_per_sm", &power);
	if (has_power &&
	    (e = reader_milli(r, &power, "watts", PROFILE_POWER_MAX_MW, &per_sm)) < 0) {
		return e;
	}
	has_points = reader_get(at, "points", &points);
	has_linear = reader_get(at, "linear", &linear);
	if (has_points == has_linear) {
		return reader_fail(r, at,
				   "expected either 'points' (measured times by SM count) or "
				   "'linear' (the time on one SM)");
	}
	if (has_points) {
		return read_points(r, &points, has_power ? &per_sm : NULL, t);
	}
	if (!has_power) {
		return reader_fail(r, at, "'watts_per_sm' is missing");
	}
	t->power_mw_per_sm = per_sm;
	return reader_time(r, &linear, 1, PROFILE_TIME_MAX, &t->linear_work);
}

static int read_table(const struct reader *r, const struct reader_node *at, struct book_table *t) {
	static const char *const keys[] = {"copy_in", "copy_out", "watts_per_sm", "points",
					   "linear",  "launches", "block",	  NULL};
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = read_copies(r, at, t)) < 0 ||
	    (e = read_times(r, at, t)) < 0) {
		return e;
	}
	return read_kernels(r, at, t);
}

static int read_profile(struct book *b, const struct reader *r, const struct reader_node *at) {
	static const char *const keys[] = {"name", "on", NULL};
	struct book_profile *p = NULL;
	struct reader_node node, on;
	const char *name, *type;
	json_t *value;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "name", &node)) < 0 ||
	    (e = reader_name(r, &node, &name)) < 0 || (e = reader_need(r, at, "on", &on)) < 0) {
		return e;
	}
	if (!json_is_object(on.value) || json_object_size(on.value) == 0 ||
	    json_object_size(on.value) > BOOK_TYPES_MAX) {
		return reader_fail(r, &on, "expected an object with an entry for each type of GPU");
	}
	e = book_add_profile(b, name, &p);
	if (e < 0) {
		return e == -EEXIST ? reader_fail(r, &node, "a second profile '%s'", name) : e;
	}
	json_object_foreach(on.value, type, value) {
		struct reader_node table = {.up = &on, .key = type, .value = value};
		struct book_table *t = NULL;

		e = book_add_table(p, type, &t);
		if (e == 0) {
			e = read_table(r, &table, t);
		}
		if (e < 0) {
			return e;
		}
	}
	return 0;
}

int book_read(struct book *b, const struct reader *r, const struct reader_node *at) {
	int e = reader_array(r, at, BOOK_PROFILES_MAX);

	for (size_t i = 0; e == 0 && i < json_array_size(at->value); i++) {
		struct reader_node node = reader_element(at, i);

		e = b->n_profiles < BOOK_PROFILES_MAX
			    ? read_profile(b, r, &node)
			    : reader_fail(r, &node, "more than %d profiles", BOOK_PROFILES_MAX);
	}
	return e;
}

/* Exact, so that what is written is what was read. */
static json_t *time_json(nsec_t t) {
	static const struct {
		nsec_t unit;
		const char *name;
	} units[] = {{NSEC_PER_SEC, "s"}, {NSEC_PER_MSEC, "ms"}, {NSEC_PER_USEC, "us"}, {1, "ns"}};
	size_t i = 0;

	while (units[i].unit > 1 && t < units[i].unit) {
		i++;
	}
	if (units[i].unit == 1 || t % units[i].unit == 0) {
		return json_sprintf("%llu%s", (unsigned long long)(t / units[i].unit),
				    units[i].name);
	}
	for (nsec_t unit = units[i].unit, digit = 1, places = 1; digit < unit; places++) {
		digit *= 10;
		if (t % (unit / digit) == 0) {
			return json_sprintf(
				"%llu.%0*llu%s", (unsigned long long)(t / unit), (int)places,
				(unsigned long long)(t % unit / (unit / digit)), units[i].name);
		}
	}
	return NULL;
}

static json_t *table_json(const struct book_table *t) {
	json_t *o = json_pack("{s:o, s:o}", "copy_in", time_json(t->copy_in), "copy_out",
			      time_json(t->copy_out));
	json_t *points;

	if (t->launches) {
		json_object_set_new(o, "launches", json_integer(t->launches));
	}
	if (t->block) {
		json_object_set_new(o, "block", time_json(t->block));
	}
	if (t->linear_work) {
		json_object_set_new(o, "watts_per_sm", json_real(t->power_mw_per_sm / 1000.0));
		json_object_set_new(o, "linear", time_json(t->linear_work));
		return o;
	}
	points = json_array();
	for (size_t i = 0; i < t->n_points; i++) {
		const struct book_point *p = &t->points[i];

		json_t *point = json_pack("{s:i, s:o, s:o, s:f}", "sms", (int)p->n_sms, "best",
					  time_json(p->best), "worst", time_json(p->worst), "watts",
					  p->power_mw / 1000.0);

		if (p->mean > 0) {
			json_object_set_new(point, "mean", time_json(p->mean));
			json_object_set_new(point, "ci95", time_json(p->ci95));
		}
		json_array_append_new(points, point);
	}
	json_object_set_new(o, "points", points);
	return o;
}

json_t *book_json(const struct book *b) {
	json_t *profiles = json_array();

	for (size_t i = 0; i < b->n_profiles; i++) {
		const struct book_profile *p = &b->profiles[i];
		json_t *on = json_object();

		for (size_t k = 0; k < p->n_tables; k++) {
			json_object_set_new(on, p->tables[k].type, table_json(&p->tables[k]));
		}
		json_array_append_new(profiles, json_pack("{s:s, s:o}", "name", p->name, "on", on));
	}
	return json_pack("{s:o}", "profiles", profiles);
}

static int lay_out_points(const struct book_table *t, unsigned n_sms, struct profile_table *ret) {
	int e = profile_table_init(ret, n_sms, t->copy_in, t->copy_out);

	for (size_t i = 0; e == 0 && i < t->n_points; i++) {
		const struct book_point *p = &t->points[i];

		e = profile_table_set(ret, p->n_sms, p->best, p->worst, p->power_mw);
	}
	return e == 0 ? profile_table_finish(ret) : e;
}

int book_lay_out(const struct book_table *t, unsigned n_sms, struct profile_table *ret) {
	struct profile_table table;
	int e;

	if (t->linear_work) {
		e = profile_table_linear(&table, n_sms, t->copy_in, t->copy_out, t->linear_work,
					 t->power_mw_per_sm);
	} else {
		e = lay_out_points(t, n_sms, &table);
	}
	if (e == 0) {
		table.launches = t->launches ? t->launches : 1;
		table.block = t->block;
		*ret = table;
	}
	return e;
}
