/*
 * fuzz-transform.c: any bytes give twins or reasons. Every kernel has the one or the other, and
 * what is written can be read again and holds one entry for each twin. For dependent launches the
 * same kernels wait first of all, or the text stays as it is.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/ptx/ptx.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/wait-first.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void require(bool what) {
	if (!what) {
		abort();
	}
}

static size_t count_kernels(const struct ptx_module *m) {
	size_t n = 0;

	for (size_t i = 0; i < m->n_funcs; i++) {
		n += m->funcs[i].is_entry && m->funcs[i].has_body;
	}
	return n;
}

/* Return: how many kernels wait; all must, if any does. */
static size_t count_waiting(const struct ptx_module *m) {
	size_t n = 0;

	for (size_t i = 0; i < m->n_funcs; i++) {
		const struct ptx_func *f = &m->funcs[i];

		if (f->is_entry && f->has_body) {
			require(f->n_stmts > 0);
			require(ptx_name_is(m->stmts[f->stmts].opcode, "griddepcontrol.wait"));
			n++;
		}
	}
	return n;
}

static void wait_first(const char *text, size_t size) {
	struct ptx_module *m = NULL, *old = NULL;
	char *ret = NULL;

	if (wait_first_text(&ret, text, size, NULL, 0) < 0) {
		require(!ret);
		return;
	}
	require(ptx_module_new(&old, text, size, NULL, 0) == 0);
	require(ptx_module_new(&m, ret, strlen(ret), NULL, 0) == 0);
	require(m->target_sm >= WAIT_FIRST_SM_MIN);
	require(count_waiting(m) == count_kernels(old));
	require(m->n_stmts == old->n_stmts + count_kernels(old));
	ptx_module_free(m);
	ptx_module_free(old);
	free(ret);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	struct transform *t = NULL;
	struct ptx_module *m = NULL;
	size_t twins = 0, entries = 0;

	wait_first((const char *)bytes, size);
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
