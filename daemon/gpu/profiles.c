/*
 * profiles.c: reads a folder of profiles. See profiles.h.
 */
#include "daemon/gpu/profiles.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/files.h"
#include "daemon/base/util.h"
#include "daemon/book/book.h"
#include "daemon/gpu/inventory.h"

#define MODELS_MAX   64
#define WATTS_MAX_MW 10000000 /* that no GPU draws: 10 kW */

struct model {
	char name[96];
	unsigned limit, step; /* limit 0: all SMs */
	uint32_t static_mw, idle_mw_per_sm;
};

struct profiles {
	struct book book;
	struct model models[MODELS_MAX];
	size_t n_models;
	/* Owned; profile i on GPU k stands at [i * n_gpus + k], NULL: not known there. */
	struct profile_table **tables;
	size_t n_gpus;
};

static int read_limits(const struct reader *r, const struct reader_node *at, struct model *model) {
	int64_t limit = 0, step = 1;
	struct reader_node node;
	int e;

	if ((reader_get(at, "limit", &node) &&
	     (e = reader_int(r, &node, 1, PROTO_SMS_MAX, &limit)) < 0) ||
	    (reader_get(at, "step", &node) &&
	     (e = reader_int(r, &node, 1, PROTO_SMS_MAX, &step)) < 0)) {
		return e;
	}
	model->limit = (unsigned)limit;
	model->step = (unsigned)step;
	return 0;
}

static int read_model(struct profiles *p, const struct reader *r, const struct reader_node *at) {
	static const char *const keys[] = {"name",  "static_w", "idle_w_per_sm",
					   "limit", "step",	NULL};
	struct model model = {0};
	struct reader_node node;
	const char *name;
	int e;

	if (p->n_models == MODELS_MAX) {
		return reader_fail(r, at, "more than %d GPUs", MODELS_MAX);
	}
	if ((e = reader_object(r, at, keys)) < 0 || (e = reader_need(r, at, "name", &node)) < 0 ||
	    (e = reader_string(r, &node, &name)) < 0 ||
	    (e = reader_need(r, at, "static_w", &node)) < 0 ||
	    (e = reader_milli(r, &node, "watts", WATTS_MAX_MW, &model.static_mw)) < 0 ||
	    (e = reader_need(r, at, "idle_w_per_sm", &node)) < 0 ||
	    (e = reader_milli(r, &node, "watts", WATTS_MAX_MW / PROTO_SMS_MAX,
			      &model.idle_mw_per_sm)) < 0 ||
	    (e = read_limits(r, at, &model)) < 0) {
		return e;
	}
	snprintf(model.name, sizeof(model.name), "%s", name);
	p->models[p->n_models++] = model;
	return 0;
}

static int read_document(struct profiles *p, const struct reader *r,
			 const struct reader_node *root) {
	static const char *const keys[] = {"description", "gpus", "profiles", NULL};
	struct reader_node node;
	int e = reader_object(r, root, keys);

	if (e == 0 && reader_get(root, "gpus", &node)) {
		e = reader_array(r, &node, MODELS_MAX);
		for (size_t i = 0; e == 0 && i < json_array_size(node.value); i++) {
			struct reader_node gpu = reader_element(&node, i);

			e = read_model(p, r, &gpu);
		}
	}
	if (e == 0 && reader_get(root, "profiles", &node)) {
		e = book_read(&p->book, r, &node);
	}
	return e;
}

/* Return: 0, -ENOMEM, or -EINVAL with a line in @error. */
static int read_file(struct profiles *p, int directory, const char *name, char *error,
		     size_t error_size) {
	struct reader r = {.file = name, .error = error, .error_size = error_size};
	_cleanup_free_ char *text = NULL;
	size_t size = 0, n_profiles = p->book.n_profiles, n_models = p->n_models;
	struct reader_node root = {0};
	int e = files_read(directory, name, READER_SIZE_MAX, &text, &size);

	if (e < 0) {
		snprintf(error, error_size, "%s: %s", name, strerror(-e));
		return e == -ENOMEM ? e : -EINVAL;
	}
	r.text = text;
	r.size = size;
	e = reader_parse(&r, text, size, &root.value);
	if (e == 0) {
		e = read_document(p, &r, &root);
	}
	if (e < 0) { /* a file that is wrong says nothing */
		book_truncate(&p->book, n_profiles);
		p->n_models = n_models;
	}
	json_decref(root.value);
	return e;
}

static int is_json(const struct dirent *entry) {
	size_t n = strlen(entry->d_name);

	return entry->d_name[0] != '.' && n > 5 && strcmp(entry->d_name + n - 5, ".json") == 0;
}

static int read_folder(struct profiles *p, const char *path, profiles_warn_fn warn) {
	_cleanup_close_ int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct dirent **entries;
	int n, e = 0;

	if (directory < 0) {
		return -errno;
	}
	n = scandirat(directory, ".", &entries, is_json, alphasort);
	if (n < 0) {
		return -errno;
	}
	for (int i = 0; i < n; i++) {
		char error[PROTO_TEXT_MAX];

		if (e == 0) {
			e = read_file(p, directory, entries[i]->d_name, error, sizeof(error));
		}
		if (e == -EINVAL) {
			warn(error);
			e = 0;
		}
		free(entries[i]);
	}
	free(entries);
	return e;
}

int profiles_new(struct profiles **ret, const char *directory, bool optional,
		 profiles_warn_fn warn) {
	struct profiles *p = calloc(1, sizeof(*p));
	int r;

	if (!p) {
		return -ENOMEM;
	}
	r = read_folder(p, directory, warn);
	if (r < 0 && !(r == -ENOENT && optional)) {
		profiles_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

struct profiles *profiles_free(struct profiles *p) {
	if (p) {
		for (size_t i = 0; p->tables && i < p->book.n_profiles * p->n_gpus; i++) {
			free(p->tables[i]);
		}
		free(p->tables);
		book_deinit(&p->book);
		free(p);
	}
	return NULL;
}

int profiles_lay_out(struct profiles *p, const struct inventory *inventory, profiles_warn_fn warn) {
	p->n_gpus = inventory_n_gpus(inventory);
	p->tables = calloc(p->book.n_profiles * p->n_gpus + 1, sizeof(*p->tables));
	if (!p->tables) {
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->book.n_profiles * p->n_gpus; i++) {
		const struct book_profile *profile = &p->book.profiles[i / p->n_gpus];
		const struct inventory_gpu *gpu = inventory_gpu(inventory, i % p->n_gpus);
		const struct book_table *table = book_table(profile, gpu->name);
		_cleanup_free_ struct profile_table *laid_out = NULL;

		if (!table) {
			continue;
		}
		laid_out = malloc(sizeof(*laid_out));
		if (!laid_out) {
			return -ENOMEM;
		}
		if (book_lay_out(table, gpu->n_sms, laid_out) < 0) {
			char text[256];

			snprintf(text, sizeof(text), "profile '%s' does not fit GPU '%s' of %u SMs",
				 profile->name, gpu->name, gpu->n_sms);
			warn(text);
			continue;
		}
		p->tables[i] = TAKE_PTR(laid_out);
	}
	return 0;
}

bool profiles_model(const struct profiles *p, const char *gpu, unsigned n_sms,
		    struct sched_gpu_model *ret) {
	for (size_t i = p->n_models; i-- > 0;) {
		const struct model *model = &p->models[i];

		if (strcmp(model->name, gpu) == 0) {
			*ret = (struct sched_gpu_model){
				.power = {n_sms, model->static_mw, model->idle_mw_per_sm},
				.limit =
					model->limit && model->limit < n_sms ? model->limit : n_sms,
				.step = model->step,
			};
			return true;
		}
	}
	return false;
}

size_t profiles_find(const struct profiles *p, const char *name,
		     const struct profile_table *ret[static SCHED_GPUS_MAX]) {
	const struct book_profile *profile = book_find(&p->book, name);
	size_t n = 0;

	for (size_t k = 0; profile && p->tables && k < p->n_gpus; k++) {
		ret[k] = p->tables[(size_t)(profile - p->book.profiles) * p->n_gpus + k];
		n += ret[k] != NULL;
	}
	return n;
}

size_t profiles_count(const struct profiles *p) {
	return p->book.n_profiles;
}
