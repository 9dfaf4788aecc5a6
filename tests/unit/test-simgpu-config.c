/* test-simgpu-config.c: $SIMGPU, $SIMGPU_PLACE and $SIMGPU_SLICE, and what a block takes of an SM. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/simgpu/config.h"

static void config_reads_models_counts_and_modes(void **state) {
	struct config c;
	char error[256];

	assert_int_equal(config_parse("rtx3070,t400@50khz:mps,h200:exclusive,17:mps", &c, error,
				      sizeof(error)),
			 0);
	assert_int_equal(c.n_gpus, 4);
	assert_int_equal(c.gpus[0].sm_clock_khz, 1725000);
	assert_int_equal(c.gpus[1].sm_clock_khz, 50);
	assert_int_equal(c.gpus[0].device.n_sms, 46);
	assert_int_equal(c.gpus[0].cc_major * 10 + c.gpus[0].cc_minor, 86);
	assert_false(c.gpus[0].device.shared);
	assert_int_equal(c.gpus[1].device.n_sms, 6);
	assert_true(c.gpus[1].device.shared);
	assert_int_equal(c.gpus[2].device.n_sms, 132);
	assert_false(c.gpus[2].device.shared);
	assert_int_equal(c.gpus[3].device.n_sms, 17);
	assert_true(c.gpus[3].device.shared);
	assert_memory_not_equal(c.gpus[0].uuid, c.gpus[1].uuid, 16);
}

static void config_refuses_clocks_that_are_none(void **state) {
	static const char *const wrong[] = {"8@",     "8@khz",	 "8@0khz",	  "8@5",
					    "8@5mhz", "8@-1khz", "8@99999999khz", "8:mps@5khz"};
	struct config c;
	char error[256];

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		assert_int_equal(config_parse(wrong[i], &c, error, sizeof(error)), -EINVAL);
		assert_non_null(strstr(error, "@50khz"));
	}
}

static void config_reads_placements(void **state) {
	static const char *const bad[] = {"adversarial",
					  "adversarial:",
					  "adversarial:0",
					  "adversarial:-1",
					  "adversarial:x",
					  "kind:1",
					  "adversarial:99999999999999999999"};
	struct config c;
	char error[256];

	assert_int_equal(config_parse("2,3", &c, error, sizeof(error)), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(config_parse_place(bad[i], &c), -EINVAL);
	}
	assert_int_equal(config_parse_place("", &c), 0);
	assert_int_equal(c.gpus[0].device.place_seed, 0);
	assert_int_equal(config_parse_place("adversarial:7", &c), 0);
	assert_int_equal(c.gpus[0].device.place_seed, 7);
	assert_int_equal(c.gpus[1].device.place_seed, 8);
}

static void config_refuses_what_is_no_gpu(void **state) {
	static const char *const bad[] = {
		"",	 "0",  "257", "99999999999",	  "rtx", "6:", "6:foo",
		"t400,", "-1", " 6",  "1,1,1,1,1,1,1,1,1"};
	struct config c = {.n_gpus = 77};
	char error[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		error[0] = '\0';
		assert_int_equal(config_parse(bad[i], &c, error, sizeof(error)), -EINVAL);
		assert_true(error[0] != '\0');
		assert_int_equal(c.n_gpus, 77);
	}
}

static void config_reads_time_slices(void **state) {
	static const char *const bad[] = {"99", "1000000001", "x", "100x", "-200", " 200",
					  "99999999999999999999999999"};
	struct config c;
	char error[256];

	assert_int_equal(config_parse("t400,4", &c, error, sizeof(error)), 0);
	assert_int_equal(config_parse_slice("", &c), 0);
	assert_int_equal(c.gpus[0].device.slice_ns, 2050000);
	assert_int_equal(config_parse_slice("100", &c), 0);
	assert_int_equal(c.gpus[1].device.slice_ns, 100000);
	assert_int_equal(config_parse_slice("1000000000", &c), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(config_parse_slice(bad[i], &c), -EINVAL);
	}
	assert_int_equal(c.gpus[0].device.slice_ns, 1000000000000);
}

static void config_reads_rates_of_copies(void **state) {
	static const char *const bad[] = {
		"0", "1000000001", "x", "1x", "-1", " 1", "99999999999999999999999999"};
	struct config c;
	char error[256];

	assert_int_equal(config_parse("t400,4", &c, error, sizeof(error)), 0);
	assert_int_equal(config_parse_host_rate("1000000000", &c), 0);
	assert_int_equal(c.gpus[0].device.host_bytes_per_ms, 1000000000);
	assert_int_equal(config_parse_host_rate("1", &c), 0);
	assert_int_equal(config_parse_host_rate("", &c), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_equal(config_parse_host_rate(bad[i], &c), -EINVAL);
	}
	assert_int_equal(c.gpus[1].device.host_bytes_per_ms, 1);
}

/* As NVIDIA's occupancy tables have it, for each limit of an SM in its turn. */
static void config_fills_sms_as_their_architecture_does(void **state) {
	static const struct {
		const char *gpu;
		unsigned threads, regs, shared, blocks;
	} cases[] = {
		{"t400", 256, 32, 0, 4},	   /* threads: 1024 */
		{"t400", 32, 32, 0, 16},	   /* blocks: 16 */
		{"t400", 256, 128, 0, 2},	   /* registers */
		{"t400", 64, 32, 32 * 1024, 2},	   /* shared memory: 64 KiB */
		{"t400", 33, 32, 0, 16},	   /* two warps */
		{"rtx3070", 256, 32, 0, 6},	   /* threads: 1536 */
		{"rtx3070", 64, 32, 0, 16},	   /* blocks: 16 */
		{"rtx3070", 1024, 32, 0, 1},	   /* no second one fits */
		{"rtx3070", 256, 64, 0, 4},	   /* registers */
		{"rtx3070", 256, 33, 0, 6},	   /* 40 a thread, as they are given out */
		{"rtx3070", 64, 32, 48 * 1024, 2}, /* shared memory: 100 KiB, 1 KiB a block */
		{"rtx3070", 64, 32, 99 * 1024, 1},
		{"h200", 256, 32, 0, 8},	 /* threads: 2048 */
		{"h200", 32, 32, 0, 32},	 /* blocks: 32 */
		{"h200", 256, 255, 0, 1},	 /* registers */
		{"h200", 64, 32, 100 * 1024, 2}, /* shared memory: 228 KiB */
		{"h200", 64, 32, 227 * 1024, 1},
		{"h200", 1024, 65, 0, 0}, /* more registers than there are */
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct device_kernel k;
		struct config c;
		char error[256];

		assert_int_equal(config_parse(cases[i].gpu, &c, error, sizeof(error)), 0);
		k = config_block_needs(&c.gpus[0], cases[i].threads, cases[i].regs,
				       cases[i].shared);
		if (device_occupancy(&c.gpus[0].device, &k) != cases[i].blocks) {
			fail_msg("case %zu: %u blocks", i, device_occupancy(&c.gpus[0].device, &k));
		}
	}
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_reads_models_counts_and_modes),
		cmocka_unit_test(config_refuses_clocks_that_are_none),
		cmocka_unit_test(config_reads_placements),
		cmocka_unit_test(config_reads_time_slices),
		cmocka_unit_test(config_reads_rates_of_copies),
		cmocka_unit_test(config_refuses_what_is_no_gpu),
		cmocka_unit_test(config_fills_sms_as_their_architecture_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
