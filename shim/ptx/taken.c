/*
 * taken.c: see taken.h.
 */
#include "shim/ptx/taken.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/sass.h"
#include "shim/ptx/wait-first.h"

/* Whether there is code for link-time optimisation: then the driver may compile that. */
static bool has_other_code(const struct fatbin *f, unsigned image) {
	for (size_t i = 0; i < f->n_entries; i++) {
		if (f->entries[i].image == image && f->entries[i].kind == FATBIN_OTHER) {
			return true;
		}
	}
	return false;
}

/* Whether there is other machine code for the same GPUs as @cubin: sm_90 and sm_90a. */
static bool is_choice(const struct fatbin *f, const struct fatbin_entry *cubin) {
	for (size_t i = 0; i < f->n_entries; i++) {
		const struct fatbin_entry *e = &f->entries[i];

		if (e != cubin && e->kind == FATBIN_CUBIN && e->image == cubin->image &&
		    e->sm == cubin->sm) {
			return true;
		}
	}
	return false;
}

const struct fatbin_entry *taken_entry(const struct fatbin *f, unsigned image, unsigned sm,
				       bool force_jit, char *why, size_t why_size) {
	const struct fatbin_entry *e = force_jit ? NULL : fatbin_best_cubin(f, image, sm);

	e = e ? e : fatbin_best_ptx(f, image, sm);
	if (!e) {
		snprintf(why, why_size, "there is no code for sm_%u", sm);
	} else if (has_other_code(f, image)) {
		snprintf(why, why_size, "there is code of an unknown kind beside it");
	} else if (e->kind == FATBIN_CUBIN && is_choice(f, e)) {
		snprintf(why, why_size, "the driver has a choice of machine code for sm_%u", e->sm);
	} else {
		return e;
	}
	return NULL;
}

/* PTX is compiled with the options that stand beside it. */
static int wait_first_ptx(void **ret, const struct fatbin *f, const struct fatbin_entry *entry,
			  const uint8_t *bytes, size_t size, char *error, size_t error_size) {
	char *text = NULL;
	void *container;
	size_t n;
	int r = wait_first_text(&text, (const char *)bytes, size, error, error_size);

	if (r < 0 || !fatbin_options(f, entry, &n)) {
		*ret = text;
		return r;
	}
	container = fatbin_with_text(f, entry, text, strlen(text));
	free(text);
	*ret = container;
	return container ? 0 : -ENOMEM;
}

int taken_wait_first(void **ret, struct fatbin *f, const struct fatbin_entry *entry, char *error,
		     size_t error_size) {
	uint8_t *code = NULL;
	const uint8_t *bytes;
	size_t size;
	int r;

	/* Machine code for newer GPUs is not unpacked in vain. */
	if (entry->kind == FATBIN_CUBIN && entry->sm != SASS_SM) {
		snprintf(error, error_size,
			 "it is machine code for another architecture than sm_%d", SASS_SM);
		return -ENOTSUP;
	}
	r = fatbin_unpack(f, entry, error, error_size, &bytes, &size);
	if (r < 0) {
		return r;
	}
	if (entry->kind == FATBIN_CUBIN) {
		r = sass_wait_first(&code, bytes, size, error, error_size);
		*ret = code;
	} else {
		r = wait_first_ptx(ret, f, entry, bytes, size, error, error_size);
	}
	return r;
}
