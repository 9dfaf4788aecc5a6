/* learn.c: see learn.h. */
#include "daemon/gpu/learn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_NAME_MAX 95

/* The jobs of half a window. */
struct half {
	uint32_t n;
	nsec_t best, worst;
	nsec_t second; /* longest but one; not kept in the file */
};

struct point {
	uid_t uid;
	uint64_t used; /* learn->clock when a job was last noted for it */
	unsigned n_sms;
	char profile[PROTO_NAME_MAX + 1];
	char gpu[GPU_NAME_MAX + 1];
	struct half now, before;
	nsec_t told; /* the time when learn_note() last said that it had changed; 0: never
		      */
};

struct holder {
	uid_t uid;
	size_t n_points; /* 0: this entry is not in use */
};

struct learn {
	struct point *points; /* owned */
	size_t n_points;
	/* Users with points, and the one that is about to have its first. */
	struct holder holders[LEARN_POINTS_MAX + 1];
	size_t n_holders;
	uint64_t n_jobs;
	uint64_t clock; /* counts uses of points */
	bool corrects;
};

struct learn *learn_new(void) {
	return calloc(1, sizeof(struct learn));
}

struct learn *learn_new_corrections(void) {
	struct learn *l = learn_new();

	if (l) {
		l->corrects = true;
	}
	return l;
}

bool learn_corrects(const struct learn *l) {
	return l->corrects;
}

struct learn *learn_free(struct learn *l) {
	if (l) {
		free(l->points);
		free(l);
	}
	return NULL;
}

uint64_t learn_count(const struct learn *l) {
	return l->n_jobs;
}

static bool is_of(const struct point *p, const struct learn_place *place) {
	return p->uid == place->uid && strcmp(p->profile, place->profile) == 0 &&
	       strcmp(p->gpu, place->gpu) == 0;
}

static uint32_t jobs_of(const struct point *p) {
	return p->now.n + p->before.n;
}

/* The user's entry, made if need be. */
static struct holder *holder_of(struct learn *l, uid_t uid) {
	struct holder *unused = NULL;

	for (size_t i = 0; i < l->n_holders; i++) {
		if (l->holders[i].n_points > 0 && l->holders[i].uid == uid) {
			return &l->holders[i];
		}
		unused = l->holders[i].n_points == 0 ? &l->holders[i] : unused;
	}
	unused = unused ? unused : &l->holders[l->n_holders++];
	unused->uid = uid;
	return unused;
}

/* The user that loses a point to @holder: the one with most points, @holder itself in a tie. */
static const struct holder *largest_holder(const struct learn *l, const struct holder *holder) {
	const struct holder *largest = holder;

	for (size_t i = 0; i < l->n_holders; i++) {
		if (l->holders[i].n_points > largest->n_points) {
			largest = &l->holders[i];
		}
	}
	return largest;
}

static bool less_useful(const struct point *a, const struct point *b) {
	bool a_speaks = jobs_of(a) >= LEARN_JOBS_MIN, b_speaks = jobs_of(b) >= LEARN_JOBS_MIN;

	return a_speaks != b_speaks ? b_speaks : a->used < b->used;
}

/* The least useful point of a user with at least one. */
static struct point *find_least_useful(struct learn *l, uid_t uid) {
	struct point *least = NULL;

	for (size_t i = 0; i < l->n_points; i++) {
		struct point *p = &l->points[i];

		if (p->uid == uid && (!least || less_useful(p, least))) {
			least = p;
		}
	}
	return least;
}

/* Room for a point of this user, charged. NULL: no memory. */
static struct point *make_room(struct learn *l, uid_t uid) {
	struct point *points;

	if (l->n_points == LEARN_POINTS_MAX) {
		struct point *p = find_least_useful(l, largest_holder(l, holder_of(l, uid))->uid);

		holder_of(l, p->uid)->n_points--;
		holder_of(l, uid)->n_points++;
		return p;
	}
	points = reallocarray(l->points, l->n_points + 1, sizeof(*points));
	if (!points) {
		return NULL;
	}
	l->points = points;
	holder_of(l, uid)->n_points++;
	return &points[l->n_points++];
}

/* The point of @place, made if need be. NULL: its names are too long, or no memory. */
static struct point *take_point(struct learn *l, const struct learn_place *place) {
	struct point *p;

	for (size_t i = 0; i < l->n_points; i++) {
		p = &l->points[i];
		if (p->n_sms == place->n_sms && is_of(p, place)) {
			p->used = ++l->clock;
			return p;
		}
	}
	if (strlen(place->profile) > PROTO_NAME_MAX || strlen(place->gpu) > GPU_NAME_MAX) {
		return NULL;
	}
	p = make_room(l, place->uid);
	if (p) {
		*p = (struct point){.uid = place->uid, .used = ++l->clock, .n_sms = place->n_sms};
		strcpy(p->profile, place->profile);
		strcpy(p->gpu, place->gpu);
	}
	return p;
}

static nsec_t worst_of(const struct point *p) {
	return p->now.worst > p->before.worst ? p->now.worst : p->before.worst;
}

static nsec_t best_of(const struct point *p) {
	return p->before.n == 0 || (p->now.n > 0 && p->now.best < p->before.best) ? p->now.best
										  : p->before.best;
}

/* The longest time but one. */
static nsec_t second_of(const struct point *p) {
	nsec_t second = p->now.second > p->before.second ? p->now.second : p->before.second;
	nsec_t other = p->now.worst < p->before.worst ? p->now.worst : p->before.worst;

	return other > second ? other : second;
}

/* The time that is planned with; 0: too little is known. */
static nsec_t said_by(const struct learn *l, const struct point *p) {
	return jobs_of(p) < (l->corrects ? LEARN_CORRECT_MIN : LEARN_JOBS_MIN) ? 0
	       : l->corrects						       ? second_of(p)
									       : worst_of(p);
}

static void add_job(struct half *h, nsec_t took) {
	h->best = h->n == 0 || took < h->best ? took : h->best;
	if (took > h->worst) {
		h->second = h->worst;
		h->worst = took;
	} else if (took > h->second) {
		h->second = took;
	}
	h->n++;
}

bool learn_note(struct learn *l, const struct learn_place *place, nsec_t took) {
	struct point *p;
	nsec_t said, change;

	if (took < 1 || took > PROFILE_TIME_MAX) {
		return false;
	}
	p = take_point(l, place);
	if (!p) {
		return false;
	}
	if (p->now.n == LEARN_WINDOW) {
		p->before = p->now;
		p->now = (struct half){0};
	}
	add_job(&p->now, took);
	l->n_jobs++;
	said = said_by(l, p);
	change = said > p->told ? said - p->told : p->told - said;
	if (said == 0 || (p->told > 0 && change <= p->told / 16)) {
		return false;
	}
	p->told = said;
	return true;
}

static nsec_t at_least(nsec_t a, nsec_t b) {
	return a > b ? a : b;
}

/* Its time on the GPU alone: what the copies are known to take is counted elsewhere. */
static nsec_t without_copies(const struct profile_table *t, nsec_t took) {
	nsec_t copies = t->copy_in + t->copy_out;

	return took > copies ? took - copies : 1;
}

static void add_point(struct profile_table *t, const struct point *p,
		      const struct profile_table *known) {
	unsigned m = p->n_sms;
	nsec_t worst = without_copies(t, worst_of(p)), best = without_copies(t, best_of(p));

	if (t->measured[m]) {
		t->exec[m] = at_least(t->exec[m], worst);
		t->exec_best[m] = t->exec_best[m] < best ? t->exec_best[m] : best;
	} else {
		t->exec[m] = worst;
		t->exec_best[m] = best;
		t->power_mw[m] = known ? known->power_mw[m] : 0;
		t->measured[m] = true;
	}
}

/* Return: whether the profile was too hopeful. */
static bool correct_point(struct profile_table *t, unsigned m, nsec_t took) {
	nsec_t exec = without_copies(t, took);

	if (exec <= t->exec[m]) {
		return false;
	}
	t->measured[m] = true;
	for (unsigned k = 1; k <= m; k++) {
		t->exec[k] = at_least(t->exec[k], exec);
	}
	return true;
}

bool learn_apply(const struct learn *l, const struct learn_place *place,
		 const struct profile_table *known, struct profile_table *ret) {
	struct profile_table t;
	bool any = false;

	if (known) {
		t = *known;
	} else if (l->corrects || profile_table_init(&t, place->n_sms, 0, 0) < 0) {
		return false;
	}
	for (size_t i = 0; i < l->n_points; i++) {
		const struct point *p = &l->points[i];

		if (!is_of(p, place) || p->n_sms > t.n_sms || said_by(l, p) == 0) {
			continue;
		}
		if (l->corrects) {
			any |= correct_point(&t, p->n_sms, said_by(l, p));
		} else {
			add_point(&t, p, known);
			any = true;
		}
	}
	if (!any || profile_table_finish(&t) < 0) {
		return false;
	}
	if (!known) {
		t.least = (t.least + 1) / 2;
	}
	*ret = t;
	return true;
}

static json_t *half_json(const struct half *h) {
	return json_pack("{s:i, s:I, s:I}", "jobs", (int)h->n, "best_ns", (json_int_t)h->best,
			 "worst_ns", (json_int_t)h->worst);
}

static int compare_use(const void *a, const void *b) {
	const struct point *x = *(const struct point *const *)a;
	const struct point *y = *(const struct point *const *)b;

	return x->used < y->used ? -1 : x->used > y->used;
}

static json_t *point_json(const struct point *p) {
	return json_pack("{s:I, s:s, s:s, s:i, s:o, s:o}", "uid", (json_int_t)p->uid, "profile",
			 p->profile, "gpu", p->gpu, "sms", (int)p->n_sms, "now", half_json(&p->now),
			 "before", half_json(&p->before));
}

/* Least recently used first, so that the order need not be written. */
json_t *learn_json(const struct learn *l) {
	const struct point *list[LEARN_POINTS_MAX];
	json_t *points = json_array();

	for (size_t i = 0; i < l->n_points; i++) {
		list[i] = &l->points[i];
	}
	qsort(list, l->n_points, sizeof(list[0]), compare_use);
	for (size_t i = 0; i < l->n_points; i++) {
		json_array_append_new(points, point_json(list[i]));
	}
	return json_pack("{s:o}", "learned", points);
}

static int read_half(const struct reader *r, const struct reader_node *at, const char *key,
		     struct half *ret) {
	static const char *const keys[] = {"jobs", "best_ns", "worst_ns", NULL};
	struct reader_node half, node;
	int64_t n = 0, best = 0, worst = 0;
	int e;

	if ((e = reader_need(r, at, key, &half)) < 0 || (e = reader_object(r, &half, keys)) < 0 ||
	    (e = reader_need(r, &half, "jobs", &node)) < 0 ||
	    (e = reader_int(r, &node, 0, LEARN_WINDOW, &n)) < 0 ||
	    (e = reader_need(r, &half, "worst_ns", &node)) < 0 ||
	    (e = reader_int(r, &node, n > 0, n > 0 ? (int64_t)PROFILE_TIME_MAX : 0, &worst)) < 0 ||
	    (e = reader_need(r, &half, "best_ns", &node)) < 0 ||
	    (e = reader_int(r, &node, n > 0, worst, &best)) < 0) {
		return e;
	}
	*ret = (struct half){(uint32_t)n, (nsec_t)best, (nsec_t)worst};
	return 0;
}

static int read_point(struct learn *l, const struct reader *r, const struct reader_node *at) {
	static const char *const keys[] = {"uid", "profile", "gpu", "sms", "now", "before", NULL};
	struct half now = {0}, before = {0};
	struct learn_place place = {0};
	struct reader_node node;
	struct point *p;
	int64_t uid, n_sms;
	int e;

	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "uid", &node)) < 0 ||
	    (e = reader_int(r, &node, 0, UINT32_MAX, &uid)) < 0 ||
	    (e = reader_need(r, at, "profile", &node)) < 0 ||
	    (e = reader_name(r, &node, &place.profile)) < 0 ||
	    (e = reader_need(r, at, "gpu", &node)) < 0 ||
	    (e = reader_string(r, &node, &place.gpu)) < 0 ||
	    (e = reader_need(r, at, "sms", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, PROTO_SMS_MAX, &n_sms)) < 0 ||
	    (e = read_half(r, at, "now", &now)) < 0 ||
	    (e = read_half(r, at, "before", &before)) < 0) {
		return e;
	}
	place.uid = (uid_t)uid;
	place.n_sms = (unsigned)n_sms;
	p = take_point(l, &place);
	if (!p) {
		return reader_fail(r, at, "a name that is too long, or no memory");
	}
	p->now = now;
	p->before = before;
	p->told = jobs_of(p) >= LEARN_JOBS_MIN ? worst_of(p) : 0;
	return 0;
}

int learn_read(struct learn *l, const struct reader *r, const struct reader_node *root) {
	static const char *const keys[] = {"learned", NULL};
	struct reader_node list;
	int e;

	if ((e = reader_object(r, root, keys)) < 0 ||
	    (e = reader_need(r, root, "learned", &list)) < 0 ||
	    (e = reader_array(r, &list, LEARN_POINTS_MAX)) < 0) {
		return e;
	}
	for (size_t i = 0; e == 0 && i < json_array_size(list.value); i++) {
		struct reader_node node = reader_element(&list, i);

		e = read_point(l, r, &node);
	}
	return e;
}
