/*
 * kernels.c: see kernels.h.
 */
#include "client/ptx/kernels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/taken.h"
#include "shim/ptx/wait-first.h"

/* Every kernel of a cubin has a section of constants for its parameters, named after it. */
#define PARAMETER_SECTION ".nv.constant0."

static int add_row(struct kernels *k, const struct kernel_row *row) {
	if (k->n_rows == k->allocated) {
		size_t n = k->allocated ? k->allocated * 2 : 64;
		struct kernel_row *rows = reallocarray(k->rows, n, sizeof(*rows));

		if (!rows) {
			return -ENOMEM;
		}
		k->rows = rows;
		k->allocated = n;
	}
	k->rows[k->n_rows++] = *row;
	k->n_confinable += row->confinable;
	return 0;
}

/* Why the launches of @unit's kernels stay as they are on a GPU of @sm, or of the newest kind that
 * the entry is for if it is 0; empty: they don't. The driver may take machine code instead of it.
 */
static int find_plain(const struct kernels *k, const struct kernel_unit *unit, unsigned sm,
		      char *why, size_t why_size) {
	const struct fatbin_entry *e;
	void *dependent = NULL;
	int r;

	if (sm > 0 && sm < WAIT_FIRST_SM_MIN) {
		snprintf(why, why_size, "the GPU is older than sm_%d", WAIT_FIRST_SM_MIN);
		return 0;
	}
	e = taken_entry(k->fatbin, unit->entry->image, sm ? sm : unit->entry->sm, k->force_jit, why,
			why_size);
	if (!e) {
		return 0;
	}
	r = taken_wait_first(&dependent, k->fatbin, e, why, why_size);
	free(dependent);
	if (r == 0) {
		*why = '\0';
	}
	return r == -ENOTSUP ? 0 : r;
}

static int set_plain(const struct kernels *k, struct kernel_unit *unit, unsigned sm, char *error,
		     size_t error_size) {
	char why[128];
	int r = find_plain(k, unit, sm, why, sizeof(why));

	if (r < 0) {
		snprintf(error, error_size, "%s", why);
		return r;
	}
	unit->plain = *why ? strdup(why) : NULL;
	return unit->plain || !*why ? 0 : -ENOMEM;
}

static int read_ptx(struct kernels *k, struct kernel_unit *unit, unsigned sm, const uint8_t *data,
		    size_t size, char *error, size_t error_size) {
	int r = transform_new(&unit->transform, (const char *)data, size, error, error_size);

	r = r == 0 ? set_plain(k, unit, sm, error, error_size) : r;
	if (r < 0) {
		return r;
	}
	for (size_t i = 0; i < unit->transform->n_kernels; i++) {
		const struct twin_kernel *t = &unit->transform->kernels[i];

		r = add_row(k, &(struct kernel_row){.name = t->name,
						    .entry = unit->entry,
						    .confinable = t->confinable,
						    .reason = t->reason,
						    .line = t->line,
						    .instruction = t->instruction,
						    .votes = t->uses_barriers,
						    .waits = t->waits,
						    .block_multiple = t->block_multiple,
						    .plain = unit->plain});
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int read_cubin(struct kernels *k, struct kernel_unit *unit, unsigned sm, const uint8_t *data,
		      size_t size, char *error, size_t error_size) {
	struct elf elf;
	const char *why;
	int r;

	r = elf_init(&elf, data, size, &why);
	if (r < 0) {
		snprintf(error, error_size, "damaged machine code: %s", why);
		return r;
	}
	r = set_plain(k, unit, sm, error, error_size);
	if (r < 0) {
		return r;
	}
	for (uint64_t i = 0; i < elf.n_sections; i++) {
		struct elf_section section;

		if (elf_section(&elf, i, &section) < 0 ||
		    strncmp(section.name, PARAMETER_SECTION, strlen(PARAMETER_SECTION)) != 0) {
			continue;
		}
		r = add_row(k,
			    &(struct kernel_row){.name = section.name + strlen(PARAMETER_SECTION),
						 .entry = unit->entry,
						 .reason = "machine code only, no PTX to rewrite",
						 .plain = unit->plain});
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

/* A damaged entry is that entry's problem: the others are still looked at. */
static int read_entry(struct kernels *k, const struct fatbin_entry *entry, unsigned sm) {
	struct kernel_unit *unit = &k->units[k->n_units++];
	const uint8_t *data;
	char error[512] = "";
	size_t size;
	int r;

	unit->entry = entry;
	r = fatbin_unpack(k->fatbin, entry, error, sizeof(error), &data, &size);
	if (r == 0 && entry->kind == FATBIN_PTX) {
		r = read_ptx(k, unit, sm, data, size, error, sizeof(error));
	} else if (r == 0 && entry->kind == FATBIN_CUBIN) {
		r = read_cubin(k, unit, sm, data, size, error, sizeof(error));
	}
	if (r == 0) {
		return 0;
	}
	unit->error = strdup(*error ? error : strerror(-r));
	return unit->error ? 0 : -ENOMEM;
}

/* Without PTX: the machine code for the newest GPU not above @sm. */
static const struct fatbin_entry *best_cubin(const struct fatbin *f, unsigned image, unsigned sm) {
	const struct fatbin_entry *best = NULL;

	for (size_t i = 0; i < f->n_entries; i++) {
		const struct fatbin_entry *e = &f->entries[i];

		if (e->image == image && e->kind == FATBIN_CUBIN && (sm == 0 || e->sm <= sm) &&
		    (!best || e->sm > best->sm)) {
			best = e;
		}
	}
	return best;
}

static int read_images(struct kernels *k, unsigned sm) {
	for (unsigned i = 0; i < k->fatbin->n_images; i++) {
		const struct fatbin_entry *e = fatbin_best_ptx(k->fatbin, i, sm);
		int r;

		e = e ? e : best_cubin(k->fatbin, i, sm);
		r = e ? read_entry(k, e, sm) : 0;
		if (r < 0) {
			return r;
		}
	}
	return 0;
}

static int open_file(struct kernels *k, const struct input *in, char *error, size_t error_size) {
	int r = fatbin_new_from_file(&k->fatbin, in->bytes, in->size, error, error_size);

	if (r == -ENOENT) {
		return 0;
	}
	if (r < 0) {
		return r;
	}
	/* One for each image, or one alone. */
	k->units = calloc((size_t)k->fatbin->n_images + 1, sizeof(*k->units));
	return k->units ? 0 : -ENOMEM;
}

int kernels_init(struct kernels *ret, const struct input *in, unsigned sm, int entry, char *error,
		 size_t error_size) {
	const char *force_jit = getenv("CUDA_FORCE_PTX_JIT");
	struct kernels k = {.force_jit = force_jit && strcmp(force_jit, "1") == 0};
	int r;

	*error = '\0';
	r = open_file(&k, in, error, error_size);
	if (r == 0 && entry >= 0) {
		bool there = k.fatbin && (size_t)entry < k.fatbin->n_entries;

		r = there ? read_entry(&k, &k.fatbin->entries[entry], sm) : KERNELS_E_NO_ENTRY;
	} else if (r == 0 && k.fatbin) {
		r = read_images(&k, sm);
	}
	if (r != 0) {
		if (r < 0 && !*error) {
			snprintf(error, error_size, "%s", strerror(-r));
		}
		kernels_deinit(&k);
		return r;
	}
	*ret = k;
	return 0;
}

void kernels_deinit(struct kernels *k) {
	for (size_t i = 0; i < k->n_units; i++) {
		transform_free(k->units[i].transform);
		free(k->units[i].error);
		free(k->units[i].plain);
	}
	free(k->units);
	free(k->rows);
	fatbin_free(k->fatbin);
	*k = (struct kernels){0};
}
