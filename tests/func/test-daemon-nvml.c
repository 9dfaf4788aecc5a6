/*
 * test-daemon-nvml.c: what sbeetd learns through NVML, here that of the simulated GPU, and that it
 * runs without.
 */
#include "harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/packet.h"
#include "proto/units.h"

static struct harness harness;

static const char *const automatic[] = {NULL};

static int setup(void **state) {
	harness_prepare(&harness);
	setenv("SIMGPU", "rtx3070:mps,t400", 1);
	setenv("SIMGPU_DIR", harness.directory, 1);
	setenv("LD_LIBRARY_PATH", SIMGPU_LIBRARIES, 1);
	return 0;
}

static int clean(void **state) {
	harness_clean(&harness);
	return 0;
}

static void daemon_lists_gpus_of_nvml(void **state) {
	Sbeet__Control__Status *status;

	harness_start(&harness, automatic);
	status = status_get();
	assert_int_equal(status->n_gpus, 2);
	assert_int_equal(status->gpus[0]->sms, 46);
	assert_string_equal(status->gpus[0]->sharing, "mps");
	assert_true(strlen(status->gpus[0]->name) > 0);
	assert_true(status->gpus[0]->memory_bytes > 0);
	assert_int_equal(status->gpus[1]->sms, 6);
	assert_string_equal(status->gpus[1]->sharing, "exclusive");
	assert_memory_not_equal(status->gpus[0]->uuid.data, status->gpus[1]->uuid.data, 16);
	assert_true(status->gpus[0]->power_mw > 0);
	assert_true(status->gpus[0]->power_limit_mw > status->gpus[0]->power_mw);
	assert_true(status->gpus[0]->memory_used_case);
	assert_int_equal(status->gpus[0]->memory_used_bytes, 0);
	assert_true(status->gpus[0]->utilization_case);
	assert_int_equal(status->gpus[0]->utilization_percent, 0);
	assert_true(status->gpus[0]->temperature_case);
	assert_in_range(status->gpus[0]->temperature_celsius, 25, 80);
	status_free(status);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* A reading is made anew when somebody asks and the last one is older than a second. */
static bool is_younger(const Sbeet__Control__Status *status, void *data) {
	uint64_t *oldest = data, age = status->gpus[0]->power_age_ns;

	if (age < *oldest) {
		return true;
	}
	*oldest = age;
	return false;
}

static void daemon_reads_power_only_when_asked(void **state) {
	uint64_t oldest = 0;

	harness_start(&harness, automatic);
	status_until(is_younger, &oldest);
	assert_true(oldest >= NSEC_PER_SEC);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void write_file(const char *name, const char *text) {
	char path[80];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", harness.directory, name);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

static void set_fault(const char *fault) {
	write_file("nvml-fault", fault);
}

static void request_of(int fd, uint8_t uuid[static 16]) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	request.job = 1;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = 16;
	request.release_ns = nsec_now();
	request.enforcement_mask = MASK_ALL;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	shim_send(fd, &m);
}

static void grants_one_job(void) {
	Sbeet__Control__Status *status = status_get();
	uint8_t uuid[16];
	struct shim s;

	memcpy(uuid, status->gpus[0]->uuid.data, sizeof(uuid));
	status_free(status);
	s = shim_open("s", MASK_ALL);
	request_of(s.fd, uuid);
	shim_granted(s.fd, 1);
	shim_close(&s);
}

static void daemon_runs_without_power(void **state) {
	Sbeet__Control__Status *status;

	set_fault("no-power");
	harness_start(&harness, automatic);
	status = status_get();
	assert_int_equal(status->gpus[0]->power_mw, 0);
	assert_int_equal(status->gpus[0]->energy_mj, 0);
	assert_false(status->gpus[0]->utilization_case);
	assert_false(status->gpus[0]->temperature_case);
	assert_true(status->gpus[0]->memory_used_case); /* the one that can be read */
	assert_false(status->gpus[0]->lost);
	status_free(status);
	grants_one_job();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static bool is_lost(const Sbeet__Control__Status *status, void *data) {
	return status->gpus[0]->lost == *(bool *)data;
}

/* Nobody waits for it: programs learn from their driver. */
static void daemon_tells_of_a_lost_gpu(void **state) {
	bool lost = true;

	harness_start(&harness, automatic);
	set_fault("lost");
	status_until(is_lost, &lost);
	grants_one_job();
	set_fault("");
	lost = false;
	status_until(is_lost, &lost);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Wherever the second one has its sockets. What a dead one left behind keeps nobody out. */
static void one_daemon_a_gpu(void **state) {
	char other[80], first[sizeof(harness.directory)], errors[2048];

	harness_start(&harness, automatic);
	status_free(status_get());
	snprintf(first, sizeof(first), "%s", harness.directory);
	snprintf(other, sizeof(other), "%s/other", first);
	assert_int_equal(mkdir(other, 0700), 0);
	setenv("SBEET_RUNTIME_DIR", other, 1);
	assert_int_equal(harness_run(&harness, automatic, errors, sizeof(errors)), 1);
	assert_non_null(strstr(errors, "another sbeetd has it (pid "));
	setenv("SBEET_RUNTIME_DIR", first, 1);
	status_free(status_get()); /* the first one has not noticed */
	assert_int_equal(harness_stop(&harness, SIGKILL), 128 + SIGKILL);
	harness_start(&harness, automatic);
	status_free(status_get());
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* Simulated GPUs are locked in $SIMGPU_DIR, nowhere else. */
static void daemon_locks_no_simulated_gpu_without_simgpu_dir(void **state) {
	unsetenv("SIMGPU_DIR");
	setenv("XDG_RUNTIME_DIR", harness.directory, 1);
	assert_int_equal(access("/locks", F_OK), -1);
	harness_start(&harness, automatic);
	status_free(status_get());
	assert_false(harness_said(&harness, "lock"));
	assert_int_equal(access("/locks", F_OK), -1);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_runs_without_nvml(void **state) {
	Sbeet__Control__Status *status;
	struct shim s;

	setenv("LD_LIBRARY_PATH", harness.directory, 1);
	harness_start(&harness, automatic);
	status = status_get();
	assert_int_equal(status->n_gpus, 0);
	status_free(status);
	s = shim_open("s", MASK_ALL);
	shim_request(s.fd, 1, 0, MASK_ALL);
	shim_error(s.fd, 1, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU);
	shim_close(&s);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* ---- without NVML ---- */

#define SENSOR "hwmon/hwmon0/"

static void write_sensor(const char *name, const char *text) {
	char path[64];

	snprintf(path, sizeof(path), SENSOR "%s", name);
	write_file(path, text);
}

/* The board of an AGX Orin: 19 V at 0.5 A for GPU and SoC. */
static void make_sensor(void) {
	char path[96];

	snprintf(path, sizeof(path), "%s/hwmon", harness.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/" SENSOR, harness.directory);
	assert_int_equal(mkdir(path, 0700), 0);
	write_sensor("in1_label", "VDD_GPU_SOC\n");
	write_sensor("in1_input", "19000\n");
	write_sensor("curr1_input", "500\n");
	write_sensor("in2_label", "VDD_CPU_CV\n");
	write_sensor("in2_input", "19000\n");
	write_sensor("curr2_input", "9000\n");
}

static bool has_energy(const Sbeet__Control__Status *status, void *data) {
	return status->gpus[0]->energy_mj >= *(uint64_t *)data;
}

static bool draws(const Sbeet__Control__Status *status, void *data) {
	return status->gpus[0]->power_mw == *(uint64_t *)data;
}

static void check_orin(void) {
	Sbeet__Control__Status *status = status_get();

	assert_int_equal(status->n_gpus, 1);
	assert_int_equal(status->gpus[0]->sms, 8);
	assert_string_equal(status->gpus[0]->name, "Simulated Orin");
	assert_string_equal(status->gpus[0]->sharing, "mps");
	assert_true(status->gpus[0]->memory_bytes > 0);
	assert_false(status->gpus[0]->utilization_case);
	assert_false(status->gpus[0]->temperature_case);
	assert_false(status->gpus[0]->memory_used_case);
	status_free(status);
}

static void daemon_takes_power_from_a_sensor(void **state) {
	const char *options[] = {"--hwmon", NULL, NULL};
	uint64_t energy_mj = 1000, power_mw = 9500;
	char folder[96];

	setenv("SIMGPU", "orin:mps", 1);
	make_sensor();
	snprintf(folder, sizeof(folder), "%s/hwmon", harness.directory);
	options[1] = folder;
	harness_listen(&harness);
	harness_start(&harness, options);
	check_orin();
	grants_one_job();
	status_until(draws, &power_mw);
	status_until(has_energy, &energy_mj); /* read though nobody asks: the sum of it is there */
	assert_true(harness_said(&harness, "rail 'VDD_GPU_SOC'") > 0);
	write_sensor("curr1_input", "1000\n");
	power_mw = 19000;
	status_until(draws, &power_mw);
	write_sensor("curr1_input", "gone\n"); /* the last reading stays */
	status_until(draws, &power_mw);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

/* No NVML at all, and no sensor. */
static void daemon_lists_gpus_of_the_driver(void **state) {
	static const char *const files[] = {"libcuda.so.1", "simgpud"};
	const char *options[] = {"--hwmon", harness.directory, NULL};
	Sbeet__Control__Status *status;

	setenv("SIMGPU", "orin:mps", 1);
	for (size_t i = 0; i < 2; i++) {
		char from[256], to[96];

		snprintf(from, sizeof(from), "%s/%s", SIMGPU_LIBRARIES, files[i]);
		snprintf(to, sizeof(to), "%s/%s", harness.directory, files[i]);
		assert_int_equal(symlink(from, to), 0);
	}
	setenv("LD_LIBRARY_PATH", harness.directory, 1);
	harness_start(&harness, options);
	check_orin();
	status = status_get();
	assert_int_equal(status->gpus[0]->power_mw, 0);
	assert_int_equal(status->gpus[0]->energy_mj, 0);
	status_free(status);
	grants_one_job();
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void until_said(const char *text) {
	nsec_t hang = nsec_now() + 60 * NSEC_PER_SEC;

	while (harness_said(&harness, text) == 0) {
		assert_true(nsec_now() < hang);
		usleep(1000);
	}
}

/* Whoever connects meanwhile is served then, by the configuration and the sockets of then. */
static void daemon_waits_for_its_gpus(void **state) {
	Sbeet__Control__Status *status;
	char path[80];
	int early;

	set_fault("waits");
	harness_listen(&harness);
	harness_start(&harness, automatic);
	early = shim_connect();
	shim_hello(early, "early", NULL, MASK_ALL);
	write_file("sbeetd.conf", "[sbeetd]\npolicy = fcfs\n");
	assert_int_equal(kill(harness.pid, SIGHUP), 0);
	until_said("is read again");
	snprintf(path, sizeof(path), "%s/control.sock", harness.directory);
	assert_int_equal(unlink(path), 0);
	until_said("it is there again");
	assert_int_equal(harness_said(&harness, "Ready in"), 0);

	set_fault("");
	packet_free(&shim_receive(early)->base);
	status = status_get();
	assert_string_equal(status->service->policy, "fcfs");
	assert_int_equal(status->n_gpus, 2);
	assert_int_equal(status->n_sessions, 1);
	status_free(status);
	close(early);
	assert_int_equal(harness_stop(&harness, SIGTERM), 0);
}

static void daemon_stops_before_it_knows_its_gpus(void **state) {
	set_fault("waits");
	harness_listen(&harness);
	harness_start(&harness, automatic);
	assert_int_equal(kill(harness.pid, SIGTERM), 0);
	until_said("Stopping on SIGTERM");
	set_fault("");
	assert_int_equal(harness_wait(&harness), 0);
	assert_int_equal(harness_said(&harness, "Ready in"), 0);
}

#define CASE(test) cmocka_unit_test_setup_teardown(test, setup, clean)

int main(void) {
	const struct CMUnitTest tests[] = {
		CASE(daemon_lists_gpus_of_nvml),
		CASE(daemon_reads_power_only_when_asked),
		CASE(daemon_runs_without_power),
		CASE(daemon_tells_of_a_lost_gpu),
		CASE(one_daemon_a_gpu),
		CASE(daemon_runs_without_nvml),
		CASE(daemon_takes_power_from_a_sensor),
		CASE(daemon_lists_gpus_of_the_driver),
		CASE(daemon_locks_no_simulated_gpu_without_simgpu_dir),
		CASE(daemon_waits_for_its_gpus),
		CASE(daemon_stops_before_it_knows_its_gpus),
	};

	return cmocka_run_group_tests_name("daemon-nvml", tests, NULL, NULL);
}
