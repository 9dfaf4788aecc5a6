/*
 * fuzz-transform.c: any bytes give twins or reasons. Every kernel has the one or the other, and
 * what is written can be read again and holds one entry for each twin.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "shim/ptx/ptx.h"
#include "shim/ptx/transform.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool what) {
	if (!what) {
		abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct transform *t = NULL;
	struct ptx_module *m = NULL;
	size_t twins = 0, entries = 0;

	if (transform_new(&t, (const char *)bytes, size, NULL, 0) < 0) {
		return 0;
	}
	for (size_t i = 0; i < t->n_kernels; i++) {
		const struct twin_kernel *k = &t->kernels[i];

		require(k->name && k->confinable == !k->reason);
		require(!k->confinable || k->block_multiple > 0);
		for (size_t v = 0; v < k->n_vars; v++) {
			require(k->vars[v] < t->n_vars);
		}
		twins += k->confinable;
	}
	require((twins > 0) == (t->ptx != NULL));
	if (t->ptx) {
		require(ptx_module_new(&m, t->ptx, t->ptx_size, NULL, 0) == 0);
		for (size_t i = 0; i < m->n_funcs; i++) {
			entries += m->funcs[i].is_entry;
		}
		require(entries == twins);
		ptx_module_free(m);
	}
	transform_free(t);
	return 0;
}
