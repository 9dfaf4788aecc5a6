/*
 * test-nvtx.c: which ranges of NVTX begin and end jobs, whatever a program does with them. Compiled
 * with NVTX's own header, where the toolkit is there, and with that of tests/fake.
 *
 * The environment is read once a process, so each case is a child. Marks are counted in the place
 * of marks.c.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <nvtx3/nvToolsExt.h>

#include "shim/lane.h"
#include "shim/marks.h"
#include "shim/nvtx-abi.h"
#include "shim/nvtx.h"
#include "shim/worker.h"

int InitializeInjectionNvtx2(nvtx_abi_get_table get_table);

/* Said last, and how often. */
static _Atomic int begun, ended;
static _Atomic(struct mark *) ended_at;
static bool off; /* sbeet is, in this process */

struct mark *__wrap_marks_begin_job(nsec_t release, nsec_t deadline);
struct mark *__wrap_marks_begin_job(nsec_t release, nsec_t deadline) {
	struct mark *m = lane_mark(worker_get()->lanes);

	if (off) {
		return NULL;
	}
	begun++;
	mark_begin(m, release, deadline, 1);
	return m;
}

void __wrap_marks_end_job(struct mark *m);
void __wrap_marks_end_job(struct mark *m) {
	ended++;
	ended_at = m;
	mark_end(m);
}

/* The library that is named there hands on to this program. */
const char *__wrap_injection_other(void);
const char *__wrap_injection_other(void) {
	return NULL;
}

/* Since it was asked last. */
static bool did(int begins, int ends) {
	bool ok = begun == begins && ended == ends;

	if (!ok) {
		print_error("%d begins and %d ends, expected %d and %d\n", begun, ended, begins,
			    ends);
	}
	begun = ended = 0;
	return ok;
}

/* Whether @holds in a child in which SBEET_MARK is @mark. */
static bool in_child(const char *mark, bool (*holds)(void)) {
	int status = -1;
	pid_t child = fork();

	if (child == 0) {
		setenv("SBEET_LOG", "error", 1);
		if (mark) {
			setenv("SBEET_MARK", mark, 1);
		}
		_exit(holds() ? 0 : 1);
	}
	waitpid(child, &status, 0);
	return status == 0;
}

static nvtxEventAttributes_t attributes(int type, const void *name) {
	nvtxEventAttributes_t a;

	memset(&a, 0, sizeof(a));
	a.version = NVTX_VERSION;
	a.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
	a.messageType = type;
	a.message.ascii = name;
	return a;
}

static bool push_and_pop(void) {
	int level = nvtxRangePushA("frame");
	bool ok = level == NVTX_NO_PUSH_POP_TRACKING && did(1, 0); /* as without a tool */

	ok &= nvtxRangePop() == NVTX_NO_PUSH_POP_TRACKING && did(0, 1);
	nvtxRangePushA("frames");
	nvtxRangePushA("fram");
	nvtxRangePushA("");
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangePop();
	ok &= did(0, 0);
	nvtxRangePushW(L"frame");
	nvtxRangePushW(L"step");
	nvtxRangePop();
	ok &= did(1, 0);
	nvtxRangePop();
	return did(0, 1) && ok;
}

static void ranges_of_the_name_are_jobs(void **state) {
	assert_true(in_child("nvtx:frame", push_and_pop));
}

/* Within others, around others, and in each other; the outermost one is the job. */
static bool nest(void) {
	bool ok;

	nvtxRangePushA("epoch");
	nvtxRangePushA("frame");
	nvtxRangePushA("forward");
	nvtxRangePushA("frame");
	nvtxRangePop();
	nvtxRangePop();
	ok = did(1, 0);
	nvtxRangePop();
	ok &= did(0, 1);
	nvtxRangePop();
	return did(0, 0) && ok;
}

static void outermost_range_is_the_job(void **state) {
	assert_true(in_child("nvtx:frame", nest));
}

static bool too_many_pops(void) {
	bool ok;

	nvtxRangePop();
	nvtxRangePop();
	ok = did(0, 0);
	nvtxRangePushA("frame");
	nvtxRangePop();
	nvtxRangePop();
	nvtxRangePop();
	ok &= did(1, 1);
	nvtxRangePushA("frame");
	nvtxRangePop();
	return did(1, 1) && ok;
}

static void ends_without_a_begin_are_ignored(void **state) {
	assert_true(in_child("nvtx:frame", too_many_pops));
}

static bool by_attributes(void) {
	nvtxEventAttributes_t narrow = attributes(NVTX_MESSAGE_TYPE_ASCII, "gr\xc3\xbc\xc3\x9f"),
			      wide = attributes(NVTX_MESSAGE_TYPE_UNICODE, L"gr\xfc\xdf"),
			      none = attributes(0, NULL),
			      null = attributes(NVTX_MESSAGE_TYPE_ASCII, NULL),
			      strange = attributes(77, "gr\xc3\xbc\xc3\x9f"), small = narrow,
			      *all[] = {
				      &none, &null, &strange, &small, NULL,
			      };
	bool ok = true;

	small.size = 8;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		nvtxRangePushEx(all[i]);
		nvtxRangePop();
		nvtxRangeEnd(nvtxRangeStartEx(all[i]));
	}
	ok &= did(0, 0);
	nvtxRangePushEx(&narrow);
	nvtxRangePop();
	nvtxRangePushEx(&wide);
	nvtxRangePop();
	nvtxRangePushA(NULL);
	nvtxRangePop();
	nvtxRangePushW(NULL);
	nvtxRangePop();
	return did(2, 2) && ok;
}

static void names_come_in_several_forms(void **state) {
	assert_true(in_child("nvtx:gr\xc3\xbc\xc3\x9f", by_attributes));
}

static bool registered(void) {
	nvtxStringHandle_t frame = nvtxDomainRegisterStringA(NULL, "frame"),
			   wide = nvtxDomainRegisterStringW(NULL, L"frame"),
			   other = nvtxDomainRegisterStringA(NULL, "step");
	nvtxEventAttributes_t a = attributes(NVTX_MESSAGE_TYPE_REGISTERED, frame),
			      b = attributes(NVTX_MESSAGE_TYPE_REGISTERED, wide),
			      c = attributes(NVTX_MESSAGE_TYPE_REGISTERED, other),
			      d = attributes(NVTX_MESSAGE_TYPE_REGISTERED, NULL),
			      e = attributes(NVTX_MESSAGE_TYPE_REGISTERED, (void *)7);
	bool ok;

	nvtxDomainRegisterStringA(NULL, NULL);
	nvtxDomainRegisterStringW(NULL, NULL);
	nvtxRangePushEx(&a);
	nvtxRangePop();
	nvtxRangePushEx(&b);
	nvtxRangePop();
	ok = did(2, 2);
	nvtxRangePushEx(&c);
	nvtxRangePushEx(&d);
	nvtxRangePushEx(&e);
	return did(0, 0) && ok;
}

static void registered_names_count_too(void **state) {
	assert_true(in_child("nvtx:frame", registered));
}

/* Each domain has its own stack of ranges. */
static bool domains(void) {
	nvtxDomainHandle_t camera = nvtxDomainCreateA("camera"), other = nvtxDomainCreateA("other"),
			   wide = nvtxDomainCreateW(L"camera");
	nvtxEventAttributes_t frame = attributes(NVTX_MESSAGE_TYPE_ASCII, "frame"),
			      step = attributes(NVTX_MESSAGE_TYPE_ASCII, "step");
	bool ok = camera && other && camera != other && wide;

	nvtxDomainRangePushEx(camera, &frame);
	nvtxDomainRangePushEx(other, &step);
	nvtxDomainRangePop(other);
	nvtxDomainRangePop(other);
	nvtxRangePop();
	ok &= did(1, 0);
	nvtxDomainRangePop(camera);
	ok &= did(0, 1);
	nvtxDomainRangePushEx(wide, &frame);
	nvtxDomainRangePop(wide);
	nvtxDomainRangeEnd(camera, nvtxDomainRangeStartEx(camera, &frame));
	return did(2, 2) && ok;
}

/* Of no domain that has jobs. */
static bool elsewhere(void) {
	nvtxDomainHandle_t other = nvtxDomainCreateA("other");
	nvtxEventAttributes_t frame = attributes(NVTX_MESSAGE_TYPE_ASCII, "frame");

	nvtxDomainRangePushEx(other, &frame);
	nvtxDomainRangePop(other);
	nvtxDomainRangePushEx(nvtxDomainCreateW(L"others"), &frame);
	nvtxDomainRangeEnd(other, nvtxDomainRangeStartEx(other, &frame));
	nvtxDomainCreateA(NULL);
	return did(0, 0);
}

static bool only_elsewhere(void) {
	bool ok = elsewhere();

	nvtxRangePushA("frame");
	nvtxRangePop();
	nvtxRangeEnd(nvtxRangeStartA("frame"));
	return did(0, 0) && ok;
}

static bool only_by_default(void) {
	bool ok = elsewhere();

	nvtxRangePushA("frame");
	nvtxRangePop();
	return did(1, 1) && ok;
}

static void domain_may_be_given(void **state) {
	assert_true(in_child("nvtx:frame", domains));
	assert_true(in_child("nvtx:frame@camera", domains));
	assert_true(in_child("nvtx:frame@camera", only_elsewhere));
	assert_true(in_child("nvtx:frame@", only_by_default));
	assert_false(in_child("nvtx:frame", only_by_default)); /* any domain */
}

static void *end_range(void *id) {
	nvtxRangeEnd(*(nvtxRangeId_t *)id);
	return NULL;
}

static bool start_and_end(void) {
	nvtxRangeId_t a = nvtxRangeStartA("frame"), b = nvtxRangeStartW(L"frame"),
		      c = nvtxRangeStartA("step");
	pthread_t thread;
	bool ok = a && b && a != b && c == 0 && did(2, 0);

	nvtxRangeEnd(a);
	nvtxRangeEnd(a);
	nvtxRangeEnd(c);
	nvtxRangeEnd(a + 100);
	nvtxRangeEnd(UINT64_MAX);
	ok &= did(0, 1);
	pthread_create(&thread, NULL, end_range, &b);
	pthread_join(thread, NULL);
	ok &= did(0, 1);
	for (int i = 0; i < 200; i++) { /* never ended: as many as are kept */
		nvtxRangeStartA("frame");
	}
	ok &= begun > 0 && begun < 200;
	return ok;
}

static void started_ranges_may_overlap(void **state) {
	assert_true(in_child("nvtx:frame", start_and_end));
}

static void *push_only(void *unused) {
	nvtxRangePushA("frame");
	nvtxRangePushA("step");
	return NULL;
}

static void *start_only(void *id) {
	*(nvtxRangeId_t *)id = nvtxRangeStartA("frame");
	return NULL;
}

static void run_thread(void *(*run)(void *), void *data) {
	pthread_t thread;

	pthread_create(&thread, NULL, run, data);
	pthread_join(thread, NULL);
}

/* What a thread pushed is over with it; what it started is not. */
static bool threads_of_process(void) {
	nvtxRangeId_t id;
	bool ok;

	run_thread(push_only, NULL);
	ok = did(1, 0) && atomic_load(&lane_mark(NULL)->jobs) == 0;
	run_thread(start_only, &id);
	ok &= did(1, 0) && atomic_load(&lane_mark(NULL)->jobs) == 1;
	nvtxRangeEnd(id);
	return did(0, 1) && atomic_load(&lane_mark(NULL)->jobs) == 0 && ok;
}

/* In thread scope the job is that thread's, whoever ends it. */
static bool threads_by_themselves(void) {
	nvtxRangeId_t id;
	bool ok;

	setenv("SBEET_SCOPE", "thread", 1);
	id = nvtxRangeStartA("frame");
	run_thread(end_range, &id);
	ok = did(1, 1) && ended_at == lane_mark(worker_get()->lanes);
	run_thread(start_only, &id);
	nvtxRangeEnd(id); /* its thread is gone, and the job with it */
	return did(1, 0) && ok;
}

static void threads_come_and_go(void **state) {
	assert_true(in_child("nvtx:frame", threads_of_process));
	assert_true(in_child("nvtx:frame", threads_by_themselves));
}

/* A child that is forked within a range has no part in it. */
static bool forks(void) {
	int status = -1;
	nvtxRangeId_t id = nvtxRangeStartA("frame");
	pid_t child;

	nvtxRangePushA("frame");
	child = fork();
	if (child == 0) {
		begun = 0;
		nvtxRangePop();
		nvtxRangeEnd(id);
		if (!did(0, 0)) {
			_exit(1);
		}
		nvtxRangePushA("frame");
		nvtxRangePop();
		_exit(did(1, 1) ? 0 : 1);
	}
	waitpid(child, &status, 0);
	nvtxRangePop();
	nvtxRangeEnd(id);
	return did(2, 2) && status == 0;
}

static void forked_child_has_ranges_of_its_own(void **state) {
	assert_true(in_child("nvtx:frame", forks));
}

static bool prefixes(void) {
	nvtxRangePushA("step 17");
	nvtxRangePop();
	nvtxRangePushW(L"step");
	nvtxRangePop();
	nvtxRangePushA("ste");
	return did(2, 2);
}

static bool everything(void) {
	nvtxRangePushA("");
	nvtxRangePop();
	nvtxRangePushA("any");
	nvtxRangePop();
	return did(2, 2);
}

static void star_stands_for_any_rest(void **state) {
	assert_true(in_child("nvtx:step*", prefixes));
	assert_true(in_child("nvtx:*", everything));
}

static bool unmanaged(void) {
	off = true;
	nvtxRangePushA("frame");
	nvtxRangePop();
	return nvtxRangeStartA("frame") == 0 && did(0, 0);
}

static void nothing_happens_where_sbeet_is_off(void **state) {
	assert_true(in_child("nvtx:frame", unmanaged));
}

static bool takes_none(void) {
	nvtxDomainHandle_t domain = nvtxDomainCreateA("camera");

	nvtxRangePushA("frame");
	nvtxRangePop();
	return !domain && nvtxRangeStartA("frame") == 0 && did(0, 0);
}

static bool takes_none_twice(void) {
	setenv("SBEET_DISABLE", "1", 1);
	return takes_none();
}

static void without_a_mark_nvtx_has_no_tool(void **state) {
	assert_true(in_child(NULL, takes_none));
	assert_true(in_child("nvtx:", takes_none));
	assert_true(in_child("frame", takes_none));
	assert_true(in_child("nvtx:frame", takes_none_twice));
}

/* ---- tables that are not as they should be ---- */

static nvtx_abi_function slot;
static nvtx_abi_function *short_table[] = {NULL, NULL, NULL, NULL, NULL,
					   NULL, NULL, NULL, NULL, &slot};
static unsigned n_slots;

static int short_slots(enum nvtx_abi_module module, nvtx_abi_function ***ret, unsigned *ret_n) {
	if (module == NVTX_ABI_CORE2) {
		return 0;
	}
	*ret = n_slots ? short_table : NULL;
	*ret_n = n_slots;
	return 1;
}

static struct nvtx_abi_callbacks callbacks = {sizeof(callbacks), short_slots};

static const void *get_callbacks(uint32_t table) {
	return table == NVTX_ABI_CALLBACKS ? &callbacks : NULL;
}

static const void *get_nothing(uint32_t table) {
	return NULL;
}

static bool short_tables(void) {
	bool ok = !InitializeInjectionNvtx2(NULL) && !InitializeInjectionNvtx2(get_nothing);

	callbacks.size = 8;
	ok &= !InitializeInjectionNvtx2(get_callbacks);
	callbacks.size = sizeof(callbacks);
	ok &= InitializeInjectionNvtx2(get_callbacks) && !slot;
	n_slots = NVTX_ABI_RANGE_PUSH_A;
	ok &= InitializeInjectionNvtx2(get_callbacks) && !slot;
	n_slots++;
	return InitializeInjectionNvtx2(get_callbacks) && slot && ok;
}

static void only_slots_that_are_there_are_filled(void **state) {
	assert_true(in_child("nvtx:frame", short_tables));
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_of_the_name_are_jobs),
		cmocka_unit_test(outermost_range_is_the_job),
		cmocka_unit_test(ends_without_a_begin_are_ignored),
		cmocka_unit_test(names_come_in_several_forms),
		cmocka_unit_test(registered_names_count_too),
		cmocka_unit_test(domain_may_be_given),
		cmocka_unit_test(started_ranges_may_overlap),
		cmocka_unit_test(threads_come_and_go),
		cmocka_unit_test(forked_child_has_ranges_of_its_own),
		cmocka_unit_test(star_stands_for_any_rest),
		cmocka_unit_test(nothing_happens_where_sbeet_is_off),
		cmocka_unit_test(without_a_mark_nvtx_has_no_tool),
		cmocka_unit_test(only_slots_that_are_there_are_filled),
	};

	pthread_atfork(NULL, NULL, nvtx_after_fork); /* as fork.c does */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
