/*
 * fuzz-fatbin.c: any bytes give a list of entries or a refusal; what can be unpacked is read to its
 * last byte. Seeds: tests/unit/fatbin/.
 */
#include <stddef.h>
#include <stdint.h>

#include "shim/ptx/fatbin.h"

/* Unpacked bytes that one input may ask for here, so that a run is not spent on unpacking. */
#define FUZZ_UNPACK_MAX (16u * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	volatile uint8_t last = 0;
	struct fatbin *f = NULL;
	char error[128];
	const uint8_t *data;
	size_t n;

	if (fatbin_new_from_file(&f, bytes, size, error, sizeof(error)) < 0) {
		return 0;
	}
	for (size_t i = 0; i < f->n_entries; i++) {
		if (f->entries[i].size > FUZZ_UNPACK_MAX ||
		    fatbin_unpack(f, &f->entries[i], error, sizeof(error), &data, &n) < 0) {
			continue;
		}
		for (size_t k = 0; k < n; k++) {
			last = last ^ data[k];
		}
	}
	for (unsigned i = 0; i < f->n_images; i++) {
		fatbin_best_ptx(f, i, last);
	}
	fatbin_free(f);
	return 0;
}
