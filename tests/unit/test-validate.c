/*
 * test-validate.c: each field of each message at, and one beyond, its bounds.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the above, as cmocka demands */
#include <cmocka.h>

#include "proto/enforcement.h"
#include "proto/limits.h"
#include "proto/terms.h"
#include "proto/validate.h"

#define WHOLE (1u << SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)

/* Messages under test: valid until a test changes one field. */
static Sbeet__Hello hello;
static Sbeet__TaskSpec task;
static Sbeet__Control__TaskChange change;
static Sbeet__TaskSpec wanted;
static Sbeet__KernelDef kernel;
static Sbeet__Request request;
static Sbeet__Op op, *ops[PROTO_OPS_MAX + 1];
static Sbeet__OpBatch batch;
static Sbeet__JobDone done;
static Sbeet__Began began;
static Sbeet__JobCount job_count, *job_counts[PROTO_JOBS_PER_SESSION + 1];
static Sbeet__KernelCount kernel_count, *kernel_counts[PROTO_COUNTS_MAX + 1];
static Sbeet__Counts counts;
static Sbeet__RecordOps record_ops;
static Sbeet__Board board;
static Sbeet__Goodbye goodbye;
static Sbeet__Welcome welcome;
static Sbeet__Grant grant;
static uint8_t uuid[PROTO_UUID_BYTES + 1], sms[33];
static char *features[PROTO_FEATURES_MAX + 1];

static char text_of[8192];

/* @n letters; one buffer for all. */
static char *letters(size_t n) {
	memset(text_of, 'a', n);
	text_of[n] = '\0';
	return text_of;
}

static int fill(void **state) {
	static char name[] = "camera", a[] = "a";

	sbeet__hello__init(&hello);
	sbeet__task_spec__init(&task);
	sbeet__control__task_change__init(&change);
	sbeet__task_spec__init(&wanted);
	change.spec = &wanted;
	sbeet__kernel_def__init(&kernel);
	sbeet__request__init(&request);
	sbeet__op__init(&op);
	sbeet__op_batch__init(&batch);
	sbeet__job_done__init(&done);
	sbeet__began__init(&began);
	sbeet__job_count__init(&job_count);
	sbeet__kernel_count__init(&kernel_count);
	sbeet__counts__init(&counts);
	sbeet__record_ops__init(&record_ops);
	sbeet__board__init(&board);
	sbeet__goodbye__init(&goodbye);
	sbeet__welcome__init(&welcome);
	sbeet__grant__init(&grant);

	task.name = change.task = name;
	task.task_class = SBEET__TASK_CLASS__TASK_CLASS_REALTIME;
	task.period_ns = PROTO_PERIOD_MAX_NS;
	task.deadline_ns = PROTO_PERIOD_MAX_NS;
	hello.version = PROTO_VERSION;
	hello.program = a;
	hello.task = &task;
	hello.features = features;
	hello.enforcement_mask = WHOLE;
	for (size_t i = 0; i <= PROTO_FEATURES_MAX; i++) {
		features[i] = a;
	}
	kernel.id = 1;
	kernel.enforcement_mask = WHOLE;
	request.job = 1;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = PROTO_UUID_BYTES;
	request.enforcement_mask = WHOLE;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	op.kind = SBEET__OP_KIND__OP_KIND_MEMSET;
	for (size_t i = 0; i <= PROTO_OPS_MAX; i++) {
		ops[i] = &op;
	}
	batch.job = 1;
	batch.ops = ops;
	batch.n_ops = 1;
	done.job = 1;
	began.job = 1;
	began.gpu_uuid.data = uuid;
	began.gpu_uuid.len = PROTO_UUID_BYTES;
	began.terms = terms_pack(&(struct terms){.steered = true});
	job_count.job = 1;
	for (size_t i = 0; i <= PROTO_JOBS_PER_SESSION; i++) {
		job_counts[i] = &job_count;
	}
	kernel_count.kernel = 1;
	for (size_t i = 0; i <= PROTO_COUNTS_MAX; i++) {
		kernel_counts[i] = &kernel_count;
	}
	counts.jobs = job_counts;
	counts.kernels = kernel_counts;
	counts.n_jobs = counts.n_kernels = 1;
	record_ops.job = 1;
	welcome.session = 1;
	welcome.task = name;
	memset(sms, 0, sizeof(sms));
	sms[0] = 1;
	grant.job = 1;
	grant.gpu_uuid.data = uuid;
	grant.gpu_uuid.len = PROTO_UUID_BYTES;
	grant.sms.data = sms;
	grant.sms.len = 1;
	grant.gpu_sms = 8;
	return 0;
}

/* What validation says of each message; the reason is there exactly when it is bad. */
#define VERDICT(envelope, ENVELOPE, function, field, FIELD)       \
	({                                                        \
		Sbeet__##envelope m_ = SBEET__##ENVELOPE##__INIT; \
		char why_[256] = "";                              \
		int r_;                                           \
                                                                  \
		m_.body_case = SBEET__##ENVELOPE##__BODY_##FIELD; \
		m_.field = &field;                                \
		r_ = function(&m_, why_, sizeof(why_));           \
		assert_int_equal(function(&m_, NULL, 0), r_);     \
		assert_true((r_ < 0) == (strlen(why_) > 0));      \
		r_;                                               \
	})

#define TO_DAEMON(field, FIELD) VERDICT(ToDaemon, TO_DAEMON, validate_to_daemon, field, FIELD)
#define TO_SHIM(field, FIELD)	VERDICT(ToShim, TO_SHIM, validate_to_shim, field, FIELD)

static int verdict_hello(void) {
	return TO_DAEMON(hello, HELLO);
}

static int verdict_kernel(void) {
	return TO_DAEMON(kernel, KERNEL);
}

static int verdict_request(void) {
	return TO_DAEMON(request, REQUEST);
}

static int verdict_grant(void) {
	return TO_SHIM(grant, GRANT);
}

static int verdict_ops(void) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	m.body_case = SBEET__TO_DAEMON__BODY_OPS;
	m.ops = &batch;
	return validate_to_daemon(&m, NULL, 0);
}

static int verdict_done(void) {
	return TO_DAEMON(done, DONE);
}

static int verdict_began(void) {
	return TO_DAEMON(began, BEGAN);
}

static int verdict_counts(void) {
	return TO_DAEMON(counts, COUNTS);
}

static int verdict_record_ops(void) {
	return TO_SHIM(record_ops, RECORD_OPS);
}

static int verdict_board(void) {
	return TO_SHIM(board, BOARD);
}

static int verdict_goodbye(void) {
	return TO_DAEMON(goodbye, GOODBYE);
}

static int verdict_welcome(void) {
	return TO_SHIM(welcome, WELCOME);
}

/* Sets a field, expects a verdict, restores the field. */
#define WITH(field, value, verdict, expected)          \
	do {                                           \
		__typeof__(field) before_ = (field);   \
		(field) = (value);                     \
		assert_int_equal(verdict(), expected); \
		(field) = before_;                     \
	} while (0)
#define GOOD(field, value, verdict) WITH(field, value, verdict, 0)
#define BAD(field, value, verdict)  WITH(field, value, verdict, -EBADMSG)

static void validate_knows_an_empty_envelope(void **state) {
	Sbeet__ToDaemon to_daemon = SBEET__TO_DAEMON__INIT;
	Sbeet__ToShim to_shim = SBEET__TO_SHIM__INIT;
	Sbeet__Control__Request question = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	char why[8] = "";

	assert_int_equal(validate_to_daemon(&to_daemon, why, sizeof(why)), -ENOMSG);
	assert_int_equal(strlen(why), sizeof(why) - 1); /* cut, and terminated */
	assert_int_equal(validate_to_shim(&to_shim, NULL, 0), -ENOMSG);
	assert_int_equal(validate_control_request(&question, NULL, 0), -ENOMSG);
	assert_int_equal(validate_control_reply(&reply, NULL, 0), -ENOMSG);
}

static void validate_hello_bounds_every_field(void **state) {
	assert_int_equal(verdict_hello(), 0);
	GOOD(hello.task, NULL, verdict_hello);
	GOOD(hello.version, 999, verdict_hello); /* the handler's to answer */
	GOOD(hello.n_features, PROTO_FEATURES_MAX, verdict_hello);
	BAD(hello.n_features, PROTO_FEATURES_MAX + 1, verdict_hello);
	GOOD(hello.program, letters(PROTO_NAME_MAX), verdict_hello);
	BAD(hello.program, letters(PROTO_NAME_MAX + 1), verdict_hello);
	BAD(hello.program, (char[]){"a\nb"}, verdict_hello);
	GOOD(hello.secret.len, PROTO_SECRET_BYTES, verdict_hello);
	BAD(hello.secret.len, PROTO_SECRET_BYTES - 1, verdict_hello);
	BAD(hello.secret.len, PROTO_SECRET_BYTES + 1, verdict_hello);
	BAD(hello.scope, (Sbeet__Scope)2, verdict_hello);
	BAD(hello.scope, (Sbeet__Scope)-1, verdict_hello);
	BAD(hello.enforcement_mask, 0, verdict_hello);
	BAD(hello.enforcement_mask, ~WHOLE, verdict_hello);
	GOOD(hello.enforcement_mask, UINT32_MAX, verdict_hello);
	BAD(hello.shim_version, letters(PROTO_NAME_MAX + 1), verdict_hello);
	hello.n_features = 1;
	BAD(features[0], letters(PROTO_NAME_MAX + 1), verdict_hello);
}

static void validate_task_bounds_every_field(void **state) {
	GOOD(task.name, (char[]){""}, verdict_hello);
	BAD(task.name, (char[]){"two words"}, verdict_hello);
	BAD(task.task_class, (Sbeet__TaskClass)2, verdict_hello);
	BAD(task.period_ns, PROTO_PERIOD_MAX_NS + 1, verdict_hello);
	BAD(task.period_ns, PROTO_PERIOD_MAX_NS - 1, verdict_hello); /* deadline beyond it */
	GOOD(task.period_ns, 0, verdict_hello);
	BAD(task.deadline_ns, PROTO_PERIOD_MAX_NS + 1, verdict_hello);
	BAD(task.offset_ns, UINT64_MAX, verdict_hello);
	GOOD(task.priority, PROTO_PRIORITY_MIN, verdict_hello);
	GOOD(task.priority, PROTO_PRIORITY_MAX, verdict_hello);
	BAD(task.priority, PROTO_PRIORITY_MIN - 1, verdict_hello);
	BAD(task.priority, INT32_MAX, verdict_hello);
	GOOD(task.min_sms, PROTO_SMS_MAX, verdict_hello);
	BAD(task.min_sms, PROTO_SMS_MAX + 1, verdict_hello);
	GOOD(task.max_sms, PROTO_SMS_MAX, verdict_hello);
	BAD(task.max_sms, PROTO_SMS_MAX + 1, verdict_hello);
}

static int verdict_change(void) {
	Sbeet__Control__Request m = SBEET__CONTROL__REQUEST__INIT;

	m.body_case = SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE;
	m.task_change = &change;
	return validate_control_request(&m, NULL, 0);
}

static void validate_task_change_bounds_every_field(void **state) {
	assert_int_equal(verdict_change(), 0);
	BAD(change.task, (char[]){""}, verdict_change);
	BAD(change.spec, NULL, verdict_change);
	BAD(wanted.task_class, (Sbeet__TaskClass)2, verdict_change);
	GOOD(wanted.period_ns, PROTO_PERIOD_MAX_NS, verdict_change);
	BAD(wanted.period_ns, PROTO_PERIOD_MAX_NS + 1, verdict_change);
	GOOD(wanted.deadline_ns, PROTO_PERIOD_MAX_NS, verdict_change);
	BAD(wanted.deadline_ns, PROTO_PERIOD_MAX_NS + 1, verdict_change);
	GOOD(wanted.offset_ns, PROTO_PERIOD_MAX_NS, verdict_change);
	BAD(wanted.offset_ns, PROTO_PERIOD_MAX_NS + 1, verdict_change);
	GOOD(wanted.min_sms, PROTO_SMS_MAX, verdict_change);
	BAD(wanted.min_sms, PROTO_SMS_MAX + 1, verdict_change);
	GOOD(wanted.max_sms, PROTO_SMS_MAX, verdict_change);
	BAD(wanted.max_sms, PROTO_SMS_MAX + 1, verdict_change);
	GOOD(wanted.profile, (char[]){"p"}, verdict_change);
	BAD(wanted.profile, (char[]){"a/b"}, verdict_change);
	GOOD(wanted.priority, PROTO_PRIORITY_MIN, verdict_change);
	BAD(wanted.priority, PROTO_PRIORITY_MIN - 1, verdict_change);
	GOOD(wanted.priority, PROTO_PRIORITY_MAX, verdict_change);
	BAD(wanted.priority, PROTO_PRIORITY_MAX + 1, verdict_change);
}

static void validate_kernel_bounds_every_field(void **state) {
	assert_int_equal(verdict_kernel(), 0);
	BAD(kernel.id, 0, verdict_kernel);
	GOOD(kernel.id, PROTO_KERNELS_MAX, verdict_kernel);
	BAD(kernel.id, PROTO_KERNELS_MAX + 1, verdict_kernel);
	GOOD(kernel.name, letters(PROTO_KERNEL_NAME_MAX), verdict_kernel);
	BAD(kernel.name, letters(PROTO_KERNEL_NAME_MAX + 1), verdict_kernel);
	BAD(kernel.enforcement_mask, 0, verdict_kernel);
	BAD(kernel.refusal, letters(PROTO_TEXT_MAX + 1), verdict_kernel);
}

static void validate_request_bounds_every_field(void **state) {
	assert_int_equal(verdict_request(), 0);
	BAD(request.job, 0, verdict_request);
	GOOD(request.job, UINT64_MAX, verdict_request);
	BAD(request.gpu_uuid.len, 0, verdict_request);
	BAD(request.gpu_uuid.len, PROTO_UUID_BYTES - 1, verdict_request);
	BAD(request.gpu_uuid.len, PROTO_UUID_BYTES + 1, verdict_request);
	GOOD(request.release_ns, PROTO_TIME_MAX_NS, verdict_request);
	GOOD(request.marked_ns, PROTO_TIME_MAX_NS, verdict_request);
	BAD(request.marked_ns, PROTO_TIME_MAX_NS + 1, verdict_request);
	GOOD(request.own_deadline_ns, PROTO_PERIOD_MAX_NS, verdict_request);
	BAD(request.own_deadline_ns, PROTO_PERIOD_MAX_NS + 1, verdict_request);
	BAD(request.release_ns, UINT64_MAX, verdict_request);
	BAD(request.enforcement_mask, 0, verdict_request);
	BAD(request.op, SBEET__OP_KIND__OP_KIND_NONE, verdict_request);
	BAD(request.op, (Sbeet__OpKind)8, verdict_request);
	GOOD(request.kernel, 5, verdict_request);
	request.kernel = 5;
	BAD(request.op, SBEET__OP_KIND__OP_KIND_MEMSET, verdict_request);
}

/* Each of them is another one. */
static void validate_request_bounds_its_choice(void **state) {
	uint8_t uuids[PROTO_GPUS_MAX][PROTO_UUID_BYTES] = {{0}};
	ProtobufCBinaryData others[PROTO_GPUS_MAX];

	assert_int_equal(verdict_request(), 0);
	for (size_t i = 0; i < PROTO_GPUS_MAX; i++) {
		memset(uuids[i], 0x80 + (int)i, PROTO_UUID_BYTES);
		others[i] = (ProtobufCBinaryData){.data = uuids[i], .len = sizeof(uuids[i])};
	}
	request.other_gpu_uuids = others;
	GOOD(request.n_other_gpu_uuids, PROTO_GPUS_MAX - 1, verdict_request);
	BAD(request.n_other_gpu_uuids, PROTO_GPUS_MAX, verdict_request);
	request.n_other_gpu_uuids = 2;
	BAD(others[1].len, PROTO_UUID_BYTES - 1, verdict_request);
	BAD(others[1].data, uuids[0], verdict_request);
	BAD(others[1].data, request.gpu_uuid.data, verdict_request);
	GOOD(others[1].data, uuids[2], verdict_request);
	request.other_gpu_uuids = NULL;
	request.n_other_gpu_uuids = 0;
}

static void validate_records_bound_every_field(void **state) {
	assert_int_equal(verdict_ops(), 0);
	BAD(batch.job, 0, verdict_ops);
	GOOD(batch.n_ops, 0, verdict_ops);
	GOOD(batch.n_ops, PROTO_OPS_MAX, verdict_ops);
	BAD(batch.n_ops, PROTO_OPS_MAX + 1, verdict_ops);
	BAD(op.kind, SBEET__OP_KIND__OP_KIND_NONE, verdict_ops);
	BAD(op.kind, (Sbeet__OpKind)INT32_MIN, verdict_ops);
	BAD(op.time_ns, PROTO_TIME_MAX_NS + 1, verdict_ops);
	BAD(op.enforcement, (Sbeet__Enforcement)ENFORCEMENT_N, verdict_ops);
	GOOD(op.blocks, UINT64_MAX, verdict_ops);
}

static void validate_done_and_goodbye_bound_every_field(void **state) {
	assert_int_equal(verdict_done(), 0);
	BAD(done.job, 0, verdict_done);
	BAD(done.granted_ns, UINT64_MAX, verdict_done);
	BAD(done.finished_ns, PROTO_TIME_MAX_NS + 1, verdict_done);
	GOOD(done.launched_ns, PROTO_TIME_MAX_NS, verdict_done);
	BAD(done.launched_ns, PROTO_TIME_MAX_NS + 1, verdict_done);
	GOOD(done.kernel_end_ns, PROTO_TIME_MAX_NS, verdict_done);
	BAD(done.kernel_end_ns, PROTO_TIME_MAX_NS + 1, verdict_done);
	assert_int_equal(verdict_goodbye(), 0);
	GOOD(goodbye.reason, letters(PROTO_TEXT_MAX), verdict_goodbye);
	BAD(goodbye.reason, letters(PROTO_TEXT_MAX + 1), verdict_goodbye);
}

static void validate_began_bounds_every_field(void **state) {
	assert_int_equal(verdict_began(), 0);
	GOOD(began.done, &done, verdict_began);
	BAD(began.job, 0, verdict_began);
	BAD(began.gpu_uuid.len, PROTO_UUID_BYTES - 1, verdict_began);
	BAD(began.release_ns, PROTO_TIME_MAX_NS + 1, verdict_began);
	BAD(began.began_ns, UINT64_MAX, verdict_began);
	GOOD(began.marked_ns, PROTO_TIME_MAX_NS, verdict_began);
	BAD(began.marked_ns, PROTO_TIME_MAX_NS + 1, verdict_began);
	GOOD(began.own_deadline_ns, PROTO_PERIOD_MAX_NS, verdict_began);
	BAD(began.own_deadline_ns, PROTO_PERIOD_MAX_NS + 1, verdict_began);
	BAD(began.terms, 0, verdict_began);
	BAD(began.terms, UINT64_MAX, verdict_began);
	began.done = &done;
	BAD(done.job, 2, verdict_began);
	BAD(done.finished_ns, UINT64_MAX, verdict_began);
	GOOD(done.waves, UINT64_MAX, verdict_began);
}

static void validate_counts_bound_every_field(void **state) {
	assert_int_equal(verdict_counts(), 0);
	GOOD(counts.n_jobs, PROTO_JOBS_PER_SESSION, verdict_counts);
	BAD(counts.n_jobs, PROTO_JOBS_PER_SESSION + 1, verdict_counts);
	BAD(job_count.job, 0, verdict_counts);
	GOOD(job_count.launches, UINT64_MAX, verdict_counts);
	BAD(job_count.launched_ns, PROTO_TIME_MAX_NS + 1, verdict_counts);
	GOOD(counts.n_kernels, PROTO_COUNTS_MAX, verdict_counts);
	BAD(counts.n_kernels, PROTO_COUNTS_MAX + 1, verdict_counts);
	BAD(kernel_count.kernel, 0, verdict_counts);
	GOOD(kernel_count.kernel, PROTO_KERNELS_MAX, verdict_counts);
	BAD(kernel_count.kernel, PROTO_KERNELS_MAX + 1, verdict_counts);
	GOOD(kernel_count.blocks, UINT64_MAX, verdict_counts);
}

static void validate_board_has_the_slot(void **state) {
	board.slot = PROTO_BOARD_SLOTS - 1;
	assert_int_equal(verdict_board(), 0);
	BAD(board.slot, PROTO_BOARD_SLOTS, verdict_board);
}

static void validate_record_ops_names_a_job(void **state) {
	assert_int_equal(verdict_record_ops(), 0);
	BAD(record_ops.job, 0, verdict_record_ops);
}

static void validate_grant_bounds_every_field(void **state) {
	assert_int_equal(verdict_grant(), 0);
	BAD(grant.job, 0, verdict_grant);
	BAD(grant.gpu_uuid.len, 15, verdict_grant);
	BAD(grant.gpu_sms, 0, verdict_grant);
	BAD(grant.gpu_sms, PROTO_SMS_MAX + 1, verdict_grant);
	BAD(grant.sms.len, 0, verdict_grant);
	BAD(grant.sms.len, 33, verdict_grant);
	BAD(grant.enforcement, (Sbeet__Enforcement)ENFORCEMENT_N, verdict_grant);
	grant.sms.len = 2;
	BAD(sms[1], 1, verdict_grant); /* SM 8 of 8 */
}

static void validate_welcome_bounds_every_field(void **state) {
	assert_int_equal(verdict_welcome(), 0);
	BAD(welcome.session, 0, verdict_welcome);
	BAD(welcome.task, (char[]){""}, verdict_welcome);
	GOOD(welcome.secret.len, PROTO_SECRET_BYTES, verdict_welcome);
	BAD(welcome.secret.len, PROTO_SECRET_BYTES - 1, verdict_welcome);
	BAD(welcome.linger_ns, UINT64_MAX, verdict_welcome);
	BAD(welcome.spin_ns, PROTO_SPIN_MAX_NS + 1, verdict_welcome);
	GOOD(welcome.mps_pipe_directory, (char[]){"/tmp/mps"}, verdict_welcome);
	BAD(welcome.mps_pipe_directory, (char[]){"tmp/mps"}, verdict_welcome);
	BAD(welcome.mps_log_directory, (char[]){"/a\x1b[2J"}, verdict_welcome);
}

static void validate_text_is_printable_utf8(void **state) {
	static const struct {
		char text[16];
		int expected;
	} cases[] = {
		{"", 0},
		{"plain ASCII ~", 0},
		{"\xc3\xa9", 0},	 /* e with an accent */
		{"\xe2\x82\xac", 0},	 /* euro sign */
		{"\xf0\x9f\x98\x80", 0}, /* beyond 16 bits */
		{"\xf4\x8f\xbf\xbf", 0}, /* the last code point */
		{"\x1b[2J", -EBADMSG},	 /* clears a terminal */
		{"\x7f", -EBADMSG},	 /* delete */
		{"\xc2\x9b", -EBADMSG},	 /* C1 control: CSI */
		{"a\xe2\x80\xae"
		 "b",
		 -EBADMSG},			/* turns what follows around */
		{"\x80", -EBADMSG},		/* a continuation alone */
		{"\xc3", -EBADMSG},		/* cut */
		{"\xe2\x82", -EBADMSG},		/* cut */
		{"\xc0\xaf", -EBADMSG},		/* overlong '/' */
		{"\xe0\x80\xaf", -EBADMSG},	/* overlong */
		{"\xf0\x80\x80\xaf", -EBADMSG}, /* overlong */
		{"\xed\xa0\x80", -EBADMSG},	/* surrogate */
		{"\xf4\x90\x80\x80", -EBADMSG}, /* beyond U+10FFFF */
		{"\xff", -EBADMSG},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		goodbye.reason = (char *)(uintptr_t)cases[i].text;
		assert_int_equal(verdict_goodbye(), cases[i].expected);
	}
}

static void validate_name_allows_file_names_only(void **state) {
	static const char *const good[] = {"a", "camera-1", "x.y", "A_b@c:d+e", "9"};
	static const char *const bad[] = {"",	 ".",	"..",  ".a",	  "-a",
					  "a/b", "a b", "a\n", "\xc3\xa9"};

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_int_equal(validate_name(good[i]), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(validate_name(bad[i]), -EBADMSG);
	}
	assert_int_equal(validate_name(letters(PROTO_NAME_MAX)), 0);
	assert_int_equal(validate_name(letters(PROTO_NAME_MAX + 1)), -EBADMSG);
}

static int verdict_reply(Sbeet__Control__Status *status) {
	Sbeet__Control__Reply m = SBEET__CONTROL__REPLY__INIT;

	m.body_case = SBEET__CONTROL__REPLY__BODY_STATUS;
	m.status = status;
	return validate_control_reply(&m, NULL, 0);
}

static void validate_status_bounds_what_is_shown(void **state) {
	Sbeet__Control__Gpu gpu = SBEET__CONTROL__GPU__INIT, *gpus[] = {&gpu};
	Sbeet__Control__Session session = SBEET__CONTROL__SESSION__INIT, *sessions[] = {&session};
	Sbeet__Control__Job job = SBEET__CONTROL__JOB__INIT, *jobs[] = {&job};
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;

	gpu.uuid.data = uuid;
	gpu.uuid.len = PROTO_UUID_BYTES;
	gpu.sms = 8;
	status.gpus = gpus;
	status.sessions = sessions;
	status.jobs = jobs;
	status.n_gpus = status.n_sessions = status.n_jobs = 1;
	assert_int_equal(verdict_reply(&status), 0);
	gpu.sms_busy.data = (uint8_t[]){0, 1};
	gpu.sms_busy.len = 2;
	assert_int_equal(verdict_reply(&status), -EBADMSG);
	gpu.sms_busy.len = 1;
	assert_int_equal(verdict_reply(&status), 0);
	session.task = (char[]){"\x1b]0;"};
	assert_int_equal(verdict_reply(&status), -EBADMSG);
	session.task = (char[]){"t"};
	job.enforcement = (Sbeet__Enforcement)77;
	assert_int_equal(verdict_reply(&status), -EBADMSG);
}

static int verdict_job_ops(Sbeet__Control__JobOps *job_ops) {
	Sbeet__Control__Events events = SBEET__CONTROL__EVENTS__INIT;
	Sbeet__Control__Reply m = SBEET__CONTROL__REPLY__INIT;

	events.ops = job_ops;
	m.body_case = SBEET__CONTROL__REPLY__BODY_EVENTS;
	m.events = &events;
	return validate_control_reply(&m, NULL, 0);
}

static void validate_job_ops_name_kernels_that_are_there(void **state) {
	Sbeet__Control__JobOps list = SBEET__CONTROL__JOB_OPS__INIT;
	Sbeet__Control__JobOp one = SBEET__CONTROL__JOB_OP__INIT, *all[] = {&one};
	char *names[] = {(char[]){"add"}};

	list.names = names;
	list.n_names = 1;
	list.ops = all;
	list.n_ops = 1;
	assert_int_equal(verdict_job_ops(&list), -EBADMSG); /* no operation */
	one.op = &op;
	assert_int_equal(verdict_job_ops(&list), 0);
	one.name = 1;
	assert_int_equal(verdict_job_ops(&list), 0);
	one.name = 2;
	assert_int_equal(verdict_job_ops(&list), -EBADMSG);
	one.name = 1;
	names[0] = (char[]){"\x1b[2J"};
	assert_int_equal(verdict_job_ops(&list), -EBADMSG);
	names[0] = letters(PROTO_KERNEL_NAME_MAX + 1);
	assert_int_equal(verdict_job_ops(&list), -EBADMSG);
}

static void validate_kernels_bounds_what_is_shown(void **state) {
	Sbeet__Control__Kernel one = SBEET__CONTROL__KERNEL__INIT, *all[] = {&one};
	Sbeet__Control__Kernels list = SBEET__CONTROL__KERNELS__INIT;
	Sbeet__Control__Reply m = SBEET__CONTROL__REPLY__INIT;

	list.kernels = all;
	list.n_kernels = 1;
	m.body_case = SBEET__CONTROL__REPLY__BODY_KERNELS;
	m.kernels = &list;
	assert_int_equal(validate_control_reply(&m, NULL, 0), 0);
	one.name = letters(PROTO_KERNEL_NAME_MAX + 1);
	assert_int_equal(validate_control_reply(&m, NULL, 0), -EBADMSG);
	one.name = (char[]){"add"};
	one.refusal = (char[]){"\x1b[2J"};
	assert_int_equal(validate_control_reply(&m, NULL, 0), -EBADMSG);
}

#define FILLED(test) cmocka_unit_test_setup(test, fill)

int main(void) {
	const struct CMUnitTest tests[] = {
		FILLED(validate_knows_an_empty_envelope),
		FILLED(validate_hello_bounds_every_field),
		FILLED(validate_task_bounds_every_field),
		FILLED(validate_task_change_bounds_every_field),
		FILLED(validate_kernel_bounds_every_field),
		FILLED(validate_request_bounds_every_field),
		FILLED(validate_request_bounds_its_choice),
		FILLED(validate_records_bound_every_field),
		FILLED(validate_done_and_goodbye_bound_every_field),
		FILLED(validate_began_bounds_every_field),
		FILLED(validate_counts_bound_every_field),
		FILLED(validate_board_has_the_slot),
		FILLED(validate_record_ops_names_a_job),
		FILLED(validate_job_ops_name_kernels_that_are_there),
		FILLED(validate_kernels_bounds_what_is_shown),
		FILLED(validate_grant_bounds_every_field),
		FILLED(validate_welcome_bounds_every_field),
		FILLED(validate_text_is_printable_utf8),
		FILLED(validate_name_allows_file_names_only),
		FILLED(validate_status_bounds_what_is_shown),
	};

	return cmocka_run_group_tests_name("validate", tests, NULL, NULL);
}
