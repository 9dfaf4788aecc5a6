/*
 * test-enforce.c: confined launches (enforce.c and context.c) on a made-up driver (fake-twins.h).
 */
#include "fake-twins.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/enforce/plan.h"

/* The device's side of a launch that ran to its end. */
static void complete(const struct twin_arg *arg, uint64_t outside) {
	struct twin_ctl *ctl = (struct twin_ctl *)(uintptr_t)arg->ctl;

	ctl->outside += outside;
	ctl->launches++;
}

static void enforce_launches_the_twin(void **state) {
	struct kernel *k = fake_load("add");
	struct launch l = fake_launch_of("add");
	const struct twin_set *set;

	assert_non_null(k);
	assert_string_equal(kernel_name(k), "add");
	assert_null(kernel_refusal(k));
	assert_int_equal(fake_mask(k, &l), WHOLE | CONFINED);
	assert_int_equal(enforce_prepare(CONTEXT(0), &fake_half, NULL), 0);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");

	assert_true(fake.arg.n_blocks == 600);
	assert_int_equal(fake.arg.grid_x, 100);
	assert_int_equal(fake.arg.grid_y, 3);
	assert_int_equal(fake.arg.grid_z, 2);
	assert_int_equal(fake.arg.n_workers, N_SMS * OCCUPANCY * 2);
	assert_int_equal(fake.grid[0], fake.arg.n_workers);
	assert_int_equal(fake.grid[1], 1);
	assert_int_equal(fake.grid[2], 1);
	assert_ptr_equal(fake.params[0], fake_params[0]);
	assert_ptr_equal(fake.params[1], fake_params[1]);
	assert_int_equal(fake.arg.ctl % 16, 0);
	assert_int_equal(fake.arg.set % 16, 0);
	set = (const struct twin_set *)(uintptr_t)fake.arg.set;
	assert_memory_equal(set->sms, fake_half.sms.words, sizeof(set->sms));
	assert_int_equal(set->stop, 0);
}

static void enforce_runs_the_original_on_the_whole_gpu(void **state) {
	struct enforce_grant g = {
		.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE,
		.sms = smset_range(0, N_SMS),
		.gpu_sms = N_SMS,
	};
	struct launch l = fake_launch_of("add");

	fake_load("add");
	fake_launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, "add");
	g.enforcement = SMID;
	assert_int_equal(enforce_prepare(CONTEXT(0), &g, NULL), 0);
	fake_launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE, "add");
	assert_int_equal(fake.n_allocs, 0);
}

static void enforce_counts_sms_from_0(void **state) {
	struct enforce_grant g = fake_half;
	struct launch l = fake_launch_of("add");
	struct smset first = smset_range(0, 20);

	g.enforcement = SBEET__ENFORCEMENT__ENFORCEMENT_COUNT;
	fake_load("add");
	enforce_prepare(CONTEXT(0), &g, NULL);
	fake_launch_gives(&g, &l, SBEET__ENFORCEMENT__ENFORCEMENT_COUNT, TWIN_PREFIX "add");
	assert_memory_equal((void *)(uintptr_t)fake.arg.set, first.words, sizeof(first));
}

static void enforce_takes_parameters_from_a_buffer(void **state) {
	char buffer[12];
	size_t size = sizeof(buffer);
	void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
			 CU_LAUNCH_PARAM_END};
	struct launch l = fake_launch_of("add");

	l.params = NULL;
	l.extra = extra;
	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	assert_ptr_equal(fake.params[0], buffer);
	assert_ptr_equal(fake.params[1], buffer + 8);
}

static void enforce_runs_the_original_without_memory(void **state) {
	struct launch l = fake_launch_of("add");

	fake_load("add");
	fake.no_memory = true;
	assert_int_equal(enforce_prepare(CONTEXT(0), &fake_half, NULL), -ENOMEM);
	fake_launch_gives(&fake_half, &l, NONE, "add");
}

static void enforce_keeps_the_errors_of_the_original(void **state) {
	struct launch l = fake_launch_of("add");
	Sbeet__Enforcement how;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	fake.no_twin_launch = true;
	fake_launch_gives(&fake_half, &l, NONE, "add");
	fake.launch_result = CUDA_ERROR_LAUNCH_FAILED;
	assert_int_equal(fake_launch(&fake_half, &l, &how), CUDA_ERROR_LAUNCH_FAILED);
	l.grid[1] = 0; /* for the driver to refuse */
	fake.no_twin_launch = false;
	assert_int_equal(fake_launch(&fake_half, &l, &how), CUDA_ERROR_LAUNCH_FAILED);
	assert_string_equal(fake.launched->name, "add");
}

static void enforce_passes_the_configuration_on(void **state) {
	CUlaunchAttribute priority = {.id = CU_LAUNCH_ATTRIBUTE_PRIORITY};
	CUlaunchConfig config = {
		.gridDimX = 100,
		.gridDimY = 3,
		.gridDimZ = 2,
		.blockDimX = 256,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = &priority,
		.numAttrs = 1,
	};
	struct launch l = fake_launch_of("add");

	l.config = &config;
	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	assert_int_equal(fake.n_launches_ex, 1);
	assert_int_equal(fake.grid[0], fake.arg.n_workers);
	assert_int_equal(config.gridDimX, 100);
	assert_int_equal(fake.n_attributes, 1);
	priority.id = CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT;
	fake_launch_gives(&fake_half, &l, NONE, "add");
}

/* The twin behind another on a stream has its control block: it must not start early. */
static void enforce_never_starts_a_twin_early(void **state) {
	CUlaunchAttribute attributes[PLAN_ATTRIBUTES_MAX + 1] = {
		{.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
		 .value.programmaticStreamSerializationAllowed = 1},
		{.id = CU_LAUNCH_ATTRIBUTE_PRIORITY},
	};
	CUlaunchConfig config = {
		.gridDimX = 100,
		.gridDimY = 3,
		.gridDimZ = 2,
		.blockDimX = 256,
		.blockDimY = 1,
		.blockDimZ = 1,
		.attrs = attributes,
		.numAttrs = 2,
	};
	struct launch l = fake_launch_of("add");

	l.config = &config;
	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	assert_int_equal(fake.n_attributes, 1);
	assert_int_equal(fake.first_attribute, CU_LAUNCH_ATTRIBUTE_PRIORITY);
	assert_int_equal(config.numAttrs, 2);
	/* more than there are kinds: the driver's to judge */
	config.numAttrs = PLAN_ATTRIBUTES_MAX + 1;
	fake_launch_gives(&fake_half, &l, NONE, "add");
	assert_int_equal(fake.n_attributes, PLAN_ATTRIBUTES_MAX + 1);
}

static CUdeviceptr control_of(CUstream s, bool per_thread) {
	struct launch l = fake_launch_of("add");

	l.stream = s;
	l.per_thread_default = per_thread;
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	return fake.arg.ctl;
}

static void *control_of_a_thread(void *p) {
	*(CUdeviceptr *)p = control_of(NULL, true);
	return NULL;
}

static void enforce_keeps_streams_apart(void **state) {
	CUstream a = (CUstream)&fake.n_copies, b = (CUstream)&fake.n_allocs;
	CUdeviceptr legacy, mine, other = 0, of_a;
	pthread_t thread;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	legacy = control_of(NULL, false);
	assert_true(control_of(CU_STREAM_LEGACY, true) == legacy);
	assert_true(control_of(NULL, false) == legacy);
	mine = control_of(NULL, true);
	assert_true(mine != legacy);
	assert_true(fake.stream == CU_STREAM_PER_THREAD);
	assert_true(control_of(CU_STREAM_PER_THREAD, false) == mine);
	of_a = control_of(a, false);
	assert_true(of_a != legacy && of_a != mine);
	assert_true(control_of(a, true) == of_a);
	assert_true(control_of(b, false) != of_a);
	assert_int_equal(pthread_create(&thread, NULL, control_of_a_thread, &other), 0);
	pthread_join(thread, NULL);
	assert_true(other && other != mine && other != legacy);
}

struct late {
	CUdeviceptr mine, other;
};

/* A destructor of the program's that runs after the shim's own, as any library may have one. */

static void launch_late(void *p) {
	struct late *late = p;
	pthread_t thread;

	late->mine = control_of(NULL, true);
	assert_int_equal(pthread_create(&thread, NULL, control_of_a_thread, &late->other), 0);
	pthread_join(thread, NULL);
}

static void *thread_with_destructor(void *p) {
	pthread_key_t key;

	control_of(NULL, true); /* the shim's key is there, so this one is behind it */
	assert_int_equal(pthread_key_create(&key, launch_late), 0);
	pthread_setspecific(key, p);
	return NULL;
}

static void enforce_keeps_a_thread_that_ends_apart(void **state) {
	struct late late = {0};
	pthread_t thread;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	assert_int_equal(pthread_create(&thread, NULL, thread_with_destructor, &late), 0);
	pthread_join(thread, NULL);
	assert_true(late.mine && late.other);
	assert_true(late.mine != late.other);
}

/* A library's kernel runs where its stream is, and device memory of the current context is not
 * there. */

static void enforce_leaves_streams_of_other_contexts_alone(void **state) {
	struct launch l = fake_launch_of("add");

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	l.stream = (CUstream)&fake.n_copies;
	fake.stream_context = &fake.contexts[1];
	assert_int_equal(fake_mask(kernel_find(l.function), &l), WHOLE);
	fake_launch_gives(&fake_half, &l, NONE, "add");
	fake.stream_context = &fake.contexts[0];
	assert_int_equal(fake_mask(kernel_find(l.function), &l), WHOLE | CONFINED);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
}

static void enforce_reuses_control_blocks_that_are_done(void **state) {
	CUstream a = (CUstream)&fake.n_copies;
	CUdeviceptr first, second;
	struct twin_arg arg;

	fake_load("add");
	first = 0;
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	first = control_of(a, false);
	arg = fake.arg;
	enforce_stream_destroying(CONTEXT(0), a);
	/* The launch is still running: a new stream, at the same address, must not share it. */
	second = control_of(a, false);
	assert_true(second != first);
	complete(&arg, 0);
	/* Counted as complete, but not put back yet. */
	((struct twin_ctl *)(uintptr_t)first)->next = 1;
	assert_true(control_of((CUstream)&fake.n_loads, false) != first);
	((struct twin_ctl *)(uintptr_t)first)->next = 0;
	enforce_stream_destroying(NULL, (CUstream)&fake.n_allocs); /* not known: nothing happens */
	assert_true(control_of((CUstream)&fake.n_allocs, false) == first);
}

/* A launch that was stopped, and the one that went on where it had ended. */
static void enforce_reuses_control_blocks_that_were_stopped(void **state) {
	CUstream a = (CUstream)&fake.n_copies;
	CUdeviceptr first;
	struct twin_ctl *ctl;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	first = control_of(a, false);
	ctl = (struct twin_ctl *)(uintptr_t)first;
	ctl->next = 7;
	ctl->stops = 1;
	assert_true(control_of(a, false) == first);
	enforce_stream_destroying(CONTEXT(0), a);
	assert_true(control_of((CUstream)&fake.n_loads, false) != first); /* it still goes on */
	ctl->next = 0;
	ctl->launches = 1;
	assert_true(control_of((CUstream)&fake.n_allocs, false) == first);
}

static void enforce_allocates_nothing_on_later_launches(void **state) {
	struct launch l = fake_launch_of("add");
	unsigned allocs, copies;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	allocs = fake.n_allocs;
	copies = fake.n_copies;
	for (unsigned i = 0; i < 100; i++) {
		l.grid[0] = 1 + i;
		fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	}
	assert_int_equal(enforce_prepare(CONTEXT(0), &fake_half, NULL), 0);
	assert_int_equal(fake.n_copies, copies);
	assert_true(fake.n_allocs <= allocs + 1); /* a spare control block for the next stream */
}

static void enforce_reports_blocks_outside(void **state) {
	struct launch l = fake_launch_of("add");

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 0);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	complete(&fake.arg, 5);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 5);
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 0);
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
	complete(&fake.arg, 2);
	fake.current = NULL; /* asked from a thread without a context */
	assert_int_equal(enforce_outside_blocks(CONTEXT(0)), 2);
}

/* A job is the GPU's, and made ready in the context that opened it. */

static void enforce_confines_in_every_context_of_a_job(void **state) {
	CUfunction add = (CUfunction)fake_function_of(&fake_program, "add");
	struct launch l = fake_launch_of("add");

	kernel_library_loaded((CUlibrary)&fake_program, PROGRAM, NULL, NULL);
	kernel_library_kernel_found((CUlibrary)&fake_program, (CUkernel)add, "add");
	assert_int_equal(enforce_prepare(CONTEXT(0), &fake_half, NULL), 0);
	fake.current = &fake.contexts[1];
	fake_launch_gives(&fake_half, &l, SMID, TWIN_PREFIX "add");
}

static void enforce_forgets_after_fork(void **state) {
	struct launch l = fake_launch_of("add");
	int status = 0;
	pid_t child;

	fake_load("add");
	enforce_prepare(CONTEXT(0), &fake_half, NULL);
	child = fork();
	if (!child) {
		unsigned unloads = fake.n_unloads;

		enforce_after_fork();
		_exit(kernel_find(l.function) || fake.n_unloads != unloads);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	assert_non_null(kernel_find(l.function));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		TEST(enforce_launches_the_twin),
		TEST(enforce_runs_the_original_on_the_whole_gpu),
		TEST(enforce_counts_sms_from_0),
		TEST(enforce_takes_parameters_from_a_buffer),
		TEST(enforce_runs_the_original_without_memory),
		TEST(enforce_keeps_the_errors_of_the_original),
		TEST(enforce_passes_the_configuration_on),
		TEST(enforce_never_starts_a_twin_early),
		TEST(enforce_keeps_streams_apart),
		TEST(enforce_keeps_a_thread_that_ends_apart),
		TEST(enforce_leaves_streams_of_other_contexts_alone),
		TEST(enforce_reuses_control_blocks_that_are_done),
		TEST(enforce_reuses_control_blocks_that_were_stopped),
		TEST(enforce_allocates_nothing_on_later_launches),
		TEST(enforce_reports_blocks_outside),
		TEST(enforce_confines_in_every_context_of_a_job),
		TEST(enforce_forgets_after_fork),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
