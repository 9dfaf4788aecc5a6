/*
 * test-twin-assert.c: an assertion that fails in a twin names the virtual block, in a kernel that
 * asks for no block ids itself, and in a function that a kernel calls.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "machine.h"
#include "shim/ptx/transform.h"
#include "shim/ptx/twin.h"

#define WORKERS 3

/* Each block counts itself; the one that is told to fails. */
#define COUNT_AND_ASSERT                                                                           \
	"atom.global.add.u32 %n, [%count], 1; setp.ne.u32 %p, %n, %k; @%p bra L;\n"                \
	"{ .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;\n"           \
	"mov.u64 %x, $str; cvta.global.u64 %x, %x; st.param.b64 [a], %x; st.param.b64 [b], %x;\n"  \
	"st.param.b32 [c], 7; mov.u64 %x, $str$1; cvta.global.u64 %x, %x; st.param.b64 [d], %x;\n" \
	"mov.u64 %x, 1; st.param.b64 [e], %x;\n"                                                   \
	"call.uni __assertfail, (a, b, c, d, e); }\nL: ret; }\n"
#define REGISTERS                                                 \
	".reg .b32 %n, %k; .reg .b64 %count, %x; .reg .pred %p; " \
	"ld.param.u64 %count, [count]; ld.param.u32 %k, [k];\n"

static const char text[] =
	".version 8.0\n.target sm_75\n.address_size 64\n"
	".extern .func __assertfail (.param .b64 p0, .param .b64 p1, .param .b32 p2, .param .b64 "
	"p3,"
	".param .b64 p4);\n"
	".global .align 1 .b8 $str[3] = {97, 98, 0};\n"
	".global .align 1 .b8 $str$1[5] = {118, 40, 41, 33, 0};\n" /* v()! */
	".func check(.param .b64 count, .param .b32 k) {\n" REGISTERS COUNT_AND_ASSERT
	".visible .entry direct(.param .b64 count, .param .b32 k) {\n" REGISTERS COUNT_AND_ASSERT
	".visible .entry by_call(.param .b64 count, .param .b32 k) {\n" REGISTERS
	"{ .param .b64 a; .param .b32 b; st.param.b64 [a], %count; st.param.b32 [b], %k;\n"
	"call.uni check, (a, b); }\nret; }\n";

struct params {
	uint64_t count;
	uint32_t k;
	struct twin_arg arg;
};

/* One worker's way through the blocks is in order, so the k-th to count itself is block k. */
static void assert_names(const char *kernel, uint32_t k, const char *block) {
	struct machine *m = machine_new(2, 0, 5);
	struct interp_module *module = NULL;
	struct machine_grid g = {.grid = {1, 1, 1}, .block = {1, 1, 1}, .occupancy = 1};
	struct params params = {.count = machine_alloc(m, 4), .k = k};
	struct transform *t = NULL;
	struct twin_set *set;
	char error[256] = "";
	const char *told;

	assert_int_equal(transform_new(&t, text, strlen(text), error, sizeof(error)), 0);
	if (interp_module_new(&module, t->ptx, t->ptx_size, error, sizeof(error)) < 0) {
		fail_msg("%s", error);
	}
	assert_int_equal(machine_load(m, module), 0);
	g.kernel = interp_module_find(module, kernel);
	assert_non_null(g.kernel);
	params.arg = (struct twin_arg){
		.ctl = machine_alloc(m, twin_ctl_size(WORKERS)),
		.set = machine_alloc(m, sizeof(*set)),
		.n_blocks = 4 * 3 * 2,
		.grid_x = 4,
		.grid_y = 3,
		.grid_z = 2,
		.n_workers = 1,
	};
	set = machine_at(m, params.arg.set);
	memset(set->sms, 0xFF, sizeof(set->sms));
	g.params = &params;
	g.params_size = sizeof(params);
	told = machine_run(m, &g, NULL, NULL);
	if (!told || !strstr(told, block)) {
		fail_msg("%s %u: %s", kernel, k, told ? told : "no fault");
	}
	interp_module_free(module);
	transform_free(t);
	machine_free(m);
}

static void assertion_names_the_virtual_block(void **state) {
	static const char *const kernels[] = {TWIN_PREFIX "direct", TWIN_PREFIX "by_call"};

	for (unsigned i = 0; i < 2; i++) {
		assert_names(kernels[i], 0, "ab:7: v()!, block [0,0,0]: assertion 'ab' failed");
		assert_names(kernels[i], 6, "ab:7: v()!, block [2,1,0]: assertion 'ab' failed");
		assert_names(kernels[i], 23, "ab:7: v()!, block [3,2,1]: assertion 'ab' failed");
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(assertion_names_the_virtual_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
