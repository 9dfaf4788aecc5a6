/* rows.c: see rows.h. */
#include "client/live/rows.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The fewest jobs whose mean is used: with fewer a wide interval may be chance. */
#define MEAN_JOBS_MIN 5

/* By which part of static power a reading may be wrong; and how old a counter may be. */
#define METER_ERROR 0.05
#define METER_AGE_S 0.1

void rows_deinit(struct rows *r) {
	free(r->list);
	r->list = NULL;
	r->n = 0;
}

int rows_add(struct rows *r, const struct row *row) {
	struct row *list = reallocarray(r->list, r->n + 1, sizeof(*list));
	size_t i = r->n;

	if (!list) {
		return -ENOMEM;
	}
	r->list = list;
	while (i > 0 && list[i - 1].n_sms > row->n_sms) {
		list[i] = list[i - 1];
		i--;
	}
	list[i] = *row;
	r->n++;
	return 0;
}

bool rows_have(const struct rows *r, unsigned asked) {
	for (size_t i = 0; i < r->n; i++) {
		if (r->list[i].asked == asked || r->list[i].n_sms == asked) {
			return true;
		}
	}
	return false;
}

int rows_make(const struct rows *r, const struct measure_series *s, unsigned asked,
	      struct row *ret) {
	struct row row = {.n_sms = s->jobs[0].n_sms, .asked = asked};
	nsec_t *times = calloc(s->n_jobs, sizeof(*times));
	double joules = (double)s->energy_mj[r->gpu_index] / 1e3;

	if (!times) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < s->n_jobs; i++) {
		times[i] = s->jobs[i].copy_in;
	}
	row.copy_in = sample_of(times, s->n_jobs);
	for (size_t i = 0; i < s->n_jobs; i++) {
		times[i] = s->jobs[i].exec;
	}
	row.exec = sample_of(times, s->n_jobs);
	for (size_t i = 0; i < s->n_jobs; i++) {
		times[i] = s->jobs[i].copy_out;
	}
	row.copy_out = sample_of(times, s->n_jobs);
	free(times);
	row.metered =
		r->metered && s->alone && !s->overlapping && s->busy > 0 && s->time >= s->busy;
	if (row.metered) {
		joules -= r->static_w * (double)(s->time - s->busy) / 1e9;
		row.watts = joules / ((double)s->busy / 1e9);
		row.watts_off =
			r->static_w *
			(METER_ERROR * (double)s->time / 1e9 + METER_AGE_S * (double)s->n_parts) /
			((double)s->busy / 1e9);
	}
	*ret = row;
	return 0;
}

double rows_job_j(const struct rows *r, const struct row *row) {
	return (row->watts - r->static_w) * (row->exec.mean + row->copy_out.mean) / 1e9;
}

double rows_dynamic_w(const struct rows *r, const struct row *row, double idle_w) {
	double watts = row->watts - r->static_w - idle_w * (r->gpu_sms - row->n_sms);

	return watts > 0 ? watts : 0;
}

int rows_fit(const struct rows *r, double *ret_idle_w, double *ret_per_sm_w, double *ret_off) {
	double x[PROTO_SMS_MAX], y[PROTO_SMS_MAX], idle;
	struct line line;
	size_t n = 0;

	for (size_t i = 0; i < r->n && n < PROTO_SMS_MAX; i++) {
		if (r->list[i].metered) {
			x[n] = r->list[i].n_sms;
			y[n++] = r->list[i].watts;
		}
	}
	if (n < 2 || x[0] == x[n - 1]) {
		return -EDOM;
	}
	line = line_through(x, y, n);
	idle = (line.at_0 - r->static_w) / r->gpu_sms;
	*ret_idle_w = idle > 0 ? idle : 0;
	*ret_per_sm_w = line.slope + *ret_idle_w;
	*ret_off = line.off;
	return 0;
}

static int fill_table(const struct rows *r, double idle_w, unsigned margin_percent,
		      struct book_table *t) {
	int e = 0;

	for (size_t i = 0; i < r->n && e == 0; i++) {
		const struct row *row = &r->list[i];
		nsec_t in = (nsec_t)row->copy_in.max, out = (nsec_t)row->copy_out.max;
		double mw = row->metered ? rows_dynamic_w(r, row, idle_w) * 1e3 : 0;
		bool telling = row->exec.n >= MEAN_JOBS_MIN;

		t->copy_in = in > t->copy_in ? in : t->copy_in;
		t->copy_out = out > t->copy_out ? out : t->copy_out;
		e = book_add_point(
			t, &(struct book_point){
				   .n_sms = row->n_sms,
				   .best = (nsec_t)row->exec.min,
				   .worst = (nsec_t)(row->exec.max * (100 + margin_percent) / 100),
				   .mean = telling ? (nsec_t)row->exec.mean : 0,
				   .ci95 = telling ? (nsec_t)row->exec.half : 0,
				   .power_mw = (uint32_t)fmin(mw, PROFILE_POWER_MAX_MW),
			   });
	}
	return e;
}

static bool is_below_static(const struct rows *r, const struct row *row) {
	return row->metered && row->watts + row->watts_off < r->static_w;
}

unsigned rows_doubt(const struct rows *r, const struct book *profile, bool *ret_power, char *why,
		    size_t size) {
	*ret_power = false;
	for (size_t i = 0; i < r->n; i++) {
		const struct row *row = &r->list[i];

		if (is_below_static(r, row)) {
			*ret_power = true;
			snprintf(why, size,
				 "with jobs on %u SMs the GPU drew %.2f W, idle %.2f W: the energy "
				 "of a job would be negative",
				 row->n_sms, row->watts, r->static_w);
			return row->n_sms;
		}
	}
	return book_doubt(&profile->profiles[0].tables[0], why, size);
}

void rows_drop(struct rows *r, unsigned n_sms) {
	size_t n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->list[i].n_sms != n_sms) {
			r->list[n++] = r->list[i];
		} else if (is_below_static(r, &r->list[i])) {
			n = 0;
			break;
		}
	}
	r->n = n;
}

int rows_profile(const struct rows *r, const char *name, double idle_w, unsigned margin_percent,
		 struct book *ret) {
	struct book_profile *profile;
	struct book_table *table;
	struct book b = {0};
	int e = book_add_profile(&b, name, &profile);

	if (e == 0) {
		e = book_add_table(profile, r->gpu, &table);
	}
	if (e == 0) {
		e = fill_table(r, idle_w, margin_percent, table);
	}
	if (e < 0) {
		book_deinit(&b);
		return e;
	}
	*ret = b;
	return 0;
}

static json_t *sample_json(const struct sample *s) {
	return json_pack("{s:f, s:f, s:f, s:f, s:f}", "mean_ns", s->mean, "min_ns", s->min,
			 "p99_ns", s->p99, "max_ns", s->max, "ci95_ns", s->half);
}

static json_t *row_json(const struct rows *r, const struct row *row, double idle_w) {
	json_t *dynamic = json_null(), *energy = json_null(), *watts = json_null();

	if (row->metered) {
		watts = json_real(row->watts);
		dynamic = json_real(rows_dynamic_w(r, row, idle_w));
		energy = json_real(rows_job_j(r, row));
	}
	return json_pack("{s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:f, s:o, s:o}", "sms",
			 (int)row->n_sms, "sms_asked", (int)row->asked, "jobs", (int)row->exec.n,
			 "copy_in", sample_json(&row->copy_in), "exec", sample_json(&row->exec),
			 "copy_out", sample_json(&row->copy_out), "gpu_w", watts, "gpu_w_off",
			 row->watts_off, "dynamic_w", dynamic, "energy_j", energy);
}

json_t *rows_json(const struct rows *r, double idle_w) {
	json_t *list = json_array();

	for (size_t i = 0; i < r->n; i++) {
		json_array_append_new(list, row_json(r, &r->list[i], idle_w));
	}
	return list;
}

int rows_save(const struct rows *r, const char *path, const char *key) {
	json_t *o = json_pack("{s:s, s:f, s:b, s:o}", "key", key, "static_w", r->static_w,
			      "metered", (int)r->metered, "rows", rows_json(r, 0));
	char temporary[4096];
	int e = 0;

	if (!o) {
		return -ENOMEM;
	}
	if (snprintf(temporary, sizeof(temporary), "%s.new", path) >= (int)sizeof(temporary)) {
		e = -ENAMETOOLONG;
	} else if (json_dump_file(o, temporary, JSON_INDENT(1)) < 0 ||
		   rename(temporary, path) < 0) {
		e = errno ? -errno : -EIO;
		unlink(temporary);
	}
	json_decref(o);
	return e;
}

static int load_sample(const json_t *o, size_t n, struct sample *ret) {
	struct sample s = {.n = n};

	if (json_unpack((json_t *)o, "{s:F, s:F, s:F, s:F, s:F}", "mean_ns", &s.mean, "min_ns",
			&s.min, "p99_ns", &s.p99, "max_ns", &s.max, "ci95_ns", &s.half) < 0 ||
	    s.min < 0 || s.max < s.min || s.max > (double)PROFILE_TIME_MAX) {
		return -EBADMSG;
	}
	*ret = s;
	return 0;
}

static int load_row(struct rows *r, const json_t *o) {
	int n_sms, asked, jobs;
	json_t *copy_in, *exec, *watts, *copy_out = NULL; /* files of older versions have none */
	struct row row = {0};

	if (json_unpack((json_t *)o, "{s:i, s:i, s:i, s:o, s:o, s:o, s?o}", "sms", &n_sms,
			"sms_asked", &asked, "jobs", &jobs, "copy_in", &copy_in, "exec", &exec,
			"gpu_w", &watts, "copy_out", &copy_out) < 0 ||
	    n_sms < 1 || n_sms > PROTO_SMS_MAX || asked < 1 || asked > PROTO_SMS_MAX || jobs < 1 ||
	    load_sample(copy_in, (size_t)jobs, &row.copy_in) < 0 ||
	    load_sample(exec, (size_t)jobs, &row.exec) < 0 || row.exec.min < 1 ||
	    (copy_out && load_sample(copy_out, (size_t)jobs, &row.copy_out) < 0)) {
		return -EBADMSG;
	}
	row.n_sms = (unsigned)n_sms;
	row.asked = (unsigned)asked;
	row.metered = json_is_number(watts);
	row.watts = json_number_value(watts);
	row.watts_off = json_number_value(json_object_get(o, "gpu_w_off"));
	return rows_have(r, row.n_sms) ? -EBADMSG : rows_add(r, &row);
}

int rows_load(struct rows *r, const char *path, const char *key) {
	json_t *o, *list, *row;
	const char *found;
	json_error_t error;
	int e = 0, metered;
	size_t i;

	if (access(path, R_OK) < 0) {
		return -errno;
	}
	o = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!o) {
		return -EBADMSG;
	}
	if (json_unpack(o, "{s:s, s:F, s:b, s:o}", "key", &found, "static_w", &r->static_w,
			"metered", &metered, "rows", &list) < 0) {
		e = -EBADMSG;
	} else if (strcmp(found, key) != 0) {
		e = -EKEYREJECTED;
	} else {
		r->metered = metered;
		json_array_foreach(list, i, row) {
			e = e == 0 ? load_row(r, row) : e;
		}
	}
	json_decref(o);
	return e;
}
