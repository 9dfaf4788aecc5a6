/* test-sensor.c: which power sensor of a board is the GPU's, and its energy. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/gpu/sensor.h"

static char folder[64];

static int make_folder(void **state) {
	snprintf(folder, sizeof(folder), "/tmp/test-sensor-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
	char command[96];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put(const char *device, const char *name, const char *text) {
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, device);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "%s/%s/%s", folder, device, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void put_rail(const char *device, unsigned channel, const char *label, const char *mv,
		     const char *ma) {
	char name[32];

	snprintf(name, sizeof(name), "in%u_label", channel);
	put(device, name, label);
	snprintf(name, sizeof(name), "in%u_input", channel);
	put(device, name, mv);
	snprintf(name, sizeof(name), "curr%u_input", channel);
	put(device, name, ma);
}

static void finds(const char *rail, uint64_t mw) {
	struct sensor *s;
	uint64_t is = 0;

	assert_int_equal(sensor_new(&s, folder), 0);
	assert_string_equal(sensor_rail(s), rail);
	assert_int_equal(sensor_read(s, &is), 0);
	assert_int_equal(is, mw);
	sensor_free(s);
}

static void the_rail_of_the_gpu_is_preferred(void **state) {
	struct sensor *s = (void *)&folder;

	assert_int_equal(sensor_new(&s, folder), -ENOENT);
	assert_ptr_equal(s, &folder);
	put("hwmon0", "temp1_label", "GPU\n"); /* a temperature is no power */
	put("hwmon0", "temp1_input", "40000\n");
	put_rail("hwmon1", 2, "VDD_CPU_CV\n", "19000\n", "100\n");
	assert_int_equal(sensor_new(&s, folder), -ENOENT);
	put_rail("hwmon1", 3, "VDD_IN\n", "5000\n", "2000\n");
	finds("VDD_IN", 10000);
	put_rail("hwmon2", 1, "VDD_CPU_GPU_CV\n", "5000\n", "800\n");
	finds("VDD_CPU_GPU_CV", 4000);
	put_rail("hwmon1", 1, "VDD_GPU_SOC\n", "19000\n", "333\n");
	finds("VDD_GPU_SOC", 6327);
	put("hwmon3", "power1_label", "VDD_GPU\n"); /* in microwatts */
	put("hwmon3", "power1_input", "7654321\n");
	finds("VDD_GPU", 7654);
}

/* Then another rail, or none. */
static void what_cannot_be_read_is_left_out(void **state) {
	struct sensor *s;
	uint64_t mw = 77;

	put_rail("hwmon0", 1, "VDD_GPU\n", "", "100\n");
	put_rail("hwmon0", 2, "VDD_GPU_SOC\n", "-19000\n", "100\n");
	put_rail("hwmon0", 3, "VDD_SYS_GPU\n", "19000 V\n", "100\n");
	put_rail("hwmon0", 4, "POM_5V_GPU\n", "99999999999999999999\n", "100\n");
	put("hwmon0", "in5_label", "GPU\n"); /* no current */
	put("hwmon0", "in5_input", "5000\n");
	assert_int_equal(sensor_new(&s, folder), -ENOENT);
	put_rail("hwmon0", 6, "VDD_IN\n", "5000\n", "100\n");
	assert_int_equal(sensor_new(&s, folder), 0);
	put("hwmon0", "curr6_input", "?\n");
	assert_int_equal(sensor_read(s, &mw), -EIO);
	assert_int_equal(mw, 77);
	put("hwmon0", "curr6_input", "200\n");
	assert_int_equal(sensor_read(s, &mw), 0);
	assert_int_equal(mw, 1000);
	sensor_free(s);
	assert_null(sensor_free(NULL));
}

static void energy_is_the_sum_of_readings(void **state) {
	struct sensor_energy e = {0};

	sensor_add(&e, 5 * NSEC_PER_SEC, 1000);
	assert_int_equal(e.uj, 0);
	for (unsigned ms = 1; ms <= 1000; ms++) { /* 1 W rising to 3 W within a second: 2 J */
		sensor_add(&e, 5 * NSEC_PER_SEC + ms * NSEC_PER_MSEC, 1000 + 2 * ms);
	}
	assert_int_equal(e.uj, 2000000);
	assert_int_equal(e.mw, 3000);
	sensor_add(&e, 60 * NSEC_PER_SEC, 3000); /* the machine slept */
	assert_int_equal(e.uj, 2000000);
	sensor_add(&e, 60 * NSEC_PER_SEC + 300, 1); /* 0.45 uJ */
	sensor_add(&e, 60 * NSEC_PER_SEC + 600000, 1);
	assert_int_equal(e.uj, 2000001);
	sensor_add(&e, 61 * NSEC_PER_SEC + 600000, 1000000000);
	assert_int_equal(e.uj, 2000001 + 500000000000ull + 500);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(the_rail_of_the_gpu_is_preferred),
		CASE(what_cannot_be_read_is_left_out),
		CASE(energy_is_the_sum_of_readings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
