/*
 * ptx-shapes.c: see ptx-shapes.h.
 */
#include "tests/bench/ptx-shapes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static void add(struct ptx_shape_text *t, const char *format,
						      ...) {
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(t->s + t->n, t->size - t->n, format, args);
	va_end(args);
	if (n < 0 || (size_t)n >= t->size - t->n) {
		abort();
	}
	t->n += (size_t)n;
}

static void open_kernel(struct ptx_shape_text *t, unsigned number, unsigned registers) {
	add(t,
	    ".visible .entry k%u(.param .u64 p)\n{\n\t.reg .pred %%p<9>;\n"
	    "\t.reg .b32 %%r<%u>;\n\t.reg .b64 %%d<9>;\n\tmov.u32 %%r1, %%tid.x;\n"
	    "\tsetp.lt.u32 %%p1, %%r1, 7;\n",
	    number, registers);
}

static void close_kernel(struct ptx_shape_text *t) {
	add(t, "\tbar.sync 0;\n\tshfl.sync.down.b32 %%r3, %%r1, 1, 31, -1;\n\tret;\n}\n");
}

/* Many kernels of ordinary size. */
static void kernels(struct ptx_shape_text *t, size_t bytes) {
	for (unsigned k = 0; t->n < bytes; k++) {
		open_kernel(t, k, 99);
		for (int i = 0; i < 60; i++) {
			add(t,
			    "\tmad.lo.s32 %%r%d, %%r1, %%r2, %%r3;\n\tld.global.f32 %%r4, "
			    "[%%d1+%d];\n",
			    5 + i, 4 * i);
		}
		add(t, "\t@%%p1 bra L;\n\tmov.u32 %%r2, %%ctaid.x;\nL:\n");
		close_kernel(t);
	}
}

/* One kernel; each line depends on the one behind it, against the order of the text. */
static void chain(struct ptx_shape_text *t, size_t bytes) {
	unsigned i = 9;

	open_kernel(t, 0, (unsigned)(bytes / 20));
	for (; t->n < bytes && i < bytes / 20 - 2; i++) {
		add(t, "\tadd.s32 %%r%u, %%r%u, %%r2;\n", i, i + 1);
	}
	while (t->n < bytes) {
		add(t, "\tadd.s32 %%r4, %%r5, %%r6;\n");
	}
	add(t, "\tsetp.eq.u32 %%p2, %%r9, 0;\n\t@%%p2 ret;\n");
	close_kernel(t);
}

/* One kernel; branches all over, forward and back, each with a meeting of the warp behind it. */
static void labels(struct ptx_shape_text *t, size_t bytes) {
	unsigned n = (unsigned)(bytes / 120);

	open_kernel(t, 0, (unsigned)(bytes / 20));
	for (unsigned i = 0; i < n; i++) {
		add(t,
		    "L%u:\n\t@%%p1 bra L%u;\n\tvote.sync.any.pred %%p2, %%p1, -1;\n\tsetp.eq.u32 "
		    "%%p1, %%r%u, 0;\n",
		    i, i * 7919u % n, i + 9);
	}
	close_kernel(t);
}

/* One kernel; loops in loops, and branches that end in the middle of the others. */
static void nested(struct ptx_shape_text *t, size_t bytes) {
	unsigned n = (unsigned)(bytes / 100);

	open_kernel(t, 0, (unsigned)(bytes / 20));
	for (unsigned i = 0; i < n; i++) {
		add(t, "L%u:\n\t@%%p1 bra M%u;\n\tactivemask.b32 %%r%u;\n", i, n - 1 - i, i + 9);
	}
	for (unsigned i = 0; i < n; i++) {
		add(t, "M%u:\n\tvote.sync.any.pred %%p1, %%p1, %%r%u;\n\t@%%p1 bra L%u;\n", i,
		    i + 9, n - 1 - i);
	}
	close_kernel(t);
}

/* Functions that call each other, and leave early. */
static void calls(struct ptx_shape_text *t, size_t bytes) {
	unsigned k = 0;

	add(t, ".func f0()\n{\n\tbar.sync 0;\n\tret;\n}\n");
	for (k = 1; t->n + 400 < bytes; k++) {
		add(t,
		    ".func f%u()\n{\n\t.reg .pred %%p;\n\t.reg .b32 %%r;\n\tmov.u32 %%r, "
		    "%%ctaid.x;\n"
		    "\t@%%p ret;\n\tcall f%u;\n\tret;\n}\n",
		    k, k - 1);
	}
	open_kernel(t, 0, 99);
	add(t, "\tcall f%u;\n", k - 1);
	close_kernel(t);
}

const struct ptx_shape ptx_shapes[] = {
	{"kernels", kernels}, {"chain", chain}, {"labels", labels},
	{"nested", nested},   {"calls", calls},
};

const size_t ptx_shapes_n = sizeof(ptx_shapes) / sizeof(ptx_shapes[0]);

void ptx_shape_write(struct ptx_shape_text *t, const struct ptx_shape *shape, size_t bytes) {
	t->n = 0;
	add(t, ".version 8.0\n.target sm_80\n.address_size 64\n");
	shape->write(t, bytes);
}
