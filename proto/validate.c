/*
 * validate.c: the one place that judges what another process sent. See validate.h.
 *
 * One function a message, in the order of the .proto files; each checks the fields in the order of
 * their numbers. What a newer peer may add without raising the protocol version (features, bits of
 * a mask, error codes) passes; what would make a handler misbehave does not.
 */
#include "proto/validate.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "proto/enforcement.h"
#include "proto/histogram.h"
#include "proto/limits.h"
#include "proto/smset.h"
#include "proto/task-spec.h"
#include "proto/terms.h"
#include "proto/text.h"
#include "proto/units.h"

/* Where the reason goes. Filled by the first check that fails. */
struct why {
	char *text;
	size_t size;
};

__attribute__((format(printf, 2, 3))) static int bad(struct why why, const char *format, ...) {
	va_list args;

	if (why.text && why.size > 0) {
		va_start(args, format);
		vsnprintf(why.text, why.size, format, args);
		va_end(args);
	}
	return -EBADMSG;
}

/* Printable UTF-8 of at most @max bytes, because texts end up on terminals and in JSON. */
static int check_text(struct why why, const char *field, const char *text, size_t max) {
	const char *p = text;
	size_t n = strlen(text);

	if (n > max) {
		return bad(why, "%s has %zu bytes, at most %zu are allowed", field, n, max);
	}
	while (*p) {
		size_t step = text_printable(p);

		if (step == 0) {
			return bad(why, "%s has byte 0x%02x, expected printable UTF-8", field,
				   (unsigned char)*p);
		}
		p += step;
	}
	return 0;
}

int validate_text(const char *text, size_t max) {
	return check_text((struct why){0}, "text", text, max);
}

static int check_path(struct why why, const char *field, const char *path) {
	if (*path && *path != '/') {
		return bad(why, "%s is not an absolute path", field);
	}
	return check_text(why, field, path, PROTO_PATH_MAX);
}

static int check_most(struct why why, const char *field, uint64_t value, uint64_t max) {
	if (value > max) {
		return bad(why, "%s is %llu, at most %llu is allowed", field,
			   (unsigned long long)value, (unsigned long long)max);
	}
	return 0;
}

static int check_some(struct why why, const char *field, uint64_t value) {
	return value == 0 ? bad(why, "%s is 0, expected a number from 1", field) : 0;
}

static int check_enum(struct why why, const char *field, int value,
		      const ProtobufCEnumDescriptor *type) {
	if (!protobuf_c_enum_descriptor_get_value(type, value)) {
		return bad(why, "%s is %d, which is no %s", field, value, type->short_name);
	}
	return 0;
}

/* An operation is something: NONE means that the field was left out. */
static int check_op_kind(struct why why, const char *field, int value) {
	if (value == SBEET__OP_KIND__OP_KIND_NONE) {
		return bad(why, "%s is missing", field);
	}
	return check_enum(why, field, value, &sbeet__op_kind__descriptor);
}

/* Everybody can run alone on a whole GPU, so that bit must be there; unknown bits are a newer
 * shim's and count for nothing. */
static int check_enforcement_mask(struct why why, const char *field, uint32_t mask) {
	if (!(mask & ENFORCEMENT_BIT(WHOLE))) {
		return bad(why, "%s is 0x%x, expected at least 'whole' (0x%x)", field, mask,
			   ENFORCEMENT_BIT(WHOLE));
	}
	return 0;
}

static int check_uuid(struct why why, const char *field, const ProtobufCBinaryData *uuid) {
	if (uuid->len != PROTO_UUID_BYTES) {
		return bad(why, "%s has %zu bytes, expected %d", field, uuid->len,
			   PROTO_UUID_BYTES);
	}
	return 0;
}

/* None, or one of the right length. */
static int check_secret(struct why why, const ProtobufCBinaryData *secret) {
	if (secret->len != 0 && secret->len != PROTO_SECRET_BYTES) {
		return bad(why, "secret has %zu bytes, expected %d", secret->len,
			   PROTO_SECRET_BYTES);
	}
	return 0;
}

/* A set of SMs below @n_sms. */
static int check_sms(struct why why, const char *field, const ProtobufCBinaryData *bytes,
		     unsigned n_sms) {
	struct smset set, all = smset_range(0, n_sms);

	if (smset_from_bytes(bytes->data, bytes->len, &set) < 0) {
		return bad(why, "%s has %zu bytes, at most %zu are allowed", field, bytes->len,
			   sizeof(set));
	}
	if (!smset_within(&set, &all)) {
		return bad(why, "%s names SMs beyond the GPU's %u", field, n_sms);
	}
	return 0;
}

static int check_features(struct why why, char **features, size_t n) {
	int r = check_most(why, "number of features", n, PROTO_FEATURES_MAX);

	for (size_t i = 0; i < n && r == 0; i++) {
		r = check_text(why, "feature", features[i], PROTO_NAME_MAX);
	}
	return r;
}

int validate_name(const char *name) {
	static const char allowed[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
		"0123456789._@:+-";
	size_t n = strspn(name, allowed);

	if (n == 0 || n > PROTO_NAME_MAX || name[n] || *name == '.' || *name == '-') {
		return -EBADMSG;
	}
	return 0;
}

/* Checks run in turn until one fails. */
#define TRY(check)                    \
	do {                          \
		int try_r = (check);  \
		if (try_r < 0) {      \
			return try_r; \
		}                     \
	} while (0)

static int check_number(struct why why, const char *field, int64_t n, int64_t least, int64_t most) {
	if (n < least || n > most) {
		return bad(why, "%s is %lld, expected %lld to %lld", field, (long long)n,
			   (long long)least, (long long)most);
	}
	return 0;
}

static int check_name(struct why why, const char *field, const char *name) {
	if (*name && validate_name(name) < 0) {
		return bad(why, "%s is not 1 to %d of [A-Za-z0-9._@:+-]", field, PROTO_NAME_MAX);
	}
	return 0;
}

/* One field of @t by its row of the table. */
static int check_task_field(struct why why, const Sbeet__TaskSpec *t, enum task_field field) {
	const struct task_field_row *row = &task_fields[field];
	const void *value = task_field_on_wire(field, t);

	if (!value) {
		return 0;
	}
	switch (row->kind) {
	case TASK_KIND_NAME:
		return check_name(why, row->wire, *(char *const *)value);
	case TASK_KIND_CLASS:
		return check_enum(why, row->wire, *(const int *)value,
				  &sbeet__task_class__descriptor);
	case TASK_KIND_TIME:
		return check_most(why, row->wire, *(const uint64_t *)value, PROTO_PERIOD_MAX_NS);
	case TASK_KIND_COUNT:
		return check_most(why, row->wire, *(const uint32_t *)value, (uint64_t)row->most);
	case TASK_KIND_INT:
		return check_number(why, row->wire, *(const int32_t *)value, row->least, row->most);
	case TASK_KIND_FLAG:
		return check_most(why, row->wire, *(const uint32_t *)value, 1);
	case TASK_KIND_INDEX: /* of what there is, the handler knows */
		return check_most(why, row->wire, *(const uint32_t *)value, INT32_MAX);
	default:
		return 0;
	}
}

static int check_task_fields(struct why why, const Sbeet__TaskSpec *t) {
	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		TRY(check_task_field(why, t, field));
	}
	return 0;
}

static int check_task(struct why why, const Sbeet__TaskSpec *t) {
	TRY(check_task_fields(why, t));
	if (t->period_ns && t->deadline_ns > t->period_ns) {
		char deadline[32], period[32];

		units_print_nsec(t->deadline_ns, deadline, sizeof(deadline));
		units_print_nsec(t->period_ns, period, sizeof(period));
		return bad(why, "the deadline of %s is longer than the period of %s", deadline,
			   period);
	}
	return 0;
}

static int check_held(struct why why, const Sbeet__Held *m) {
	TRY(check_some(why, "held job", m->job));
	TRY(check_uuid(why, "gpu_uuid", &m->gpu_uuid));
	TRY(check_sms(why, "sms", &m->sms, PROTO_SMS_MAX));
	if (m->sms.len == 0) {
		return bad(why, "sms is empty, expected at least one SM");
	}
	TRY(check_enum(why, "enforcement", (int)m->enforcement, &sbeet__enforcement__descriptor));
	TRY(check_most(why, "deadline_ns", m->deadline_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "release_ns", m->release_ns, PROTO_TIME_MAX_NS));
	TRY(check_enforcement_mask(why, "enforcement_mask", m->enforcement_mask));
	return check_most(why, "granted_ns", m->granted_ns, PROTO_TIME_MAX_NS);
}

static int check_done(struct why why, const Sbeet__JobDone *m) {
	TRY(check_some(why, "job", m->job));
	TRY(check_most(why, "granted_ns", m->granted_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "finished_ns", m->finished_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "launched_ns", m->launched_ns, PROTO_TIME_MAX_NS));
	return check_most(why, "kernel_end_ns", m->kernel_end_ns, PROTO_TIME_MAX_NS);
}

static int check_hello(struct why why, const Sbeet__Hello *m) {
	TRY(check_features(why, m->features, m->n_features));
	TRY(check_text(why, "program", m->program, PROTO_NAME_MAX));
	if (m->task) {
		TRY(check_task(why, m->task));
	}
	TRY(check_enum(why, "scope", (int)m->scope, &sbeet__scope__descriptor));
	TRY(check_enforcement_mask(why, "enforcement_mask", m->enforcement_mask));
	TRY(check_text(why, "shim_version", m->shim_version, PROTO_NAME_MAX));
	TRY(check_text(why, "executable", m->executable, PROTO_PATH_MAX - 1));
	TRY(check_secret(why, &m->secret));
	TRY(check_name(why, "run", m->run));
	TRY(check_path(why, "mps_pipe_directory", m->mps_pipe_directory));
	TRY(check_most(why, "number of held jobs", m->n_held, PROTO_JOBS_PER_SESSION));
	for (size_t i = 0; i < m->n_held; i++) {
		TRY(check_held(why, m->held[i]));
	}
	TRY(check_most(why, "number of ended jobs", m->n_ended, PROTO_JOBS_PER_SESSION));
	for (size_t i = 0; i < m->n_ended; i++) {
		TRY(check_done(why, m->ended[i]));
	}
	return 0;
}

static int check_kernel(struct why why, const Sbeet__KernelDef *m) {
	TRY(check_some(why, "kernel id", m->id));
	TRY(check_most(why, "kernel id", m->id, PROTO_KERNELS_MAX));
	TRY(check_text(why, "kernel name", m->name, PROTO_KERNEL_NAME_MAX));
	TRY(check_enforcement_mask(why, "enforcement_mask", m->enforcement_mask));
	return check_text(why, "refusal", m->refusal, PROTO_TEXT_MAX);
}

/* The GPUs of a request are different ones. */
static int check_others(struct why why, const Sbeet__Request *m) {
	TRY(check_most(why, "number of other_gpu_uuids", m->n_other_gpu_uuids, PROTO_GPUS_MAX - 1));
	for (size_t i = 0; i < m->n_other_gpu_uuids; i++) {
		const uint8_t *uuid = m->other_gpu_uuids[i].data;
		bool twice;

		TRY(check_uuid(why, "other_gpu_uuids", &m->other_gpu_uuids[i]));
		twice = memcmp(uuid, m->gpu_uuid.data, PROTO_UUID_BYTES) == 0;
		for (size_t k = 0; k < i; k++) {
			twice |= memcmp(uuid, m->other_gpu_uuids[k].data, PROTO_UUID_BYTES) == 0;
		}
		if (twice) {
			return bad(why, "other_gpu_uuids names a GPU twice");
		}
	}
	return 0;
}

static int check_request(struct why why, const Sbeet__Request *m) {
	TRY(check_some(why, "job", m->job));
	TRY(check_uuid(why, "gpu_uuid", &m->gpu_uuid));
	TRY(check_most(why, "release_ns", m->release_ns, PROTO_TIME_MAX_NS));
	TRY(check_enforcement_mask(why, "enforcement_mask", m->enforcement_mask));
	TRY(check_op_kind(why, "op", (int)m->op));
	TRY(check_most(why, "sm_step", m->sm_step, PROTO_SMS_MAX));
	TRY(check_most(why, "marked_ns", m->marked_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "own_deadline_ns", m->own_deadline_ns, PROTO_PERIOD_MAX_NS));
	if (m->kernel && m->op != SBEET__OP_KIND__OP_KIND_LAUNCH) {
		return bad(why, "kernel is %u in a request that is no launch", m->kernel);
	}
	return check_others(why, m);
}

static int check_op(struct why why, const Sbeet__Op *op) {
	TRY(check_op_kind(why, "kind of an operation", (int)op->kind));
	TRY(check_most(why, "time_ns", op->time_ns, PROTO_TIME_MAX_NS));
	return check_enum(why, "enforcement of an operation", (int)op->enforcement,
			  &sbeet__enforcement__descriptor);
}

static int check_ops(struct why why, const Sbeet__OpBatch *m) {
	TRY(check_some(why, "job", m->job));
	TRY(check_most(why, "number of operations", m->n_ops, PROTO_OPS_MAX));
	TRY(check_most(why, "dropped", m->dropped, PROTO_DROPPED_MAX));
	for (size_t i = 0; i < m->n_ops; i++) {
		TRY(check_op(why, m->ops[i]));
	}
	return 0;
}

static int check_began(struct why why, const Sbeet__Began *m) {
	TRY(check_some(why, "job", m->job));
	TRY(check_uuid(why, "gpu_uuid", &m->gpu_uuid));
	TRY(check_most(why, "release_ns", m->release_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "began_ns", m->began_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "marked_ns", m->marked_ns, PROTO_TIME_MAX_NS));
	TRY(check_most(why, "own_deadline_ns", m->own_deadline_ns, PROTO_PERIOD_MAX_NS));
	TRY(check_most(why, "dropped", m->dropped, PROTO_DROPPED_MAX));
	if (!terms_unpack(m->terms).steered) {
		return bad(why, "terms are 0x%llx, which no page says",
			   (unsigned long long)m->terms);
	}
	if (m->done && m->done->job != m->job) {
		return bad(why, "done names job %llu, expected %llu",
			   (unsigned long long)m->done->job, (unsigned long long)m->job);
	}
	return m->done ? check_done(why, m->done) : 0;
}

static int check_group(struct why why, const Sbeet__ChannelGroup *m) {
	TRY(check_uuid(why, "gpu_uuid", &m->gpu_uuid));
	TRY(check_some(why, "client", m->client));
	return check_some(why, "object", m->object);
}

static int check_counts(struct why why, const Sbeet__Counts *m) {
	TRY(check_most(why, "number of counted jobs", m->n_jobs, PROTO_JOBS_PER_SESSION));
	for (size_t i = 0; i < m->n_jobs; i++) {
		TRY(check_some(why, "counted job", m->jobs[i]->job));
		TRY(check_most(why, "launched_ns", m->jobs[i]->launched_ns, PROTO_TIME_MAX_NS));
	}
	TRY(check_most(why, "number of counted kernels", m->n_kernels, PROTO_COUNTS_MAX));
	for (size_t i = 0; i < m->n_kernels; i++) {
		TRY(check_some(why, "counted kernel", m->kernels[i]->kernel));
		TRY(check_most(why, "counted kernel", m->kernels[i]->kernel, PROTO_KERNELS_MAX));
	}
	return 0;
}

static int check_goodbye(struct why why, const Sbeet__Goodbye *m) {
	return check_text(why, "reason", m->reason, PROTO_TEXT_MAX);
}

int validate_to_daemon(const Sbeet__ToDaemon *m, char *text, size_t size) {
	struct why why = {text, size};

	switch (m->body_case) {
	case SBEET__TO_DAEMON__BODY_HELLO:
		return check_hello(why, m->hello);
	case SBEET__TO_DAEMON__BODY_KERNEL:
		return check_kernel(why, m->kernel);
	case SBEET__TO_DAEMON__BODY_REQUEST:
		return check_request(why, m->request);
	case SBEET__TO_DAEMON__BODY_OPS:
		return check_ops(why, m->ops);
	case SBEET__TO_DAEMON__BODY_DONE:
		return check_done(why, m->done);
	case SBEET__TO_DAEMON__BODY_BEGAN:
		return check_began(why, m->began);
	case SBEET__TO_DAEMON__BODY_GROUP:
		return check_group(why, m->group);
	case SBEET__TO_DAEMON__BODY_GOODBYE:
		return check_goodbye(why, m->goodbye);
	case SBEET__TO_DAEMON__BODY_COUNTS:
		return check_counts(why, m->counts);
	case SBEET__TO_DAEMON__BODY_STOPPED:
		return check_some(why, "job", m->stopped->job);
	case SBEET__TO_DAEMON__BODY_PONG:
	case SBEET__TO_DAEMON__BODY_PING:
		return 0;
	default:
		bad(why, "message type is not known");
		return -ENOMSG;
	}
}

static int check_rows(struct why why, const Sbeet__GreenRows *m) {
	TRY(check_uuid(why, "rows.gpu_uuid", &m->gpu_uuid));
	TRY(check_some(why, "rows.group", m->group));
	TRY(check_most(why, "rows.group", m->group, PROTO_SMS_MAX));
	TRY(check_some(why, "rows.last_group", m->last_group));
	return check_most(why, "rows.last_group", m->last_group, PROTO_SMS_MAX);
}

static int check_welcome(struct why why, const Sbeet__Welcome *m) {
	TRY(check_features(why, m->features, m->n_features));
	TRY(check_some(why, "session", m->session));
	if (validate_name(m->task) < 0) {
		return bad(why, "task name is not 1 to %d of [A-Za-z0-9._@:+-]", PROTO_NAME_MAX);
	}
	TRY(check_most(why, "linger_ns", m->linger_ns, PROTO_PERIOD_MAX_NS));
	TRY(check_most(why, "spin_ns", m->spin_ns, PROTO_SPIN_MAX_NS));
	TRY(check_path(why, "mps_pipe_directory", m->mps_pipe_directory));
	TRY(check_path(why, "mps_log_directory", m->mps_log_directory));
	TRY(check_text(why, "notice", m->notice, PROTO_TEXT_MAX));
	for (size_t i = 0; i < m->n_rows; i++) {
		TRY(check_rows(why, m->rows[i]));
	}
	TRY(check_secret(why, &m->secret));
	return m->gpu_uuid.len ? check_uuid(why, "gpu_uuid", &m->gpu_uuid) : 0;
}

static int check_grant(struct why why, const Sbeet__Grant *m) {
	TRY(check_some(why, "job", m->job));
	TRY(check_uuid(why, "gpu_uuid", &m->gpu_uuid));
	TRY(check_some(why, "gpu_sms", m->gpu_sms));
	TRY(check_most(why, "gpu_sms", m->gpu_sms, PROTO_SMS_MAX));
	TRY(check_sms(why, "sms", &m->sms, m->gpu_sms));
	if (m->sms.len == 0) {
		return bad(why, "sms is empty, expected at least one SM");
	}
	TRY(check_enum(why, "enforcement", (int)m->enforcement, &sbeet__enforcement__descriptor));
	TRY(check_most(why, "level", m->level, PROTO_TERMS_LEVEL_MAX));
	return check_most(why, "deadline_ns", m->deadline_ns, PROTO_TIME_MAX_NS);
}

static int check_error(struct why why, const Sbeet__Error *m) {
	return check_text(why, "text", m->text, PROTO_TEXT_MAX);
}

int validate_to_shim(const Sbeet__ToShim *m, char *text, size_t size) {
	struct why why = {text, size};

	switch (m->body_case) {
	case SBEET__TO_SHIM__BODY_WELCOME:
		return check_welcome(why, m->welcome);
	case SBEET__TO_SHIM__BODY_GRANT:
		return check_grant(why, m->grant);
	case SBEET__TO_SHIM__BODY_REVOKE:
		TRY(check_some(why, "job", m->revoke->job));
		return check_text(why, "reason", m->revoke->reason, PROTO_TEXT_MAX);
	case SBEET__TO_SHIM__BODY_ERROR:
		return check_error(why, m->error);
	case SBEET__TO_SHIM__BODY_GOODBYE:
		return check_goodbye(why, m->goodbye);
	case SBEET__TO_SHIM__BODY_RECORD_OPS:
		return check_some(why, "job", m->record_ops->job);
	case SBEET__TO_SHIM__BODY_BOARD:
		return m->board->slot < PROTO_BOARD_SLOTS
			       ? 0
			       : bad(why, "slot is not below %d", PROTO_BOARD_SLOTS);
	case SBEET__TO_SHIM__BODY_PING:
	case SBEET__TO_SHIM__BODY_PONG:
	case SBEET__TO_SHIM__BODY_WANT_GROUPS:
		return 0;
	default:
		bad(why, "message type is not known");
		return -ENOMSG;
	}
}

static int check_task_change(struct why why, const Sbeet__Control__TaskChange *m) {
	if (validate_name(m->task) < 0) {
		return bad(why, "task name is not 1 to %d of [A-Za-z0-9._@:+-]", PROTO_NAME_MAX);
	}
	return m->spec ? check_task_fields(why, m->spec) : bad(why, "spec is missing");
}

static int check_policy_request(struct why why, const Sbeet__Control__PolicyRequest *m) {
	TRY(check_text(why, "name of a policy", m->name, PROTO_NAME_MAX));
	if (m->n_params > 0 && !*m->name) {
		return bad(why, "name of the policy is missing for its parameters");
	}
	for (size_t i = 0; i < m->n_params; i++) {
		TRY(check_text(why, "name of a parameter", m->params[i]->name, PROTO_NAME_MAX));
		TRY(check_text(why, "value of a parameter", m->params[i]->value, PROTO_NAME_MAX));
	}
	return 0;
}

/* A cgroup that not every process is in, spelt as /proc does. */
static int check_cgroup(struct why why, const char *path) {
	bool bad_path = *path != '/';

	for (const char *at = path; *at == '/'; at += strcspn(at, "/")) {
		size_t n = strcspn(++at, "/");

		bad_path |= n == 0 || strncmp(at, "..", n) == 0;
	}
	if (bad_path) {
		return bad(why, "cgroup is not the path of one below the root, such as /a/b");
	}
	return check_path(why, "cgroup", path);
}

static int check_allocation_change(struct why why, const Sbeet__Control__AllocationChange *m) {
	if (validate_name(m->name) < 0) {
		return bad(why, "name is not 1 to %d of [A-Za-z0-9._@:+-]", PROTO_NAME_MAX);
	}
	TRY(check_most(why, "sms", m->sms, PROTO_SMS_MAX));
	return m->remove ? 0 : check_cgroup(why, m->cgroup);
}

int validate_control_request(const Sbeet__Control__Request *m, char *text, size_t size) {
	struct why why = {text, size};

	switch (m->body_case) {
	case SBEET__CONTROL__REQUEST__BODY_HELLO:
		return check_features(why, m->hello->features, m->hello->n_features);
	case SBEET__CONTROL__REQUEST__BODY_STATUS:
	case SBEET__CONTROL__REQUEST__BODY_CONFIG:
	case SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN:
		return 0;
	case SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE:
		return check_task_change(why, m->task_change);
	case SBEET__CONTROL__REQUEST__BODY_ALLOCATION_CHANGE:
		return check_allocation_change(why, m->allocation_change);
	case SBEET__CONTROL__REQUEST__BODY_SESSION_KILL:
		TRY(check_some(why, "session", m->session_kill->session));
		return check_most(why, "drain_ns", m->session_kill->drain_ns, PROTO_PERIOD_MAX_NS);
	case SBEET__CONTROL__REQUEST__BODY_EVENTS:
	case SBEET__CONTROL__REQUEST__BODY_KERNELS:
		return 0;
	case SBEET__CONTROL__REQUEST__BODY_HISTORY:
		TRY(check_name(why, "task", m->history->task));
		return check_name(why, "run", m->history->run);
	case SBEET__CONTROL__REQUEST__BODY_POLICY:
		return check_policy_request(why, m->policy);
	case SBEET__CONTROL__REQUEST__BODY_EXPLAIN:
		return 0;
	default:
		bad(why, "message type is not known");
		return -ENOMSG;
	}
}

static int check_gpu(struct why why, const Sbeet__Control__Gpu *m) {
	TRY(check_uuid(why, "uuid of a GPU", &m->uuid));
	TRY(check_text(why, "name of a GPU", m->name, PROTO_TEXT_MAX));
	TRY(check_text(why, "PCI address of a GPU", m->pci, PROTO_TEXT_MAX));
	TRY(check_most(why, "sms of a GPU", m->sms, PROTO_SMS_MAX));
	TRY(check_text(why, "sharing", m->sharing, PROTO_NAME_MAX));
	return check_sms(why, "sms_busy", &m->sms_busy, m->sms);
}

static int check_session(struct why why, const Sbeet__Control__Session *m) {
	TRY(check_text(why, "program", m->program, PROTO_NAME_MAX));
	TRY(check_text(why, "task", m->task, PROTO_NAME_MAX));
	TRY(check_enum(why, "task_class", (int)m->task_class, &sbeet__task_class__descriptor));
	TRY(check_text(why, "state of a session", m->state, PROTO_NAME_MAX));
	TRY(check_text(why, "allocation", m->allocation, PROTO_NAME_MAX));
	TRY(check_text(why, "mps", m->mps, PROTO_NAME_MAX));
	for (size_t i = 0; i < m->n_terms; i++) {
		TRY(check_text(why, "reason of terms", m->terms[i]->reason, PROTO_TEXT_MAX));
	}
	return check_enum(why, "scope", (int)m->scope, &sbeet__scope__descriptor);
}

static int check_job(struct why why, const Sbeet__Control__Job *m) {
	TRY(check_text(why, "task of a job", m->task, PROTO_NAME_MAX));
	TRY(check_text(why, "state of a job", m->state, PROTO_NAME_MAX));
	TRY(check_sms(why, "sms of a job", &m->sms, PROTO_SMS_MAX));
	return check_enum(why, "enforcement of a job", (int)m->enforcement,
			  &sbeet__enforcement__descriptor);
}

static int check_mps(struct why why, const Sbeet__Control__Mps *m) {
	TRY(check_text(why, "state of MPS", m->state, PROTO_NAME_MAX));
	TRY(check_path(why, "pipe_directory", m->pipe_directory));
	TRY(check_path(why, "log_directory", m->log_directory));
	return check_text(why, "note", m->note, PROTO_TEXT_MAX);
}

static int check_allocation(struct why why, const Sbeet__Control__Allocation *m) {
	TRY(check_text(why, "name of an allocation", m->name, PROTO_NAME_MAX));
	TRY(check_path(why, "cgroup of an allocation", m->cgroup));
	for (size_t i = 0; i < m->n_parts; i++) {
		TRY(check_sms(why, "sms of an allocation", &m->parts[i]->sms, PROTO_SMS_MAX));
	}
	return 0;
}

static int check_status(struct why why, const Sbeet__Control__Status *m) {
	if (m->mps) {
		TRY(check_mps(why, m->mps));
	}
	if (m->service) {
		TRY(check_text(why, "version", m->service->version, PROTO_NAME_MAX));
		TRY(check_text(why, "policy", m->service->policy, PROTO_NAME_MAX));
	}
	for (size_t i = 0; i < m->n_gpus; i++) {
		TRY(check_gpu(why, m->gpus[i]));
	}
	for (size_t i = 0; i < m->n_sessions; i++) {
		TRY(check_session(why, m->sessions[i]));
	}
	for (size_t i = 0; i < m->n_jobs; i++) {
		TRY(check_job(why, m->jobs[i]));
	}
	for (size_t i = 0; i < m->n_allocations; i++) {
		TRY(check_allocation(why, m->allocations[i]));
	}
	return 0;
}

static int check_explanation(struct why why, const Sbeet__Control__Explanation *m) {
	for (size_t i = 0; i < m->n_decisions; i++) {
		const Sbeet__Control__Decision *d = m->decisions[i];

		TRY(check_text(why, "task of a decision", d->task, PROTO_NAME_MAX));
		TRY(check_text(why, "policy of a decision", d->policy, PROTO_NAME_MAX));
		TRY(check_sms(why, "sms of a decision", &d->sms, PROTO_SMS_MAX));
		TRY(check_text(why, "reason", d->reason, PROTO_NAME_MAX));
		TRY(check_text(why, "text of a reason", d->text, PROTO_TEXT_MAX));
	}
	return 0;
}

static int check_event(struct why why, const Sbeet__Control__Event *m) {
	TRY(check_text(why, "task of an event", m->task, PROTO_NAME_MAX));
	TRY(check_sms(why, "sms of an event", &m->sms, PROTO_SMS_MAX));
	TRY(check_enum(why, "enforcement of an event", (int)m->enforcement,
		       &sbeet__enforcement__descriptor));
	TRY(check_enum(why, "task_class", (int)m->task_class, &sbeet__task_class__descriptor));
	TRY(check_most(why, "sms of a GPU", m->gpu_sms, PROTO_SMS_MAX));
	TRY(check_text(why, "sharing", m->sharing, PROTO_NAME_MAX));
	return check_text(why, "text of an event", m->text, PROTO_TEXT_MAX);
}

static int check_job_ops(struct why why, const Sbeet__Control__JobOps *m) {
	for (size_t i = 0; i < m->n_names; i++) {
		TRY(check_text(why, "name of a kernel", m->names[i], PROTO_KERNEL_NAME_MAX));
	}
	for (size_t i = 0; i < m->n_ops; i++) {
		if (!m->ops[i]->op) {
			return bad(why, "an operation is missing");
		}
		TRY(check_op(why, m->ops[i]->op));
		TRY(check_most(why, "name of an operation", m->ops[i]->name, m->n_names));
	}
	return 0;
}

/* Kinds that a newer daemon may have are left to the reader. */
static int check_events(struct why why, const Sbeet__Control__Events *m) {
	if (m->start) {
		TRY(check_text(why, "version", m->start->version, PROTO_NAME_MAX));
		TRY(check_text(why, "policy", m->start->policy, PROTO_NAME_MAX));
	}
	for (size_t i = 0; i < m->n_events; i++) {
		TRY(check_event(why, m->events[i]));
	}
	return m->ops ? check_job_ops(why, m->ops) : 0;
}

static int check_kernels(struct why why, const Sbeet__Control__Kernels *m) {
	for (size_t i = 0; i < m->n_kernels; i++) {
		TRY(check_text(why, "name of a kernel", m->kernels[i]->name,
			       PROTO_KERNEL_NAME_MAX));
		TRY(check_text(why, "refusal", m->kernels[i]->refusal, PROTO_TEXT_MAX));
	}
	return 0;
}

static int check_history(struct why why, const Sbeet__Control__History *m) {
	for (size_t i = 0; i < m->n_runs; i++) {
		const Sbeet__Control__Run *run = m->runs[i];

		TRY(check_text(why, "task of a run", run->task, PROTO_NAME_MAX));
		TRY(check_text(why, "program of a run", run->program, PROTO_NAME_MAX));
		TRY(check_text(why, "end of a run", run->ended, PROTO_NAME_MAX));
		TRY(check_enum(why, "task_class", (int)run->task_class,
			       &sbeet__task_class__descriptor));
		for (size_t k = 0; k < run->n_responses; k++) {
			TRY(check_most(why, "index of a bucket", run->responses[k]->index,
				       HISTOGRAM_BUCKETS - 1));
		}
	}
	return 0;
}

static int check_config(struct why why, const Sbeet__Control__Config *m) {
	for (size_t i = 0; i < m->n_values; i++) {
		const Sbeet__Control__ConfigValue *v = m->values[i];

		TRY(check_text(why, "section", v->section, PROTO_TEXT_MAX));
		TRY(check_text(why, "key", v->key, PROTO_NAME_MAX));
		TRY(check_text(why, "value", v->value, PROTO_TEXT_MAX));
		TRY(check_text(why, "source", v->source, PROTO_NAME_MAX));
		TRY(check_text(why, "file", v->file, 2 * PROTO_PATH_MAX));
	}
	return check_text(why, "directory", m->directory, PROTO_PATH_MAX);
}

int validate_control_reply(const Sbeet__Control__Reply *m, char *text, size_t size) {
	struct why why = {text, size};

	switch (m->body_case) {
	case SBEET__CONTROL__REPLY__BODY_HELLO:
		return check_features(why, m->hello->features, m->hello->n_features);
	case SBEET__CONTROL__REPLY__BODY_STATUS:
		return check_status(why, m->status);
	case SBEET__CONTROL__REPLY__BODY_POLICY:
		return check_text(why, "name of a policy", m->policy->name, PROTO_NAME_MAX);
	case SBEET__CONTROL__REPLY__BODY_EXPLANATION:
		return check_explanation(why, m->explanation);
	case SBEET__CONTROL__REPLY__BODY_DONE:
		return check_text(why, "note", m->done->note, PROTO_TEXT_MAX);
	case SBEET__CONTROL__REPLY__BODY_CONFIG:
		return check_config(why, m->config);
	case SBEET__CONTROL__REPLY__BODY_EVENTS:
		return check_events(why, m->events);
	case SBEET__CONTROL__REPLY__BODY_KERNELS:
		return check_kernels(why, m->kernels);
	case SBEET__CONTROL__REPLY__BODY_HISTORY:
		return check_history(why, m->history);
	case SBEET__CONTROL__REPLY__BODY_ALLOCATION:
		return check_allocation(why, m->allocation);
	case SBEET__CONTROL__REPLY__BODY_ERROR:
		return check_error(why, m->error);
	default:
		bad(why, "message type is not known");
		return -ENOMSG;
	}
}
