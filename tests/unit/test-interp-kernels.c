/*
 * test-interp-kernels.c: kernels as nvcc makes them (tests/unit/ptx/interp-suite.cu), against the
 * CPU; each test runs with -O3's and with -G's PTX.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/interp-harness.h"

static void open_suite(struct harness *h, void **state) {
	harness_init_file(h, *state);
}

static void kernels_matmul_through_shared_memory(void **state) {
	struct harness h;
	float *a, *b, *c;
	struct {
		uint64_t a, b, c;
		int32_t n;
	} p = {.n = 48};

	open_suite(&h, state);
	p.a = harness_alloc(&h, 48 * 48 * 4, &a);
	p.b = harness_alloc(&h, 48 * 48 * 4, &b);
	p.c = harness_alloc(&h, 48 * 48 * 4, &c);
	for (int i = 0; i < 48 * 48; i++) {
		a[i] = (float)(i % 37) * 0.37f;
		b[i] = 1.0f / (float)(i % 11 + 1);
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "matmul",
						    .grid = {3, 3},
						    .block = {16, 16},
						    .params = &p,
						    .params_size = 28});
	for (int y = 0; y < 48; y++) {
		for (int x = 0; x < 48; x++) {
			float sum = 0;

			for (int k = 0; k < 48; k++) {
				sum = fmaf(a[y * 48 + k], b[k * 48 + x], sum);
			}
			assert_true(c[y * 48 + x] == sum);
		}
	}
	harness_deinit(&h);
}

static void kernels_histogram_by_shared_atomics(void **state) {
	struct harness h;
	uint8_t *in;
	uint32_t *bins, want[256] = {0};
	struct {
		uint64_t in, bins;
		int32_t n;
	} p = {.n = 5000};

	open_suite(&h, state);
	p.in = harness_alloc(&h, 5000, &in);
	p.bins = harness_alloc(&h, 1024, &bins);
	for (int i = 0; i < 5000; i++) {
		in[i] = (uint8_t)(i * i % 251);
		want[in[i]]++;
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "histogram",
						    .grid = {3},
						    .block = {192},
						    .params = &p,
						    .params_size = 20});
	assert_memory_equal(bins, want, sizeof(want));
	harness_deinit(&h);
}

static void kernels_scan_by_shuffles(void **state) {
	struct harness h;
	int32_t *in, *out, sum = 0;
	struct {
		uint64_t in, out;
	} p;

	open_suite(&h, state);
	p.in = harness_alloc(&h, 4 * 512, &in);
	p.out = harness_alloc(&h, 4 * 512, &out);
	for (int i = 0; i < 512; i++) {
		in[i] = i * 7 % 23 - 9;
	}
	harness_run_ok(&h,
		       &(struct harness_launch){
			       .kernel = "scan", .block = {512}, .params = &p, .params_size = 16});
	for (int i = 0; i < 512; i++) {
		sum += in[i];
		assert_int_equal(out[i], sum);
	}
	harness_deinit(&h);
}

static void kernels_sort_in_dynamic_shared_memory(void **state) {
	struct harness h;
	uint32_t *data;
	uint64_t buffer;

	open_suite(&h, state);
	buffer = harness_alloc(&h, 4 * 512, &data);
	for (uint32_t i = 0; i < 512; i++) {
		data[i] = i * 2654435761u;
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "bitonic",
						    .block = {512},
						    .shared = 4 * 512,
						    .params = &buffer,
						    .params_size = 8});
	for (uint32_t i = 1; i < 512; i++) {
		assert_true(data[i - 1] < data[i]);
	}
	harness_deinit(&h);
}

static void assert_near(double got, double want, double relative) {
	if (fabs(got - want) > relative * fabs(want) + relative * 1e-3) {
		fail_msg("%.17g, wanted %.17g", got, want);
	}
}

static void kernels_library_functions_are_close(void **state) {
	struct harness h;
	double *in, *out;
	struct {
		uint64_t in, out;
		int32_t n;
	} p = {.n = 100};

	open_suite(&h, state);
	p.in = harness_alloc(&h, 800, &in);
	p.out = harness_alloc(&h, 6400, &out);
	for (int i = 0; i < 100; i++) {
		in[i] = 0.013 + i * i * 0.37;
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "math",
						    .grid = {2},
						    .block = {64},
						    .params = &p,
						    .params_size = 20});
	for (int i = 0; i < 100; i++) {
		double v = in[i], f = (double)(float)v;

		assert_near(out[8 * i], sin(v) + exp(-v), 1e-14);
		assert_near(out[8 * i + 1], log(v) * sqrt(v), 1e-14);
		assert_near(out[8 * i + 2], pow(v, 1.7) / cbrt(v), 1e-14);
		assert_near(out[8 * i + 3], atan2(v, 2.0) + fmod(v, 0.7), 1e-14);
		assert_near(out[8 * i + 4], sin(f) + exp(-f), 1e-5);
		assert_near(out[8 * i + 5], log(f) / sqrt(f), 1e-5);
		assert_near(out[8 * i + 6], pow(f, 1.7) / f, 1e-5);
		assert_near(out[8 * i + 7], tanh(f) + erf(f), 1e-5);
	}
	harness_deinit(&h);
}

struct shape {
	int32_t kind;
	int16_t w, h;
	int64_t weight;
	double factor[3];
};

static uint64_t power(uint64_t base, uint32_t n, uint64_t mod) {
	uint64_t half;

	if (n == 0) {
		return 1;
	}
	half = power(base, n / 2, mod);
	half = half * half % mod;
	return n % 2 ? half * base % mod : half;
}

static double area(const struct shape *s) {
	switch (s->kind) {
	case 0:
		return s->w * s->h * s->factor[0];
	case 1:
		return fma(s->w, 3.5, (double)s->weight);
	case 2:
		return s->h / 2 - s->factor[1];
	case 3:
		return (double)(s->weight % 7) * s->factor[2];
	case 4:
		return (double)(s->weight / (s->w | 1));
	default:
		return -1;
	}
}

static void kernels_calls_structs_and_function_pointers(void **state) {
	struct harness h;
	uint64_t *powers;
	double *areas;
	int32_t *results;
	struct {
		struct shape base;
		uint64_t powers, areas, results;
	} p = {.base = {.w = -3, .h = 9, .weight = -123456789012, .factor = {0.5, 1.25, -2}}};

	open_suite(&h, state);
	p.powers = harness_alloc(&h, 8 * 192, &powers);
	p.areas = harness_alloc(&h, 8 * 192, &areas);
	p.results = harness_alloc(&h, 4 * 192, &results);
	harness_run_ok(&h, &(struct harness_launch){.kernel = "calls",
						    .grid = {2},
						    .block = {96},
						    .params = &p,
						    .params_size = sizeof(p)});
	for (int t = 0; t < 192; t++) {
		struct shape s = p.base;
		int32_t stack[16], x, y;

		assert_int_equal(powers[t], power((uint64_t)t + 3, (uint32_t)t % 61, 1000000007));
		s.kind = t % 6;
		s.w = (int16_t)(s.w + t);
		s.weight *= t;
		assert_near(areas[t], area(&s), 1e-15);
		for (int i = 0; i < 16; i++) {
			stack[(i * 7 + t) % 16] = i * t;
		}
		x = stack[t % 16];
		y = stack[t * 5 % 16];
		assert_int_equal(results[t], t % 2 ? x * y : x + y);
	}
	harness_deinit(&h);
}

static void kernels_halves_multiply_and_add(void **state) {
	struct harness h;
	float *in;
	uint16_t *out;
	struct {
		uint64_t in, out;
		int32_t n;
	} p = {.n = 20};

	open_suite(&h, state);
	p.in = harness_alloc(&h, 160, &in);
	p.out = harness_alloc(&h, 80, &out);
	for (int i = 0; i < 40; i++) {
		in[i] = (float)(i - 8) * 0.5f;
	}
	harness_run_ok(&h,
		       &(struct harness_launch){
			       .kernel = "halves", .block = {32}, .params = &p, .params_size = 20});
	for (int i = 0; i < 40; i++) {
		/* All of these are exact in half precision: compare the values. */
		float want = (float)(i - 8) * 0.75f - 0.25f, got;
		int e = out[i] >> 10 & 31, m = out[i] & 1023;

		got = e ? ldexpf((float)(1024 + m), e - 25) : ldexpf((float)m, -24);
		assert_true((out[i] & 0x8000 ? -got : got) == want);
	}
	harness_deinit(&h);
}

static void kernels_cooperative_groups_reduce_tiles(void **state) {
	struct harness h;
	int32_t *in, *out;
	struct {
		uint64_t in, out;
	} p;

	open_suite(&h, state);
	p.in = harness_alloc(&h, 4 * 128, &in);
	p.out = harness_alloc(&h, 4 * 16, &out);
	for (int i = 0; i < 128; i++) {
		in[i] = i;
	}
	harness_run_ok(
		&h, &(struct harness_launch){
			    .kernel = "groups", .block = {128}, .params = &p, .params_size = 16});
	for (int i = 0; i < 16; i++) {
		assert_int_equal(out[i], 64 * i + 28 + 4000);
	}
	harness_deinit(&h);
}

static void kernels_print(void **state) {
	struct harness h;
	int32_t n = 7;

	open_suite(&h, state);
	harness_run_ok(&h, &(struct harness_launch){
				   .kernel = "say", .block = {32}, .params = &n, .params_size = 4});
	assert_string_equal(h.printed,
			    "thread 0 of say: 10.50 7 1099511627776%\n"
			    "thread 1 of say: 10.50 7 1099511627776%\n");
	harness_deinit(&h);
}

static void kernels_loops_of_different_lengths(void **state) {
	struct harness h;
	uint32_t *in, *out;
	struct {
		uint64_t in, out;
		int32_t n;
	} p = {.n = 200};

	open_suite(&h, state);
	p.in = harness_alloc(&h, 800, &in);
	p.out = harness_alloc(&h, 800, &out);
	for (uint32_t i = 0; i < 200; i++) {
		in[i] = i * 3 + 1;
	}
	harness_run_ok(&h, &(struct harness_launch){.kernel = "collatz",
						    .grid = {4},
						    .block = {64},
						    .params = &p,
						    .params_size = 20});
	for (uint32_t i = 0; i < 200; i++) {
		uint32_t steps = 0;

		for (uint64_t v = in[i]; v > 1; steps++) {
			v = v & 1 ? 3 * v + 1 : v / 2;
		}
		assert_int_equal(out[i], steps);
	}
	harness_deinit(&h);
}

#define BOTH(name)                                                                          \
	{#name " -O3", name, NULL, NULL, (void *)(uintptr_t) "interp-suite.ptx"}, {         \
#name " -G", name, NULL, NULL, (void *)(uintptr_t) "interp-suite-debug.ptx" \
	}
int main(void) {
	const struct CMUnitTest tests[] = {
		BOTH(kernels_matmul_through_shared_memory),
		BOTH(kernels_histogram_by_shared_atomics),
		BOTH(kernels_scan_by_shuffles),
		BOTH(kernels_sort_in_dynamic_shared_memory),
		BOTH(kernels_library_functions_are_close),
		BOTH(kernels_calls_structs_and_function_pointers),
		BOTH(kernels_halves_multiply_and_add),
		BOTH(kernels_cooperative_groups_reduce_tiles),
		BOTH(kernels_print),
		BOTH(kernels_loops_of_different_lengths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
