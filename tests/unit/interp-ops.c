/*
 * interp-ops.c: runs one instruction on all combinations of edge values, against a host function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-harness.h"
#include "tests/unit/interp-ops.h"

static uint64_t cut(uint64_t v, unsigned bits) {
	return bits == 0 ? 0 : v & (UINT64_MAX >> (64 - bits));
}

/* One kernel: thread t takes a, b, c from in[3t], and stores d at out[t]. */
static void make_ptx(const struct ops_case *c, char *ptx, size_t size) {
	static const char names[] = "abcd";
	size_t at;

	at = (size_t)snprintf(ptx, size,
			      ".version 8.0\n.target sm_90\n.address_size 64\n"
			      ".visible .entry op(.param .u64 in, .param .u64 out)\n{\n"
			      ".reg .b64 %%rd<6>;\n.reg .b32 %%r<4>;\n.reg .pred p, q;\n");
	for (unsigned i = 0; i < 4; i++) {
		at += (size_t)snprintf(ptx + at, size - at, ".reg .b%u %c;\n",
				       c->bits[i] ? c->bits[i] : 32u, names[i]);
	}
	at += (size_t)snprintf(ptx + at, size - at,
			       "ld.param.u64 %%rd0, [in];\nld.param.u64 %%rd1, [out];\n"
			       "mov.u32 %%r0, %%ctaid.x;\nmov.u32 %%r1, %%ntid.x;\n"
			       "mov.u32 %%r2, %%tid.x;\nmad.lo.u32 %%r0, %%r0, %%r1, %%r2;\n"
			       "mad.wide.u32 %%rd0, %%r0, 24, %%rd0;\n"
			       "mad.wide.u32 %%rd1, %%r0, 8, %%rd1;\n");
	for (unsigned i = 0; i < 3; i++) {
		if (c->bits[i]) {
			at += (size_t)snprintf(ptx + at, size - at,
					       "ld.global.b%u %c, [%%rd0+%u];\n", c->bits[i],
					       names[i], 8 * i);
		}
	}
	snprintf(ptx + at, size - at, "%s\nst.global.b%u [%%rd1], d;\nret;\n}\n", c->insn,
		 c->bits[3]);
}

static bool close_enough(uint64_t got, uint64_t want, uint64_t ulps) {
	return (got > want ? got - want : want - got) <= ulps;
}

static void check(const struct ops_case *c, const uint64_t *in, const uint64_t *out, size_t n) {
	for (size_t i = 0; i < n; i++) {
		uint64_t x = cut(in[3 * i], c->bits[0]), y = cut(in[3 * i + 1], c->bits[1]);
		uint64_t z = cut(in[3 * i + 2], c->bits[2]);
		uint64_t want = cut(c->want(x, y, z), c->bits[3]);

		if (!close_enough(out[i], want, c->ulps)) {
			fail_msg("%s with a=0x%llx b=0x%llx c=0x%llx: 0x%llx, wanted 0x%llx",
				 c->insn, (unsigned long long)x, (unsigned long long)y,
				 (unsigned long long)z, (unsigned long long)out[i],
				 (unsigned long long)want);
		}
	}
}

static void run_case(const struct ops_case *c, const struct ops_values *v) {
	size_t n_b = c->bits[1] ? v->n_b : 1, n_c = c->bits[2] ? v->n_c : 1;
	size_t n = v->n_a * n_b * n_c, padded = (n + 127) / 128 * 128;
	struct interp_kernel_info info;
	struct {
		uint64_t in, out;
	} params;
	uint64_t *in, *out;
	struct harness h;
	char ptx[4096];

	make_ptx(c, ptx, sizeof(ptx));
	harness_init(&h, ptx);
	interp_kernel_get_info(interp_module_kernel(h.module, 0), &info);
	if (info.unsupported) {
		fail_msg("not supported: %s", info.unsupported);
	}
	params.in = harness_alloc(&h, padded * 24, &in);
	params.out = harness_alloc(&h, padded * 8, &out);
	for (size_t i = 0; i < padded; i++) {
		size_t k = i < n ? i : n - 1;

		in[3 * i] = v->a[k % v->n_a];
		in[3 * i + 1] = v->b[k / v->n_a % n_b];
		in[3 * i + 2] = v->c[k / v->n_a / n_b];
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "op",
						    .grid = {(uint32_t)(padded / 128)},
						    .block = {128},
						    .params = &params,
						    .params_size = sizeof(params)});
	check(c, in, out, padded);
	harness_deinit(&h);
}

void ops_run(const struct ops_case *cases, size_t n, const struct ops_values *v) {
	for (size_t i = 0; i < n; i++) {
		run_case(&cases[i], v);
	}
}
