/*
 * test-processes.c: several processes on one simulated GPU: side by side, in turns, dying, failing.
 *
 * Arguments: the client program and simgpud. Each case has a simgpud of its own. Nothing is timed:
 * a kernel runs until the test lets it end, so what two processes hold at once they hold at once,
 * and a condition is waited for until it holds (the test's time limit ends what never comes).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <jansson.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "remote.h"

extern char **environ;

static const char *client_path;
static char dir[] = "/tmp/simgpu-test-XXXXXX";
static char trace_path[64];

/* ---- the trace ---- */

struct block {
	int pid;
	char kernel[32];
	int sm, smid;
	int track, row; /* of the trace */
	uint64_t start_ns, end_ns;
};

/* The array of events. simgpud closes it when it ends: before that, we do. */
static json_t *trace_load(void) {
	FILE *f = fopen(trace_path, "r");
	static char text[1 << 16];
	size_t n;
	json_t *events;

	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 2, f);
	assert_true(n < sizeof(text) - 2);
	fclose(f);
	strcpy(text + n, n > 2 && strcmp(text + n - 2, "]\n") == 0 ? "" : "]");
	events = json_loads(text, 0, NULL);
	assert_true(json_is_array(events));
	return events;
}

/* Blocks of @kernel of client @c; all fields must be there. */
static size_t trace_read(const struct client *c, const char *kernel, struct block *blocks,
			 size_t max) {
	json_t *events = trace_load(), *j;
	size_t n = 0, i;

	json_array_foreach(events, i, j) {
		int gpu, block, launch;
		const char *name, *phase;
		json_int_t start, end;
		double ts, duration;
		struct block b = {0};

		assert_int_equal(json_unpack(j, "{s:s,s:s,s:i}", "ph", &phase, "name", &name, "pid",
					     &b.track),
				 0);
		if (strcmp(phase, "M") == 0) {
			continue;
		}
		assert_string_equal(phase, "X");
		assert_int_equal(json_unpack(j, "{s:i,s:F,s:F,s:{s:i,s:i,s:i,s:i,s:i,s:i,s:I,s:I}}",
					     "tid", &b.row, "ts", &ts, "dur", &duration, "args",
					     "gpu", &gpu, "pid", &b.pid, "launch", &launch, "block",
					     &block, "sm", &b.sm, "smid", &b.smid, "start_ns",
					     &start, "end_ns", &end),
				 0);
		b.start_ns = (uint64_t)start;
		b.end_ns = (uint64_t)end;
		assert_true(b.start_ns <= b.end_ns);
		assert_true(ts >= (double)start / 1000 - 1 && ts <= (double)start / 1000 + 1);
		if (b.pid == c->pid && strcmp(name, kernel) == 0 && n < max) {
			blocks[n++] = b;
		}
	}
	json_decref(events);
	return n;
}

/* The number of the track that the trace names "GPU 0 SM @sm". */
static int trace_track(int sm) {
	json_t *events = trace_load(), *j;
	char wanted[32];
	int found = -1;
	size_t i;

	snprintf(wanted, sizeof(wanted), "GPU 0 SM %d", sm);
	json_array_foreach(events, i, j) {
		const char *name;
		int track;

		if (json_unpack(j, "{s:i,s:{s:s}}", "pid", &track, "args", "name", &name) == 0 &&
		    strcmp(name, wanted) == 0) {
			found = track;
		}
	}
	json_decref(events);
	return found;
}

/* ---- a simgpud for each case ---- */

static int stop_simgpud(void **state) {
	int status = simgpud_stop();

	unlink(trace_path);
	return status;
}

static void use_gpus(const char *simgpu) {
	unsetenv("SIMGPU_FAULTS");
	setenv("SIMGPU", simgpu, 1);
}

/* ---- sharing ---- */

/* Half of each SM for A, the other half for B, at the same time. */
static void mps_runs_processes_side_by_side(void **state) {
	struct client a, b;
	struct block of_a[8], of_b[8];

	use_gpus("4:mps");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "hold 4 1024");
	client_until(&a, "arrived", "4");
	client_ask(&b, "hold 4 1024");
	client_until(&b, "arrived", "4");
	client_ask(&a, "release");
	client_ask(&b, "release");
	assert_string_equal(client_ask(&a, "sync"), "0");
	assert_string_equal(client_ask(&b, "sync"), "0");
	assert_string_equal(client_ask(&a, "smids"), "0,1,2,3");
	assert_string_equal(client_ask(&b, "smids"), "0,1,2,3");
	client_end(&a, 0);
	client_end(&b, 0);
	assert_int_equal(trace_read(&a, "wait", of_a, 8), 4);
	assert_int_equal(trace_read(&b, "wait", of_b, 8), 4);
	for (unsigned i = 0; i < 4; i++) {
		assert_true(of_b[i].start_ns < of_a[0].end_ns);
	}
}

static void mps_numbers_sms_from_0_for_each_client(void **state) {
	struct client a, b;
	struct block blocks[8];

	use_gpus("3:mps");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "hold 2 1024"); /* SMs 0 and 1 */
	client_until(&a, "arrived", "2");
	client_ask(&b, "hold 1 1024"); /* SM 2 */
	client_until(&b, "arrived", "1");
	assert_string_equal(client_ask(&b, "smids"), "0");
	client_ask(&a, "release");
	client_ask(&b, "release");
	assert_string_equal(client_ask(&b, "sync"), "0");
	client_end(&a, 0);
	client_end(&b, 0);
	assert_int_equal(trace_read(&b, "wait", blocks, 8), 1);
	assert_int_equal(blocks[0].sm, 2);
	assert_int_equal(blocks[0].smid, 0);
}

/* One SM that A fills: under MPS, B's blocks have to wait for A's. */
static void mps_makes_processes_wait_for_room(void **state) {
	struct client a, b;
	struct block of_a[4], of_b[4];

	use_gpus("1:mps");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "hold 2 1024");
	client_until(&a, "arrived", "2");
	client_ask(&b, "hold 2 1024");
	assert_string_equal(client_ask(&b, "arrived"), "0");
	client_ask(&a, "release");
	client_until(&b, "arrived", "2");
	client_ask(&b, "release");
	assert_string_equal(client_ask(&b, "sync"), "0");
	client_end(&a, 0);
	client_end(&b, 0);
	assert_int_equal(trace_read(&a, "wait", of_a, 4), 2);
	assert_int_equal(trace_read(&b, "wait", of_b, 4), 2);
	assert_true(of_b[0].start_ns >= of_a[0].end_ns);
}

/* The same in turns: each has the whole SM to itself while it is its turn, so both begin. */
static void exclusive_gives_processes_turns(void **state) {
	struct client a, b;
	struct block of_a[4], of_b[4];

	use_gpus("1");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "hold 2 1024");
	client_until(&a, "arrived", "2");
	client_ask(&b, "hold 2 1024");
	client_until(&b, "arrived", "2");
	client_ask(&a, "release");
	client_ask(&b, "release");
	assert_string_equal(client_ask(&a, "sync"), "0");
	assert_string_equal(client_ask(&b, "sync"), "0");
	client_end(&a, 0);
	client_end(&b, 0);
	assert_int_equal(trace_read(&a, "wait", of_a, 4), 2);
	assert_int_equal(trace_read(&b, "wait", of_b, 4), 2);
	assert_true(of_b[0].start_ns < of_a[0].end_ns);
	assert_int_equal(of_b[0].sm, 0);
}

/* ---- the trace itself ---- */

/* Blocks that are on an SM at once are beside each other on the track of that SM. */
static void trace_has_a_track_for_each_sm(void **state) {
	struct block blocks[8];
	struct client a;
	json_t *events;
	size_t n;

	use_gpus("2");
	client_start(&a, NULL);
	client_ask(&a, "hold 4 1024");
	client_until(&a, "arrived", "4");
	client_ask(&a, "release");
	assert_string_equal(client_ask(&a, "sync"), "0");
	client_end(&a, 0);
	n = trace_read(&a, "wait", blocks, 8);
	assert_int_equal(n, 4);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(blocks[i].track, trace_track(blocks[i].sm));
		for (size_t k = 0; k < i; k++) {
			assert_true(blocks[i].track != blocks[k].track ||
				    blocks[i].row != blocks[k].row);
		}
	}
	assert_true(trace_track(0) > 0 && trace_track(1) > 0 && trace_track(2) < 0);
	/* Closed by the end of simgpud, the file is one JSON text. */
	assert_int_equal(simgpud_stop(), 0);
	events = json_load_file(trace_path, 0, NULL);
	assert_true(json_is_array(events));
	assert_int_equal(json_array_size(events), 2 * 2 + 4);
	json_decref(events);
}

/* ---- several cores ---- */

/* Virtual time, placement and results do not depend on how many threads interpret. */
static void threads_change_nothing_but_speed(void **state) {
	static struct block alone[40], several[40];
	struct client a;
	char answer[sizeof(a.answer)];

	use_gpus("3");
	setenv("SIMGPU_PACE", "0", 1);
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		struct block *blocks = threads == 1 ? alone : several;

		setenv("SIMGPU_THREADS", threads == 1 ? "1" : "4", 1);
		client_start(&a, NULL);
		client_ask(&a, "churn 40");
		if (threads == 1) {
			strcpy(answer, a.answer);
		}
		assert_string_equal(a.answer, answer);
		client_end(&a, 0);
		assert_int_equal(trace_read(&a, "churn", blocks, 40), 40);
		assert_int_equal(stop_simgpud(state), 0);
	}
	unsetenv("SIMGPU_THREADS");
	unsetenv("SIMGPU_PACE");
	assert_true(alone[0].end_ns < alone[39].end_ns);
	for (unsigned i = 0; i < 40; i++) {
		several[i].pid = alone[i].pid;
	}
	assert_memory_equal(several, alone, sizeof(alone));
}

/* ---- dying and failing ---- */

static void a_killed_client_leaves_nothing_behind(void **state) {
	struct client a, b;
	char before[128];

	use_gpus("2:mps");
	setenv("SIMGPU_FAULTS", "contained", 1);
	client_start(&b, NULL);
	strcpy(before, client_ask(&b, "free"));
	client_start(&a, NULL);
	assert_string_equal(client_ask(&a, "alloc 10000000"), "0");
	client_ask(&a, "hold 100 1024"); /* all SMs, and more waiting */
	client_until(&a, "arrived", "4");
	client_ask(&b, "hold 4 1024");
	client_kill(&a);
	client_until(&b, "arrived", "4");
	client_ask(&b, "release");
	assert_string_equal(client_ask(&b, "sync"), "0");
	client_until(&b, "free", before);
	assert_string_equal(client_ask(&b, "add"), "right");
	client_end(&b, 0);
}

static void a_killed_client_ends_its_turn(void **state) {
	struct client a, b;

	use_gpus("2");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "hold 100 1024");
	client_until(&a, "arrived", "4");
	client_kill(&a);
	assert_string_equal(client_ask(&b, "add"), "right");
	client_end(&b, 0);
}

/* As measured: the neighbour's kernel fails. Between kernels nothing happens to it. */
static void a_kill_in_mid_kernel_fails_neighbours_under_mps(void **state) {
	struct client a, b;

	use_gpus("4:mps");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&b, "hold 2 1024");
	client_until(&b, "arrived", "2");
	client_kill(&a); /* nothing of it ran */
	client_ask(&b, "release");
	assert_string_equal(client_ask(&b, "sync"), "0");
	client_start(&a, NULL);
	client_ask(&a, "hold 2 1024");
	client_until(&a, "arrived", "2");
	client_ask(&b, "hold 2 1024");
	client_kill(&a);
	assert_string_equal(client_ask(&b, "sync"), "700");
	client_end(&b, 0);
}

static void a_fault_reaches_neighbours_under_mps(void **state) {
	struct client a, b;

	use_gpus("4:mps");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&b, "hold 2 1024");
	client_until(&b, "arrived", "2");
	client_ask(&a, "fault");
	assert_string_equal(client_ask(&a, "sync"), "700");
	assert_string_equal(client_ask(&b, "sync"), "700");
	client_end(&a, 0);
	client_end(&b, 0);
}

static void a_fault_stays_in_its_process_without_mps(void **state) {
	struct client a, b;

	use_gpus("4");
	client_start(&a, NULL);
	client_start(&b, NULL);
	client_ask(&a, "fault");
	assert_string_equal(client_ask(&a, "sync"), "700");
	assert_string_equal(client_ask(&b, "add"), "right");
	client_end(&a, 0);
	client_end(&b, 0);
}

static void mps_serves_48_contexts(void **state) {
	struct client c[48], one_more;
	char path[80], text[512] = "";
	FILE *f;

	use_gpus("4:mps");
	for (size_t i = 0; i < 48; i++) {
		client_start(&c[i], NULL);
		assert_string_equal(client_ask(&c[i], "add"), "right");
	}
	snprintf(path, sizeof(path), "%s/stderr", dir);
	client_spawn(&one_more, path);
	client_end(&one_more, 1 << 8);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	unlink(path);
	assert_non_null(strstr(text, "CUDA_ERROR_DEVICE_UNAVAILABLE"));
	client_end(&c[0], 0);
	client_start(&one_more, NULL);
	assert_string_equal(client_ask(&one_more, "add"), "right");
	client_end(&one_more, 0);
	for (size_t i = 1; i < 48; i++) {
		client_end(&c[i], 0);
	}
}

static void a_fault_stays_in_its_process(void **state) {
	struct client a, b;
	char path[80], text[512] = "";
	FILE *f;

	use_gpus("4:mps");
	setenv("SIMGPU_FAULTS", "contained", 1);
	snprintf(path, sizeof(path), "%s/stderr", dir);
	client_start(&a, path);
	client_start(&b, NULL);
	client_ask(&b, "hold 2 1024");
	client_until(&b, "arrived", "2");
	client_ask(&a, "fault");
	assert_string_equal(client_ask(&a, "sync"), "700");
	assert_string_equal(client_ask(&a, "alloc 4"), "700"); /* and stays */
	client_ask(&b, "release");
	assert_string_equal(client_ask(&b, "sync"), "0");
	assert_string_equal(client_ask(&b, "add"), "right");
	client_end(&a, 0);
	client_end(&b, 0);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(text, 1, sizeof(text) - 1, f) > 0);
	fclose(f);
	unlink(path);
	assert_non_null(strstr(text, "simgpu: "));
	assert_non_null(strstr(text, "poke"));
	assert_non_null(strstr(text, "thread (0,0,0)"));
}

static void simgpud_refuses_other_gpus_than_it_has(void **state) {
	char *argv[] = {(char *)client_path, NULL};
	struct client a;
	int status;
	pid_t pid;

	use_gpus("2");
	client_start(&a, NULL);
	use_gpus("3");
	assert_int_equal(posix_spawn(&pid, client_path, NULL, NULL, argv, environ), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 1);
	client_end(&a, 0);
}

/* ---- NVML ---- */

static void *nvml_symbol(const char *name) {
	static void *nvml;

	nvml = nvml ? nvml : dlopen("libnvidia-ml.so.1", RTLD_NOW);
	assert_non_null(nvml);
	assert_non_null(dlsym(nvml, name));
	return dlsym(nvml, name);
}

static void nvml_tells_what_the_gpus_do(void **state) {
	int (*init)(void) = nvml_symbol("nvmlInit_v2");
	int (*count)(unsigned *) = nvml_symbol("nvmlDeviceGetCount_v2");
	int (*by_index)(unsigned, void **) = nvml_symbol("nvmlDeviceGetHandleByIndex_v2");
	int (*get_uuid)(void *, char *, unsigned) = nvml_symbol("nvmlDeviceGetUUID");
	int (*cores)(void *, unsigned *) = nvml_symbol("nvmlDeviceGetNumGpuCores");
	int (*power)(void *, unsigned *) = nvml_symbol("nvmlDeviceGetPowerUsage");
	int (*energy)(void *, unsigned long long *) =
		nvml_symbol("nvmlDeviceGetTotalEnergyConsumption");
	int (*memory)(void *, unsigned long long *) = nvml_symbol("nvmlDeviceGetMemoryInfo");
	int (*sharing)(unsigned) = nvml_symbol("simgpuDeviceSharing");
	int (*shutdown)(void) = nvml_symbol("nvmlShutdown");
	unsigned long long info[3], used, first, second;
	unsigned n, mw;
	char uuid[96];
	void *gpu[2];
	struct client a;

	use_gpus("rtx3070,t400:mps");
	assert_int_equal(count(&n), 1 /* uninitialised */);
	assert_int_equal(init(), 0);
	assert_int_equal(count(&n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(by_index(0, &gpu[0]), 0);
	assert_int_equal(by_index(1, &gpu[1]), 0);
	assert_int_equal(by_index(2, &gpu[1]), 2 /* invalid argument */);
	assert_int_equal(sharing(0), 0);
	assert_int_equal(sharing(1), 1);
	assert_int_equal(sharing(2), -1);
	assert_int_equal(get_uuid(gpu[1], uuid, sizeof(uuid)), 0);
	assert_string_equal(uuid, "GPU-53494d47-5055-4001-8000-000000000001");
	assert_int_equal(cores(gpu[0], &n), 0);
	assert_int_equal(n, 46 * 128);
	assert_int_equal(power(gpu[0], &mw), 0);
	assert_int_equal(mw, 46000);
	assert_int_equal(memory(gpu[0], info), 0);
	used = info[2];

	client_start(&a, NULL);
	assert_string_equal(client_ask(&a, "alloc 4096"), "0");
	client_ask(&a, "hold 2 1024"); /* on two SMs of 46 */
	client_until(&a, "arrived", "2");
	assert_int_equal(power(gpu[0], &mw), 0);
	assert_int_equal(mw, 46000 + 2 * 3770 + 44 * 445);
	assert_int_equal(energy(gpu[0], &first), 0);
	client_ask(&a, "release");
	assert_string_equal(client_ask(&a, "sync"), "0");
	assert_int_equal(power(gpu[0], &mw), 0);
	assert_int_equal(mw, 46000);
	do {
		assert_int_equal(energy(gpu[0], &second), 0);
		sched_yield();
	} while (second == first); /* time passes, and costs */
	assert_true(second > first);
	assert_int_equal(memory(gpu[0], info), 0);
	assert_true(info[2] >= used + 4096);
	client_end(&a, 0);
	do {
		assert_int_equal(memory(gpu[0], info), 0);
		sched_yield();
	} while (info[2] != used);
	assert_int_equal(shutdown(), 0);
	assert_int_equal(shutdown(), 1);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(mps_runs_processes_side_by_side, stop_simgpud),
		cmocka_unit_test_teardown(mps_numbers_sms_from_0_for_each_client, stop_simgpud),
		cmocka_unit_test_teardown(mps_makes_processes_wait_for_room, stop_simgpud),
		cmocka_unit_test_teardown(exclusive_gives_processes_turns, stop_simgpud),
		cmocka_unit_test_teardown(trace_has_a_track_for_each_sm, stop_simgpud),
		cmocka_unit_test_teardown(threads_change_nothing_but_speed, stop_simgpud),
		cmocka_unit_test_teardown(a_killed_client_leaves_nothing_behind, stop_simgpud),
		cmocka_unit_test_teardown(a_killed_client_ends_its_turn, stop_simgpud),
		cmocka_unit_test_teardown(a_kill_in_mid_kernel_fails_neighbours_under_mps,
					  stop_simgpud),
		cmocka_unit_test_teardown(a_fault_reaches_neighbours_under_mps, stop_simgpud),
		cmocka_unit_test_teardown(a_fault_stays_in_its_process_without_mps, stop_simgpud),
		cmocka_unit_test_teardown(mps_serves_48_contexts, stop_simgpud),
		cmocka_unit_test_teardown(a_fault_stays_in_its_process, stop_simgpud),
		cmocka_unit_test_teardown(simgpud_refuses_other_gpus_than_it_has, stop_simgpud),
		cmocka_unit_test_teardown(nvml_tells_what_the_gpus_do, stop_simgpud),
	};
	int r;

	if (argc != 3 || !mkdtemp(dir)) {
		fprintf(stderr, "usage: test-processes CLIENT SIMGPUD\n");
		return 2;
	}
	client_path = argv[1];
	remote_init(client_path, argv[2]);
	snprintf(trace_path, sizeof(trace_path), "%s/trace", dir);
	setenv("SIMGPU_DIR", dir, 1);
	setenv("SIMGPU_TRACE", trace_path, 1);
	r = cmocka_run_group_tests(tests, NULL, NULL);
	unsetenv("SIMGPU_DIR");
	snprintf(trace_path, sizeof(trace_path), "%s/simgpud.lock", dir);
	unlink(trace_path);
	rmdir(dir);
	return r;
}
