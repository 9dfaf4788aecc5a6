/* table-file.c: see table-file.h. */
#include "daemon/gpu/table-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/files.h"
#include "daemon/base/util.h"
#include "daemon/book/reader.h"

#define HYPERPERIOD_MAX (86400 * (int64_t)NSEC_PER_SEC)

struct table_file {
	struct timetable *table;	   /* owned */
	char (*names)[PROTO_NAME_MAX + 1]; /* owned, n_tasks of them; room for one of each job */
	unsigned n_tasks;
};

struct table_file *table_file_free(struct table_file *f) {
	if (f) {
		timetable_free(f->table);
		free(f->names);
		free(f);
	}
	return NULL;
}

struct timetable *table_file_table(struct table_file *f) {
	return f->table;
}

unsigned table_file_task(const struct table_file *f, const char *name) {
	for (unsigned i = 0; f && i < f->n_tasks; i++) {
		if (strcmp(f->names[i], name) == 0) {
			return i + 1;
		}
	}
	return 0;
}

/* The number of a task that may be new. */
static unsigned number_of(struct table_file *f, const char *name) {
	unsigned number = table_file_task(f, name);

	if (number == 0) {
		snprintf(f->names[f->n_tasks], sizeof(f->names[0]), "%s", name);
		number = ++f->n_tasks;
	}
	return number;
}

static int read_times(const struct reader *r, const struct reader_node *at, nsec_t hyperperiod,
		      struct timetable_entry *e) {
	struct reader_node node;
	int64_t start, length;
	int error;

	if ((error = reader_need(r, at, "start_ns", &node)) < 0 ||
	    (error = reader_int(r, &node, 0, (int64_t)hyperperiod - 1, &start)) < 0 ||
	    (error = reader_need(r, at, "length_ns", &node)) < 0 ||
	    (error = reader_int(r, &node, 1, (int64_t)hyperperiod, &length)) < 0) {
		return error;
	}
	e->start = (nsec_t)start;
	e->length = (nsec_t)length;
	return 0;
}

static int read_job(struct table_file *f, const struct reader *r, const struct reader_node *at,
		    struct timetable_entry *e) {
	static const char *const keys[] = {"task", "gpu", "sms", "start_ns", "length_ns", NULL};
	const char *name, *sms;
	struct reader_node node;
	int64_t gpu;
	int error;

	if ((error = reader_object(r, at, keys)) < 0 ||
	    (error = reader_need(r, at, "task", &node)) < 0 ||
	    (error = reader_name(r, &node, &name)) < 0) {
		return error;
	}
	e->task = number_of(f, name);
	if ((error = reader_need(r, at, "gpu", &node)) < 0 ||
	    (error = reader_int(r, &node, 0, SCHED_GPUS_MAX - 1, &gpu)) < 0 ||
	    (error = reader_need(r, at, "sms", &node)) < 0 ||
	    (error = reader_string(r, &node, &sms)) < 0) {
		return error;
	}
	e->gpu = (unsigned)gpu;
	if (smset_parse(sms, &e->sms) < 0) {
		return reader_fail(r, &node, "expected SMs such as '0-15,20', found '%s'", sms);
	}
	return read_times(r, at, f->table->hyperperiod, e);
}

static int read_document(struct table_file *f, const struct reader *r,
			 const struct reader_node *root) {
	static const char *const keys[] = {"description", "hyperperiod_ns", "jobs", NULL};
	struct reader_node node;
	int64_t hyperperiod;
	size_t n;
	int e;

	if ((e = reader_object(r, root, keys)) < 0 ||
	    (e = reader_need(r, root, "hyperperiod_ns", &node)) < 0 ||
	    (e = reader_int(r, &node, 1, HYPERPERIOD_MAX, &hyperperiod)) < 0 ||
	    (e = reader_need(r, root, "jobs", &node)) < 0 ||
	    (e = reader_array(r, &node, TIMETABLE_ENTRIES_MAX)) < 0) {
		return e;
	}
	n = json_array_size(node.value);
	f->table->hyperperiod = (nsec_t)hyperperiod;
	f->table->list = calloc(n + 1, sizeof(*f->table->list));
	f->names = calloc(n + 1, sizeof(*f->names));
	if (!f->table->list || !f->names) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < n && e == 0; i++) {
		struct reader_node job = reader_element(&node, i);

		e = read_job(f, r, &job, &f->table->list[f->table->n]);
		f->table->n += e == 0;
	}
	return e;
}

int table_file_new(struct table_file **ret, const char *path, char *why, size_t size) {
	struct reader r = {.file = path, .error = why, .error_size = size};
	struct table_file *f = calloc(1, sizeof(*f));
	_cleanup_free_ char *text = NULL;
	struct reader_node root = {0};
	int e;

	snprintf(why, size, "%s: no memory", path);
	if (!f || !(f->table = calloc(1, sizeof(*f->table)))) {
		table_file_free(f);
		return -ENOMEM;
	}
	e = files_read(AT_FDCWD, path, READER_SIZE_MAX, &text, &r.size);
	if (e < 0) {
		snprintf(why, size, "%s: %s", path, strerror(-e));
	} else {
		r.text = text;
		e = reader_parse(&r, text, r.size, &root.value);
	}
	if (e == 0) {
		e = read_document(f, &r, &root);
	}
	json_decref(root.value);
	if (e < 0) {
		table_file_free(f);
		return e;
	}
	*ret = f;
	return 0;
}
