/*
 * event.c: see event.h.
 */
#include "client/live/event.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/base/terminal.h"
#include "proto/enforcement.h"
#include "proto/terms.h"

#define WIRE(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

static const struct {
	const char *name;
	int wire;
} kinds[_EVENT_KIND_N] = {
	[EVENT_START] = {"start", -1},
	[EVENT_LOST] = {"lost", -1},
	[EVENT_GPU] = {"gpu", WIRE(GPU)},
	[EVENT_SESSION_START] = {"session-start", WIRE(SESSION_START)},
	[EVENT_SESSION_END] = {"session-end", WIRE(SESSION_END)},
	[EVENT_JOB_REQUEST] = {"job-request", WIRE(JOB_REQUEST)},
	[EVENT_JOB_GRANT] = {"job-grant", WIRE(JOB_GRANT)},
	[EVENT_JOB_DONE] = {"job-done", WIRE(JOB_DONE)},
	[EVENT_JOB_ABANDON] = {"job-abandon", WIRE(JOB_ABANDON)},
	[EVENT_JOB_MISS] = {"job-miss", WIRE(JOB_MISS)},
	[EVENT_JOB_OVERRUN] = {"job-overrun", WIRE(JOB_OVERRUN)},
	[EVENT_POLICY] = {"policy", WIRE(POLICY)},
	[EVENT_CONFIG] = {"config", WIRE(CONFIG)},
	[EVENT_GPU_DRAIN] = {"gpu-drain", WIRE(GPU_DRAIN)},
	[EVENT_GPU_RESUME] = {"gpu-resume", WIRE(GPU_RESUME)},
	[EVENT_SESSION_KILL] = {"session-kill", WIRE(SESSION_KILL)},
	[EVENT_JOB_REVOKE] = {"job-revoke", WIRE(JOB_REVOKE)},
	[EVENT_JOB_RESUME] = {"job-resume", WIRE(JOB_RESUME)},
	[EVENT_JOB_LATE] = {"job-late", WIRE(JOB_LATE)},
	[EVENT_JOB_STOP] = {"job-stop", WIRE(JOB_STOP)},
	[EVENT_OP] = {"op", -1},
	[EVENT_OPS_LOST] = {"ops-lost", -1},
};

#define IN(kind)    (1u << EVENT_##kind)
#define IN_ALL	    ((1u << _EVENT_KIND_N) - 1)
#define IN_SESSIONS (IN(SESSION_START) | IN(SESSION_END) | IN(SESSION_KILL))
#define IN_DRAINS   (IN(GPU_DRAIN) | IN(GPU_RESUME))
#define IN_ENDS	    (IN(JOB_DONE) | IN(JOB_MISS) | IN(JOB_OVERRUN))
#define IN_GRANTED                                                                          \
	(IN(JOB_GRANT) | IN(JOB_ABANDON) | IN(JOB_REVOKE) | IN(JOB_RESUME) | IN(JOB_LATE) | \
	 IN(JOB_STOP) | IN_ENDS)
#define IN_JOBS (IN(JOB_REQUEST) | IN_GRANTED)

enum field_type {
	FIELD_NUMBER, /* uint64_t up to `most`, 0: left out */
	FIELD_INDEX,  /* likewise, but 0 means 0 */
	FIELD_SIGNED, /* int64_t */
	FIELD_FLAG,   /* bool, false: left out */
	FIELD_TEXT,   /* char[PROTO_NAME_MAX + 1], empty: left out */
	FIELD_SMS,    /* struct smset, empty: left out */
	FIELD_HELD,   /* Sbeet__Enforcement, left out without SMs */
	FIELD_HOW,    /* Sbeet__Enforcement */
	FIELD_CLASS,  /* Sbeet__TaskClass */
	FIELD_OP,     /* Sbeet__OpKind */
	FIELD_KERNEL, /* char[EVENT_KERNEL_MAX + 1], empty: left out */
};

struct field {
	const char *key;
	enum field_type type;
	size_t offset;
	unsigned kinds; /* in which it means something */
	uint64_t most;
};

#define FIELD(member) offsetof(struct event, member)

static const struct field fields[] = {
	{"sbeet_trace", FIELD_NUMBER, FIELD(format), IN(START), INT64_MAX},
	{"time_ns", FIELD_INDEX, FIELD(time), IN_ALL, PROTO_TIME_MAX_NS},
	{"before", FIELD_FLAG, FIELD(before), IN_ALL, 0},
	{"wall_offset_ns", FIELD_SIGNED, FIELD(wall_offset), IN(START), INT64_MAX},
	{"version", FIELD_TEXT, FIELD(version), IN(START), 0},
	{"policy", FIELD_TEXT, FIELD(name), IN(START) | IN(POLICY), 0},
	{"lost", FIELD_NUMBER, FIELD(lost), IN(LOST) | IN(OPS_LOST), INT64_MAX},
	{"session", FIELD_NUMBER, FIELD(session), IN_SESSIONS | IN_JOBS | IN(OP), INT64_MAX},
	{"job", FIELD_NUMBER, FIELD(job), IN_JOBS | IN(OP), INT64_MAX},
	{"task", FIELD_TEXT, FIELD(task), IN_SESSIONS | IN_JOBS, 0},
	{"class", FIELD_CLASS, FIELD(task_class), IN_SESSIONS, 0},
	{"program", FIELD_TEXT, FIELD(name), IN_SESSIONS, 0},
	{"pid", FIELD_NUMBER, FIELD(pid), IN_SESSIONS | IN_JOBS, UINT32_MAX},
	{"uid", FIELD_INDEX, FIELD(uid), IN_SESSIONS, UINT32_MAX},
	{"tid", FIELD_NUMBER, FIELD(tid), IN_JOBS, UINT32_MAX},
	{"gpu", FIELD_INDEX, FIELD(gpu), IN(GPU) | IN_DRAINS | IN_JOBS, EVENT_GPUS_MAX - 1},
	{"name", FIELD_TEXT, FIELD(name), IN(GPU), 0},
	{"n_sms", FIELD_NUMBER, FIELD(gpu_sms), IN(GPU), PROTO_SMS_MAX},
	{"sharing", FIELD_TEXT, FIELD(sharing), IN(GPU), 0},
	{"power_mw", FIELD_NUMBER, FIELD(power_mw), IN(GPU), INT64_MAX},
	{"energy_mj", FIELD_NUMBER, FIELD(energy_mj), IN(GPU), INT64_MAX},
	{"slot", FIELD_INDEX, FIELD(slot), IN_GRANTED, UINT32_MAX},
	{"sms", FIELD_SMS, FIELD(sms), IN_GRANTED, 0},
	{"enforcement", FIELD_HELD, FIELD(enforcement), IN_GRANTED, 0},
	{"steered", FIELD_FLAG, FIELD(steered), IN_GRANTED, 0},
	{"level", FIELD_NUMBER, FIELD(level), IN_GRANTED, PROTO_TERMS_LEVEL_MAX},
	{"period_ns", FIELD_NUMBER, FIELD(period), IN_SESSIONS, PROTO_TIME_MAX_NS},
	{"release_ns", FIELD_NUMBER, FIELD(release), IN_JOBS, PROTO_TIME_MAX_NS},
	{"requested_ns", FIELD_NUMBER, FIELD(requested), IN_JOBS, PROTO_TIME_MAX_NS},
	{"deadline_ns", FIELD_NUMBER, FIELD(deadline), IN_SESSIONS | IN_JOBS, PROTO_TIME_MAX_NS},
	{"granted_ns", FIELD_NUMBER, FIELD(granted), IN_GRANTED, PROTO_TIME_MAX_NS},
	{"predicted_finish_ns", FIELD_NUMBER, FIELD(predicted_finish), IN_GRANTED,
	 PROTO_TIME_MAX_NS},
	{"finished_ns", FIELD_NUMBER, FIELD(finished), IN_ENDS, PROTO_TIME_MAX_NS},
	{"launched_ns", FIELD_NUMBER, FIELD(launched), IN(JOB_DONE), PROTO_TIME_MAX_NS},
	{"kernel_end_ns", FIELD_NUMBER, FIELD(kernel_end), IN(JOB_DONE), PROTO_TIME_MAX_NS},
	{"launches", FIELD_NUMBER, FIELD(launches), IN_ENDS, INT64_MAX},
	{"op", FIELD_OP, FIELD(op), IN(OP), 0},
	{"kernel", FIELD_KERNEL, FIELD(kernel), IN(OP), 0},
	{"blocks", FIELD_NUMBER, FIELD(blocks), IN(OP), INT64_MAX},
	{"block_threads", FIELD_NUMBER, FIELD(block_threads), IN(OP), UINT32_MAX},
	{"bytes", FIELD_NUMBER, FIELD(bytes), IN(OP), INT64_MAX},
	{"stream", FIELD_NUMBER, FIELD(stream), IN(OP), INT64_MAX},
	{"held", FIELD_HOW, FIELD(enforcement), IN(OP), 0},
};

#define ENFORCEMENT_NAME(value, name, traits, argument) \
	[SBEET__ENFORCEMENT__ENFORCEMENT_##value] = (name),

static const char *const enforcements[] = {ENFORCEMENTS(ENFORCEMENT_NAME, )};
static const char *const classes[] = {"best-effort", "realtime"};
static const char *const ops[] = {"none",      "launch", "copy-htod", "copy-dtoh",
				  "copy-dtod", "memset", "graph",     "copy"};

#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

const char *event_kind_name(enum event_kind kind) {
	return kinds[kind].name;
}

bool event_is_job(enum event_kind kind) {
	return IN_JOBS & 1u << kind;
}

nsec_t event_requested(const struct event *e) {
	return e->requested > e->release ? e->requested : e->release;
}

/* Whether the SMs of a job's set are the very ones that its kernels run on. */
static bool is_exact(const struct event *e) {
	return enforcement_has(e->enforcement, ENFORCEMENT_EXACT);
}

const char *event_op_name(Sbeet__OpKind kind) {
	return (size_t)kind < N_OF(ops) ? ops[kind] : "none";
}

static void copy_kernel(char to[EVENT_KERNEL_MAX + 1], const char *from) {
	size_t n = strnlen(from, EVENT_KERNEL_MAX);

	memcpy(to, from, n);
	to[n] = '\0';
	terminal_clean(to);
}

static void copy_text(char to[PROTO_NAME_MAX + 1], const char *from) {
	size_t n = strnlen(from, PROTO_NAME_MAX);

	memcpy(to, from, n);
	to[n] = '\0';
	terminal_clean(to);
}

int event_from_wire(const Sbeet__Control__Event *m, struct event *ret) {
	struct event e = {
		.time = m->time_ns,
		.before = m->before,
		.session = m->session,
		.job = m->job,
		.pid = m->pid,
		.uid = m->uid,
		.tid = m->tid,
		.task_class = m->task_class,
		.period = m->period_ns,
		.gpu = m->gpu,
		.slot = m->slot,
		.enforcement = m->enforcement,
		.steered = terms_unpack(m->terms).steered,
		.level = terms_unpack(m->terms).level,
		.release = m->release_ns,
		.requested = m->requested_ns,
		.granted = m->granted_ns,
		.finished = m->finished_ns,
		.launched = m->launched_ns,
		.kernel_end = m->kernel_end_ns,
		.predicted_finish = m->predicted_finish_ns,
		.deadline = m->deadline_ns,
		.launches = m->launches,
		.gpu_sms = m->gpu_sms,
		.power_mw = m->power_mw,
		.energy_mj = m->energy_mj,
	};

	while (e.kind < _EVENT_KIND_N && kinds[e.kind].wire != (int)m->kind) {
		e.kind++;
	}
	if (e.kind == _EVENT_KIND_N) {
		return -ENOMSG;
	}
	if (m->gpu >= EVENT_GPUS_MAX) {
		return -EBADMSG;
	}
	smset_from_bytes(m->sms.data, m->sms.len, &e.sms); /* validate.c has seen the length */
	copy_text(e.task, m->task);
	copy_text(e.sharing, m->sharing);
	copy_text(e.name, m->text);
	*ret = e;
	return 0;
}

int event_from_start(const Sbeet__Control__EventsStart *m, struct event *ret) {
	*ret = (struct event){
		.kind = EVENT_START,
		.format = EVENT_FORMAT,
		.time = m->now_ns,
		.wall_offset = m->wall_offset_ns,
	};
	copy_text(ret->version, m->version);
	copy_text(ret->name, m->policy);
	return 0;
}

int event_from_op(const Sbeet__Control__JobOps *m, size_t index, struct event *ret) {
	const Sbeet__Control__JobOp *op = m->ops[index];

	*ret = (struct event){
		.kind = EVENT_OP,
		.time = op->op->time_ns,
		.session = op->session,
		.job = op->job,
		.op = op->op->kind,
		.blocks = op->op->blocks,
		.block_threads = op->op->block_threads,
		.bytes = op->op->bytes,
		.stream = op->op->stream,
		.enforcement = op->op->enforcement,
	};
	if (op->name) { /* validate.c has seen that it is there */
		copy_kernel(ret->kernel, m->names[op->name - 1]);
	}
	return 0;
}

static json_t *sms_json(const struct smset *set) {
	char text[SMSET_TEXT_MAX];

	if (smset_empty(set)) {
		return NULL;
	}
	smset_print(set, text, sizeof(text));
	return json_string(text);
}

/* NULL: nothing to be said. */
static json_t *field_json(const struct field *f, const struct event *e) {
	const void *at = (const char *)e + f->offset;
	uint64_t number;

	switch (f->type) {
	case FIELD_NUMBER:
	case FIELD_INDEX:
		number = *(const uint64_t *)at;
		return number || f->type == FIELD_INDEX ? json_u64(number) : NULL;
	case FIELD_SIGNED:
		return json_integer(*(const int64_t *)at);
	case FIELD_FLAG:
		return *(const bool *)at ? json_true() : NULL;
	case FIELD_TEXT:
		return *(const char *)at ? json_text(at) : NULL;
	case FIELD_SMS:
		return sms_json(at);
	case FIELD_HELD:
		return smset_empty(&e->sms) ? NULL : json_string(enforcements[e->enforcement]);
	case FIELD_HOW:
		return json_string(enforcements[e->enforcement]);
	case FIELD_CLASS:
		return json_string(classes[e->task_class]);
	case FIELD_OP:
		return json_string(event_op_name(e->op));
	case FIELD_KERNEL:
		return *e->kernel ? json_text(e->kernel) : NULL;
	}
	return NULL;
}

json_t *event_json(const struct event *e) {
	json_t *o = json_pack("{s:s}", "event", kinds[e->kind].name);

	for (size_t i = 0; o && i < N_OF(fields); i++) {
		json_t *value = fields[i].kinds & 1u << e->kind ? field_json(&fields[i], e) : NULL;

		if (value && json_object_set_new(o, fields[i].key, value) < 0) {
			json_decref(o);
			return NULL;
		}
	}
	return o;
}

static int bad(char *why, size_t size, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int bad(char *why, size_t size, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(why, size, format, args);
	va_end(args);
	return -EBADMSG;
}

/* The index of @text among @n names. */
static int find_name(const char *text, const char *const *names, size_t n, unsigned *ret) {
	for (size_t i = 0; text && i < n; i++) {
		if (strcmp(text, names[i]) == 0) {
			*ret = (unsigned)i;
			return 0;
		}
	}
	return -EBADMSG;
}

static int read_number(const struct field *f, const json_t *value, void *at) {
	json_int_t n = json_integer_value(value);

	if (!json_is_integer(value)) {
		return -EBADMSG;
	}
	if (f->type == FIELD_SIGNED) {
		*(int64_t *)at = n;
		return 0;
	}
	if (n < 0 || (uint64_t)n > f->most) {
		return -ERANGE;
	}
	*(uint64_t *)at = (uint64_t)n;
	return 0;
}

static int read_text(const json_t *value, char at[PROTO_NAME_MAX + 1]) {
	const char *text = json_string_value(value);

	if (!text || json_string_length(value) != strlen(text)) {
		return -EBADMSG;
	}
	if (strlen(text) > PROTO_NAME_MAX) {
		return -ERANGE;
	}
	copy_text(at, text);
	return 0;
}

static int read_field(const struct field *f, const json_t *value, struct event *e) {
	void *at = (char *)e + f->offset;
	const char *text = json_string_value(value);
	unsigned index;

	switch (f->type) {
	case FIELD_NUMBER:
	case FIELD_INDEX:
	case FIELD_SIGNED:
		return read_number(f, value, at);
	case FIELD_FLAG:
		*(bool *)at = json_is_true(value);
		return json_is_boolean(value) ? 0 : -EBADMSG;
	case FIELD_TEXT:
		return read_text(value, at);
	case FIELD_SMS:
		return text && *text && smset_parse(text, at) == 0 ? 0 : -EBADMSG;
	case FIELD_HELD:
	case FIELD_HOW:
		if (find_name(text, enforcements, N_OF(enforcements), &index) < 0) {
			return -EBADMSG;
		}
		*(Sbeet__Enforcement *)at = index;
		return 0;
	case FIELD_CLASS:
		if (find_name(text, classes, N_OF(classes), &index) < 0) {
			return -EBADMSG;
		}
		*(Sbeet__TaskClass *)at = index;
		return 0;
	case FIELD_OP:
		if (find_name(text, ops, N_OF(ops), &index) < 0 || index == 0) {
			return -EBADMSG;
		}
		*(Sbeet__OpKind *)at = index;
		return 0;
	case FIELD_KERNEL:
		if (!text || json_string_length(value) != strlen(text)) {
			return -EBADMSG;
		}
		if (strlen(text) > EVENT_KERNEL_MAX) {
			return -ERANGE;
		}
		copy_kernel(at, text);
		return 0;
	}
	return -EBADMSG;
}

/* What no single key shows. */
static int check(const struct event *e, char *why, size_t size) {
	if (e->kind == EVENT_START && e->format != EVENT_FORMAT) {
		return bad(why, size,
			   "\"sbeet_trace\" is %llu, this sbeetctl reads format %d: use the one "
			   "that came with the sbeetctl that recorded it",
			   (unsigned long long)e->format, EVENT_FORMAT);
	}
	if ((IN_JOBS | IN(OP)) & 1u << e->kind && (e->session == 0 || e->job == 0)) {
		return bad(why, size, "\"session\" and \"job\" are missing");
	}
	if (e->kind == EVENT_OP && e->op == SBEET__OP_KIND__OP_KIND_NONE) {
		return bad(why, size, "\"op\" is missing");
	}
	if (e->granted && e->finished && e->finished < e->granted) {
		return bad(why, size, "\"finished_ns\" is before \"granted_ns\"");
	}
	return 0;
}

int event_from_json(const json_t *object, struct event *ret, char *why, size_t size) {
	const char *name = json_string_value(json_object_get(object, "event"));
	struct event e = {0};

	if (!name) {
		return bad(why, size, "not an object with a string \"event\"");
	}
	while (e.kind < _EVENT_KIND_N && strcmp(kinds[e.kind].name, name) != 0) {
		e.kind++;
	}
	if (e.kind == _EVENT_KIND_N) {
		return -ENOMSG;
	}
	for (size_t i = 0; i < N_OF(fields); i++) {
		const json_t *value = json_object_get(object, fields[i].key);
		int r;

		if (!value || !(fields[i].kinds & 1u << e.kind)) {
			continue;
		}
		r = read_field(&fields[i], value, &e);
		if (r < 0) {
			return bad(why, size, "\"%s\" %s", fields[i].key,
				   r == -ERANGE ? "is out of range" : "is of the wrong form");
		}
	}
	if (check(&e, why, size) < 0) {
		return -EBADMSG;
	}
	*ret = e;
	return 0;
}

static double ms(nsec_t from, nsec_t to) {
	return (double)(int64_t)(to - from) / NSEC_PER_MSEC;
}

static void describe_gpu(const struct event *e, char *text, size_t size) {
	int n = snprintf(text, size, "GPU %llu: %s, %llu SMs, %s", (unsigned long long)e->gpu,
			 e->name, (unsigned long long)e->gpu_sms, e->sharing);

	if (e->power_mw && n > 0 && (size_t)n < size) {
		snprintf(text + n, size - (size_t)n, ", %.1f W", (double)e->power_mw / 1000);
	}
}

/* ", started 4.2 ms late", or nothing. */
struct late_start {
	char text[48];
};

static struct late_start late_start(const struct event *e) {
	struct late_start late = {""};

	if (event_requested(e) > e->release) {
		snprintf(late.text, sizeof(late.text), ", started %.1f ms late",
			 ms(e->release, e->requested));
	}
	return late;
}

static void describe_grant(const struct event *e, char *text, size_t size) {
	char sms[SMSET_TEXT_MAX];

	if (is_exact(e)) {
		smset_print(&e->sms, sms, sizeof(sms));
	} else {
		snprintf(sms, sizeof(sms), "any %u", smset_count(&e->sms));
	}
	if (e->steered) {
		snprintf(text, size, "GPU %llu, SMs %.40s (%s), level %llu%s, not asked for",
			 (unsigned long long)e->gpu, sms, enforcements[e->enforcement],
			 (unsigned long long)e->level, late_start(e).text);
		return;
	}
	snprintf(text, size, "GPU %llu, SMs %.40s (%s)%s, waited %.1f ms",
		 (unsigned long long)e->gpu, sms, enforcements[e->enforcement], late_start(e).text,
		 ms(event_requested(e), e->granted));
}

static void describe_done(const struct event *e, char *text, size_t size) {
	int n = snprintf(text, size, "GPU %llu, ran %.1f ms, response %.1f ms, %llu launches",
			 (unsigned long long)e->gpu, ms(e->granted, e->finished),
			 ms(e->release, e->finished), (unsigned long long)e->launches);

	if (e->deadline && n > 0 && (size_t)n < size) {
		snprintf(text + n, size - (size_t)n, ", %.1f ms %s",
			 ms(e->finished, e->deadline) < 0 ? ms(e->deadline, e->finished)
							  : ms(e->finished, e->deadline),
			 e->finished > e->deadline ? "late" : "to spare");
	}
}

void event_describe(const struct event *e, char *text, size_t size) {
	*text = '\0';
	switch (e->kind) {
	case EVENT_START:
		snprintf(text, size, "sbeetd %s, policy %s", e->version, e->name);
		break;
	case EVENT_LOST:
		snprintf(text, size, "%llu events were lost: this reader was too slow",
			 (unsigned long long)e->lost);
		break;
	case EVENT_GPU:
		describe_gpu(e, text, size);
		break;
	case EVENT_SESSION_START:
	case EVENT_SESSION_END:
	case EVENT_SESSION_KILL:
		snprintf(text, size, "%s, pid %llu, %s", e->name, (unsigned long long)e->pid,
			 classes[e->task_class]);
		break;
	case EVENT_GPU_DRAIN:
	case EVENT_GPU_RESUME:
		snprintf(text, size, "GPU %llu", (unsigned long long)e->gpu);
		break;
	case EVENT_JOB_REQUEST:
		snprintf(text, size, "GPU %llu%s", (unsigned long long)e->gpu, late_start(e).text);
		break;
	case EVENT_JOB_GRANT:
	case EVENT_JOB_REVOKE:
	case EVENT_JOB_RESUME:
	case EVENT_JOB_STOP:
		describe_grant(e, text, size);
		break;
	case EVENT_JOB_ABANDON:
		snprintf(text, size, "GPU %llu, %s", (unsigned long long)e->gpu,
			 e->granted ? "it ran" : "it waited");
		break;
	case EVENT_JOB_DONE:
		describe_done(e, text, size);
		break;
	case EVENT_JOB_MISS:
		snprintf(text, size, "%.1f ms late", ms(e->deadline, e->finished));
		break;
	case EVENT_JOB_OVERRUN:
		snprintf(text, size, "GPU %llu, %s longer than predicted",
			 (unsigned long long)e->gpu, e->finished ? "it ran" : "it runs");
		break;
	case EVENT_JOB_LATE:
		snprintf(text, size, "GPU %llu, deadline passed, it %s", (unsigned long long)e->gpu,
			 e->granted ? "still runs" : "still waits");
		break;
	case EVENT_POLICY:
		snprintf(text, size, "%s", e->name);
		break;
	case EVENT_OP:
		snprintf(text, size, "%s %.200s", event_op_name(e->op), e->kernel);
		break;
	case EVENT_OPS_LOST:
		snprintf(text, size, "%llu operations were lost: this reader was too slow",
			 (unsigned long long)e->lost);
		break;
	default:
		break;
	}
}
