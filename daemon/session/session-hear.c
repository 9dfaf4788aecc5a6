/*
 * session-hear.c: see session-hear.h.
 */
#include "daemon/session/session-hear.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/engine/engine.h"
#include "daemon/gpu/inventory.h"
#include "daemon/preempt/preempter.h"
#include "daemon/session/allocations.h"
#include "daemon/session/resume.h"
#include "daemon/session/session-job.h"
#include "daemon/session/session-mps.h"
#include "daemon/session/session-say.h"
#include "daemon/session/session-task.h"
#include "daemon/session/session.h"
#include "proto/enforcement.h"
#include "proto/packet.h"
#include "proto/validate.h"

static bool has_feature(const Sbeet__Hello *hello, const char *name) {
	return packet_has_feature(hello->features, hello->n_features, name);
}

/* A process keeps the secret that it shows; one that it made up harms nobody else. Return: 0 or
 * negative errno. */
static int take_secret(struct session *s, const Sbeet__Hello *hello) {
	if (hello->secret.len > 0) {
		memcpy(s->identity.secret, hello->secret.data, sizeof(s->identity.secret));
	}
	return identity_has_secret(&s->identity) || !has_feature(hello, PROTO_FEATURE_SECRET)
		       ? 0
		       : identity_make_secret(&s->identity);
}

/* Makes its page. Return: the file, for the program; -1 if it reads no terms, or there is no room
 * for a page: then it asks for its jobs. */
static int open_terms(struct session *s, const Sbeet__Hello *hello) {
	int fd = -1, r;

	if (has_feature(hello, PROTO_FEATURE_TERMS)) {
		r = session_terms_open(&s->terms, s->all->inventory, &fd);
		if (r < 0) {
			log_client(quota_log(s->user), LOG_LEVEL_WARNING,
				   "session %llu (pid %d, '%s') has no page of terms, so it asks "
				   "for each job: %s",
				   (unsigned long long)s->id, s->cred.pid, s->task.name,
				   strerror(-r));
		}
	}
	return fd;
}

static void handle_hello(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Hello *hello = packet->hello;
	_cleanup_close_ int page_fd = -1;
	const struct inventory_gpu *gpu;
	int r;

	if (hello->version != PROTO_VERSION) {
		session_fail(
			s, SBEET__ERROR_CODE__ERROR_CODE_VERSION,
			"the program's libsbeet.so %s speaks protocol %u, sbeetd %s speaks %d: "
			"install the same version of both",
			hello->shim_version, hello->version, SBEET_VERSION, PROTO_VERSION);
		return;
	}
	r = session_watch_process(s);
	if (r < 0) {
		session_say_exhausted(s->fd, r); /* if it can still hear it */
		session_hang_up(s);
		return;
	}
	if (take_secret(s, hello) < 0) {
		log_client(quota_log(s->user), LOG_LEVEL_WARNING,
			   "session %llu (pid %d) has no secret: the kernel gives no random "
			   "numbers",
			   (unsigned long long)s->id, s->cred.pid);
	}
	snprintf(s->program, sizeof(s->program), "%s", hello->program);
	snprintf(s->run, sizeof(s->run), "%s", hello->run);
	session_task_admit(s, hello);
	s->scope = hello->scope;
	s->enforcement_mask = hello->enforcement_mask;
	session_set_state(s, SESSION_ACTIVE);
	session_mps_hello(s, hello);
	session_tell(s, SESSION_EVENT_START, NULL);
	session_task_declare(s);
	gpu = session_task_choose_gpu(s, hello);
	s->answers_pings = has_feature(hello, PROTO_FEATURE_PING);
	s->counts = has_feature(hello, PROTO_FEATURE_COUNTS);
	s->stops = has_feature(hello, PROTO_FEATURE_STOP);
	s->levels = has_feature(hello, PROTO_FEATURE_LEVEL);
	s->has_thread = has_feature(hello, PROTO_FEATURE_THREAD);
	log_debug("session %llu: pid %d, uid %u, program '%s', task '%s'",
		  (unsigned long long)s->id, s->cred.pid, s->cred.uid, s->program, s->task.name);
	page_fd = open_terms(s, hello);
	s->takes_board = s->terms.page && has_feature(hello, PROTO_FEATURE_COPIES);
	s->owner.offers = s->takes_board && has_feature(hello, PROTO_FEATURE_PREEMPT);
	session_tell(s, SESSION_EVENT_WELCOME, NULL);
	session_say_welcome(s, gpu, page_fd);
	quota_work(s->user, 0, hello->n_held + hello->n_ended, s->all->now());
	if (s->fd >= 0) {
		resume_session(s, hello);
	}
}

static void handle_kernel(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__KernelDef *kernel = packet->kernel;
	int r = kernels_declare(&s->kernels, kernel, s->enforcement_mask);

	if (r == KERNELS_E_DUPLICATE) {
		session_say_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE,
				  "kernel %u is declared already", kernel->id);
	} else if (r) {
		session_say_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				  "kernel %u is not recorded: no memory left for this user",
				  kernel->id);
	}
}

/* Whether a job may run there. Else its program was told why not. */
static bool admit_gpu(struct session *s, uint64_t number, const ProtobufCBinaryData *uuid,
		      size_t *ret_gpu) {
	int gpu = inventory_find(s->all->inventory, uuid->data);

	if (gpu < 0) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU,
				  "job %llu is for a GPU that sbeetd does not manage",
				  (unsigned long long)number);
	} else if (s->task.gpu >= 0 && s->task.gpu != gpu) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
				  "job %llu is for GPU %d, but task '%s' may use GPU %d alone",
				  (unsigned long long)number, gpu, s->task.name, s->task.gpu);
	} else if (!allocations_may_use(s->all->allocations, s->allocation, (size_t)gpu)) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
				  "job %llu is for GPU %d, which allocation '%s' does not have",
				  (unsigned long long)number, gpu,
				  allocations_get(s->all->allocations, s->allocation)->name);
	} else {
		*ret_gpu = (size_t)gpu;
		return true;
	}
	return false;
}

/* Whether a job may be added: then it is charged to its user. Else its program was told why not. */
static bool admit_job(struct session *s, uint64_t number, const ProtobufCBinaryData *uuid,
		      size_t *ret_gpu) {
	if (!admit_gpu(s, number, uuid, ret_gpu)) {
		return false;
	}
	if (session_job_find(s, number)) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE,
				  "job %llu exists already", (unsigned long long)number);
	} else if (s->n_jobs == PROTO_JOBS_PER_SESSION) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				  "this program has %d jobs already, and no more are allowed",
				  PROTO_JOBS_PER_SESSION);
	} else if (quota_charge(s->user, QUOTA_JOBS, 1)) {
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				  "user %u has %llu jobs already, and no more are allowed",
				  s->cred.uid,
				  (unsigned long long)quota_charged(s->user, QUOTA_JOBS));
	} else {
		return true;
	}
	return false;
}

/* The other GPUs that a job could run on, as a mask. Return: false if it may not run on one of
 * them: then its program was told so. */
static bool admit_others(struct session *s, const Sbeet__Request *request, uint32_t *ret_gpus) {
	size_t gpu;

	*ret_gpus = 0;
	for (size_t i = 0; i < request->n_other_gpu_uuids; i++) {
		if (!admit_gpu(s, request->job, &request->other_gpu_uuids[i], &gpu)) {
			return false;
		}
		*ret_gpus |= BIT(gpu);
	}
	return true;
}

/* @job: NULL if there was no memory for it, or no room. */
static void check_opened(struct session *s, uint64_t number, const struct job *job) {
	if (!job) {
		quota_release(s->user, QUOTA_JOBS, 1);
		session_say_error(s, number, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				  "sbeetd has no room for more jobs");
	}
}

/* It asks where it could run by time slices. */
static void note_unpreempted(struct session *s, size_t gpu) {
	if (s->terms.now[gpu].sliced && !s->owner.told && !s->owner.left_out) {
		s->owner.told = true;
		log_client(
			quota_log(s->user), LOG_LEVEL_INFO,
			"session %llu (pid %d, '%s') can't be preempted: its library %s; it asks "
			"for its jobs",
			(unsigned long long)s->id, s->cred.pid, s->task.name,
			s->owner.offers ? "sees no channel groups of its driver, or several GPUs"
					: "is older than preemption");
	}
}

/* In the process that preempts, if that wants its channel groups. */
static void need_place(struct session *s) {
	if (owner_is_wanted(&s->owner, s->all->preempter) && !s->owner.placed) {
		session_tell(s, SESSION_EVENT_PLACE, NULL);
	}
}

static void handle_request(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Request *request = packet->request;
	struct job *stopped = session_job_find(s, request->job);
	uint32_t others;
	size_t gpu;

	if (stopped && stopped->state == JOB_STOPPED &&
	    memcmp(stopped->record.uuid, request->gpu_uuid.data, PROTO_UUID_BYTES) == 0) {
		session_job_continue(s, stopped, request);
	} else if (admit_others(s, request, &others) &&
		   admit_job(s, request->job, &request->gpu_uuid, &gpu)) {
		/* Its first job may come before its channel groups, and others are to be stopped
		 * for it. */
		if (sched_get_policy(engine_sched(s->all->engine))->stops) {
			need_place(s);
		}
		note_unpreempted(s, gpu);
		check_opened(s, request->job, session_job_open(s, request, gpu, others));
	}
}

static void end_if_drained(struct session *s) {
	if (s->state == SESSION_DRAINING && s->n_jobs == 0) {
		session_end(s);
	}
}

static void handle_began(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Began *began = packet->began;
	const struct terms terms = terms_unpack(began->terms);
	struct smset sms;
	struct job *job;
	size_t gpu;

	if (!s->terms.page) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "job %llu is said to run under terms, but this program has none",
			     (unsigned long long)began->job);
		return;
	}
	if (began->dropped > 0) {
		s->counters.unreported += began->dropped;
		s->all->unreported += began->dropped;
		task_lost_sight(&s->releases);
		session_tell(s, SESSION_EVENT_UNREPORTED, NULL);
	}
	if (!admit_job(s, began->job, &began->gpu_uuid, &gpu)) {
		return;
	}
	if (terms_sms(&terms, inventory_gpu(s->all->inventory, gpu)->n_sms, &sms) < 0) {
		quota_release(s->user, QUOTA_JOBS, 1);
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "job %llu is said to run on SMs that GPU %zu does not have",
			     (unsigned long long)began->job, gpu);
		return;
	}
	job = session_job_begin(s, began, gpu, &sms);
	check_opened(s, began->job, job);
	if (job && began->done) {
		session_job_done(s, job, began->done);
		end_if_drained(s);
	}
}

/* What a program that counts nothing itself has done. */
static void count_op(struct job *job, const Sbeet__Op *op) {
	job->launches += op->kind == SBEET__OP_KIND__OP_KIND_LAUNCH;
	if (op->kind == SBEET__OP_KIND__OP_KIND_LAUNCH ||
	    op->kind == SBEET__OP_KIND__OP_KIND_GRAPH) {
		job->unconfined |= op->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
		if (!job->launched || op->time_ns < job->launched) {
			job->launched = op->time_ns;
		}
	}
}

/* Records may outlive their job by a moment, so those of an unknown one are no error. */
static void handle_ops(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__OpBatch *batch = packet->ops;
	struct job *job = session_job_find(s, batch->job);

	if (s->record_ops) {
		s->all->tell_ops(s->all->userdata, s, batch);
	}
	for (size_t i = 0; job && !s->counts && i < batch->n_ops; i++) {
		count_op(job, batch->ops[i]);
	}
}

/* Likewise. */
static void handle_counts(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Counts *counts = packet->counts;

	s->counts = true; /* also if its Hello was another daemon's, which did not keep that */
	for (size_t i = 0; i < counts->n_jobs; i++) {
		struct job *job = session_job_find(s, counts->jobs[i]->job);

		if (job) {
			job->launches = counts->jobs[i]->launches;
			job->launched = counts->jobs[i]->launched_ns;
			job->unconfined |= counts->jobs[i]->unconfined;
		}
	}
	for (size_t i = 0; i < counts->n_kernels; i++) {
		kernels_count(&s->kernels, counts->kernels[i]);
	}
}

static void handle_done(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__JobDone *done = packet->done;
	struct job *job = session_job_find(s, done->job);

	if (!job && done->cancelled) {
		return; /* its Request was refused meanwhile */
	}
	if (!job && s->n_disowned > 0) {
		s->n_disowned--;
		return;
	}
	if (!job && s->terms.page) {
		return; /* it ran under terms, and its Began was refused */
	}
	if (!job || (job->state == JOB_WAITING && !job->aside && !done->cancelled)) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "job %llu is said to be done, but it does not run",
			     (unsigned long long)done->job);
		return;
	}
	session_job_done(s, job, done);
	end_if_drained(s);
}

static void handle_stopped(struct session *s, const Sbeet__ToDaemon *packet) {
	struct job *job = session_job_find(s, packet->stopped->job);

	if (!job && s->n_disowned > 0) {
		return; /* its end will be told, too */
	}
	if (!job || job->terms != 0 || job->sched_id == SCHED_JOB_NONE ||
	    job->state == JOB_WAITING) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "job %llu is said to be stopped, but it does not run",
			     (unsigned long long)packet->stopped->job);
		return;
	}
	session_job_stopped(s, job);
}

/* What waits is dropped; what runs may still report its end. */
static void handle_goodbye(struct session *s, const Sbeet__ToDaemon *packet) {
	log_debug("session %llu says goodbye: %s", (unsigned long long)s->id,
		  packet->goodbye->reason);
	s->said_goodbye = true;
	session_job_drop_waiting(s);
	if (s->state == SESSION_ACTIVE && s->n_jobs > 0) {
		session_set_state(s, SESSION_DRAINING);
	} else {
		session_end(s);
	}
}

static void add_group(struct session *s, const Sbeet__ChannelGroup *group) {
	int gpu = inventory_find(s->all->inventory, group->gpu_uuid.data);

	if (gpu >= 0) {
		need_place(s);
	}
	if (s->owner.placed && gpu >= 0 &&
	    owner_add_group(&s->owner, s->all->preempter, (size_t)gpu, group->client, group->object,
			    s->passed_fd) == OWNER_E_FULL) {
		log_client(quota_log(s->user), LOG_LEVEL_INFO,
			   "session %llu (pid %d, '%s') has more than %d contexts: the others are "
			   "not preempted",
			   (unsigned long long)s->id, s->cred.pid, s->task.name, PROTO_GROUPS_MAX);
	}
}

/* With the last one its place goes to others. */
static void remove_group(struct session *s, const Sbeet__ChannelGroup *group) {
	owner_remove_group(&s->owner, s->all->preempter, group->client, group->object);
	if (s->owner.placed && s->owner.n_groups == 0) {
		owner_take_back(&s->owner, s->all->preempter, s->user);
		session_tell(s, SESSION_EVENT_TERMS, NULL);
	}
}

static void handle_group(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__ChannelGroup *group = packet->group;

	if (!s->owner.offers) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "a channel group is told of, which nobody has asked for");
	} else if (s->passed_fd >= 0 && !preempter_is_control(s->passed_fd)) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     "a channel group comes with what is no descriptor of the driver's "
			     "control device");
	} else if (!owner_is_wanted(&s->owner, s->all->preempter)) {
		return; /* it is not wanted any more, or will be asked for again */
	} else if (group->gone) {
		remove_group(s, group);
	} else if (s->passed_fd >= 0) { /* else its process has died since */
		add_group(s, group);
	}
}

static void handle_pong(struct session *s, const Sbeet__ToDaemon *packet) {
	if (packet->pong->number == s->pinged) {
		s->pinged = 0;
	}
}

static void handle_ping(struct session *s, const Sbeet__ToDaemon *packet) {
	session_say_pong(s, packet->ping->number);
}

static const struct {
	const char *name;
	unsigned allowed; /* mask of session states */
	void (*handle)(struct session *s, const Sbeet__ToDaemon *packet);
} handlers[] = {
	[SBEET__TO_DAEMON__BODY_HELLO] = {"hello", BIT(SESSION_NEW), handle_hello},
	[SBEET__TO_DAEMON__BODY_KERNEL] = {"kernel", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					   handle_kernel},
	[SBEET__TO_DAEMON__BODY_REQUEST] = {"request", BIT(SESSION_ACTIVE), handle_request},
	[SBEET__TO_DAEMON__BODY_OPS] = {"records", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					handle_ops},
	[SBEET__TO_DAEMON__BODY_COUNTS] = {"counts", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					   handle_counts},
	[SBEET__TO_DAEMON__BODY_DONE] = {"done", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					 handle_done},
	[SBEET__TO_DAEMON__BODY_STOPPED] = {"stopped", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					    handle_stopped},
	[SBEET__TO_DAEMON__BODY_GOODBYE] = {"goodbye", BIT(SESSION_NEW) | BIT(SESSION_ACTIVE),
					    handle_goodbye},
	[SBEET__TO_DAEMON__BODY_BEGAN] = {"began", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					  handle_began},
	[SBEET__TO_DAEMON__BODY_GROUP] = {"group", BIT(SESSION_ACTIVE), handle_group},
	[SBEET__TO_DAEMON__BODY_PONG] = {"pong", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					 handle_pong},
	[SBEET__TO_DAEMON__BODY_PING] = {"ping", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					 handle_ping},
};

#define N_HANDLERS (sizeof(handlers) / sizeof(handlers[0]))

void session_hear(struct session *s, const Sbeet__ToDaemon *m) {
	char why[256];
	int r = validate_to_daemon(m, why, sizeof(why));

	if (r == -ENOMSG ||
	    (r == 0 && (m->body_case >= N_HANDLERS || !handlers[m->body_case].handle))) {
		session_say_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN,
				  "sbeetd %s does not know this message", SBEET_VERSION);
	} else if (r < 0) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "%s", why);
	} else if (!(handlers[m->body_case].allowed & BIT(s->state))) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "'%s' can't be said when the session is %s",
			     handlers[m->body_case].name, session_state_name(s->state));
	} else {
		handlers[m->body_case].handle(s, m);
	}
}

void session_hear_packet(struct session *s, const void *packet, size_t n, int passed_fd) {
	ProtobufCMessage *m = NULL;
	int r = packet_unpack(&sbeet__to_daemon__descriptor, packet, n, &m);

	if (r < 0) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     r == -EBADMSG   ? "a packet is no protobuf message"
			     : r == -ENOBUFS ? "a packet takes too much memory to unpack"
					     : "no memory to unpack a packet");
		return;
	}
	s->passed_fd = passed_fd;
	session_hear(s, (const Sbeet__ToDaemon *)m);
	s->passed_fd = -1;
	packet_free(m);
}
