/*
 * session.c: what a shim may say when, and what becomes of it. See session.h.
 */
#include "daemon/session.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "daemon/admission.h"
#include "daemon/engine.h"
#include "daemon/inventory.h"
#include "daemon/log.h"
#include "daemon/metrics.h"
#include "daemon/quota.h"
#include "daemon/reload.h"
#include "daemon/report.h"
#include "daemon/resume.h"
#include "daemon/server.h"
#include "daemon/session-mps.h"
#include "daemon/session-task.h"
#include "daemon/util.h"
#include "proto/packet.h"
#include "proto/validate.h"

/* Packets of one session between two looks at the others. */
#define PACKETS_PER_EVENT 16

/* A program is told what it did wrong a hundred times at once and a thousand times a second. */
#define ERROR_COST  NSEC_PER_MSEC
#define ERROR_BURST (100 * NSEC_PER_MSEC)

#define EVENT(name) SBEET__CONTROL__EVENT_KIND__EVENT_KIND_##name

/* A release may lie this far back: the program was stopped or the machine busy. */
#define RELEASE_AGE_MAX NSEC_PER_SEC

static const struct {
	const char *name;
	unsigned next;
} states[_SESSION_STATE_N] = {
	[SESSION_NEW] = {"new", BIT(SESSION_ACTIVE) | BIT(SESSION_CLOSED)},
	[SESSION_ACTIVE] = {"active", BIT(SESSION_DRAINING) | BIT(SESSION_CLOSED)},
	[SESSION_DRAINING] = {"draining", BIT(SESSION_CLOSED)},
	[SESSION_CLOSED] = {"closed", 0},
};

static void session_hang_up(struct session *s);

static void session_set_state(struct session *s, enum session_state state) {
	assert(states[s->state].next & BIT(state));
	s->state = state;
}

const char *session_state_name(enum session_state state) {
	return states[state].name;
}

/* Ends the session if the peer does not take the packet: nobody is waited for. */
static void session_send(struct session *s, Sbeet__ToShim *m) {
	int r;

	if (s->fd < 0) {
		return;
	}
	s->answered = true;
	r = packet_send(s->fd, &m->base, -1);
	if (r < 0) {
		log_client(LOG_LEVEL_INFO, "session %llu (pid %d, '%s') %s, disconnecting",
			   (unsigned long long)s->id, s->cred.pid, s->task.name,
			   r == -EAGAIN ? "does not read its answers" : strerror(-r));
		session_hang_up(s);
	}
}

__attribute__((format(printf, 4, 0))) static void session_verror(struct session *s, uint64_t job,
								 Sbeet__ErrorCode code,
								 const char *format, va_list args) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	char text[PROTO_TEXT_MAX / 2];

	vsnprintf(text, sizeof(text), format, args);
	log_event(LOG_LEVEL_WARNING,
		  &(struct log_about){.id = LOG_ID_PEER,
				      .task = *s->task.name ? s->task.name : NULL,
				      .gpu = -1,
				      .job = job,
				      .uid = s->cred.uid},
		  "session %llu (pid %d, '%s'): %s", (unsigned long long)s->id, s->cred.pid,
		  s->task.name, text);
	s->penance = pace_add(&s->errors, ERROR_COST, ERROR_BURST, nsec_now());
	error.code = code;
	error.text = text;
	error.job = job;
	m.body_case = SBEET__TO_SHIM__BODY_ERROR;
	m.error = &error;
	session_send(s, &m);
}

/* An error that the session survives. */
__attribute__((format(printf, 4, 5))) static void session_error(struct session *s, uint64_t job,
								Sbeet__ErrorCode code,
								const char *format, ...) {
	va_list args;

	va_start(args, format);
	session_verror(s, job, code, format, args);
	va_end(args);
}

/* An error that ends the connection, and this one only. */
__attribute__((format(printf, 3, 4))) static void session_fail(struct session *s,
							       Sbeet__ErrorCode code,
							       const char *format, ...) {
	va_list args;

	s->server->n_protocol_errors++;
	va_start(args, format);
	session_verror(s, 0, code, format, args);
	va_end(args);
	session_hang_up(s);
}

static struct job *find_job(struct session *s, uint64_t number) {
	struct job *job;

	TAILQ_FOREACH(job, &s->jobs, link) {
		if (job->number == number) {
			return job;
		}
	}
	return NULL;
}

/* Out of the engine, the list and the quota. */
static void drop_job(struct session *s, struct job *job, bool done) {
	if (!done) {
		report_job(job, EVENT(JOB_ABANDON));
		s->counters.launches += job->launches;
		s->server->n_launches += job->launches;
	}
	resume_forget(job);
	account_job_ends(job);
	if (job->sched_id != SCHED_JOB_NONE) {
		engine_finish(s->server->engine, job, done);
	} else {
		job_set_state(job, done ? JOB_DONE : JOB_ABANDONED); /* SMs that were not its */
	}
	TAILQ_REMOVE(&s->jobs, job, link);
	s->n_jobs--;
	quota_release(s->user, QUOTA_JOBS, 1);
	job_free(job);
}

static void drop_waiting(struct session *s) {
	struct job *job, *next;

	for (job = TAILQ_FIRST(&s->jobs); job; job = next) {
		next = TAILQ_NEXT(job, link);
		if (job->state == JOB_WAITING) {
			drop_job(s, job, false);
		}
	}
}

static void close_socket(struct session *s) {
	if (s->fd >= 0) {
		event_del(&s->readable);
		event_del(&s->resumed);
		packet_close(s->fd);
		s->fd = -1;
	}
}

void session_end(struct session *s) {
	struct job *job;
	bool known;

	if (s->state == SESSION_CLOSED) {
		return;
	}
	known = s->state != SESSION_NEW;
	session_set_state(s, SESSION_CLOSED);
	close_socket(s);
	event_del(&s->drained);
	if (s->pidfd >= 0) {
		event_del(&s->dead);
	}
	while ((job = TAILQ_FIRST(&s->jobs))) {
		drop_job(s, job, false);
	}
	if (s->sched_task != SCHED_TASK_NONE) {
		engine_remove_task(s->server->engine, s->sched_task);
		s->sched_task = SCHED_TASK_NONE;
	}
	if (known) {
		report_session(s, EVENT(SESSION_END));
	}
	server_session_ended(s->server, s);
}

void session_hand_over(struct session *s) {
	event_del(&s->readable);
	close(s->fd);
	s->fd = -1;
	session_end(s);
}

/* From now on it has the server's drain time. Return: 0 or -ENOMEM. */
static int begin_drain(struct session *s) {
	struct timeval drain = util_timeval(s->server->drain);

	return event_add(&s->drained, &drain) < 0 ? -ENOMEM : 0;
}

/* Ends the connection. The session lives on while jobs run whose kernels may do so too. */
static void session_hang_up(struct session *s) {
	if (s->fd < 0) {
		return;
	}
	drop_waiting(s);
	/* Without a pidfd nobody would tell of the process's death: then the socket's end is it. */
	if (s->n_jobs == 0 || s->pidfd < 0 || begin_drain(s) < 0) {
		session_end(s);
		return;
	}
	close_socket(s);
	if (s->state == SESSION_ACTIVE) {
		session_set_state(s, SESSION_DRAINING);
	}
}

static void say_goodbye(struct session *s, const char *reason) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	goodbye.reason = (char *)reason;
	m.body_case = SBEET__TO_SHIM__BODY_GOODBYE;
	m.goodbye = &goodbye;
	session_send(s, &m);
}

void session_goodbye(struct session *s, const char *reason) {
	say_goodbye(s, reason);
	session_end(s);
}

void session_dismiss(struct session *s, const char *reason) {
	say_goodbye(s, reason);
	session_hang_up(s);
}

void session_grant(struct job *job) {
	struct session *s = job->session;
	const struct inventory_gpu *gpu = inventory_gpu(s->server->inventory, job->gpu);
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	uint8_t sms[sizeof(struct smset)];

	report_job(job, EVENT(JOB_GRANT));
	grant.job = job->number;
	grant.gpu_uuid.data = (uint8_t *)gpu->uuid;
	grant.gpu_uuid.len = sizeof(gpu->uuid);
	grant.slot = job->slot;
	grant.sms.data = sms;
	grant.sms.len = smset_to_bytes(&job->sms, sms);
	grant.enforcement = job->enforcement;
	grant.sequence = job->sequence;
	grant.gpu_sms = gpu->n_sms;
	grant.deadline_ns = job->deadline;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &grant;
	resume_note(job);
	account_job_begins(job);
	session_send(s, &m);
	/* Other jobs of a session that was cut off just now may run. This one never will. */
	if (s->state == SESSION_DRAINING && s->fd < 0) {
		drop_job(s, job, false);
	}
}

void session_ping(struct session *s) {
	Sbeet__Ping ping = SBEET__PING__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	ping.number = s->pinged;
	m.body_case = SBEET__TO_SHIM__BODY_PING;
	m.ping = &ping;
	session_send(s, &m);
}

void session_revoke(struct session *s, uint64_t job, const char *reason) {
	Sbeet__Revoke revoke = SBEET__REVOKE__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	revoke.job = job;
	revoke.reason = (char *)reason;
	m.body_case = SBEET__TO_SHIM__BODY_REVOKE;
	m.revoke = &revoke;
	session_send(s, &m);
}

static void handle_hello(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Hello *hello = packet->hello;
	Sbeet__Welcome welcome = SBEET__WELCOME__INIT;
	const struct inventory_gpu *gpu;
	struct session_mps mps;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	char *features[] = {(char *)PROTO_FEATURE_RESUME, (char *)"green"};

	if (hello->version != PROTO_VERSION) {
		session_fail(
			s, SBEET__ERROR_CODE__ERROR_CODE_VERSION,
			"the program's libsbeet.so %s speaks protocol %u, sbeetd %s speaks %d: "
			"install the same version of both",
			hello->shim_version, hello->version, SBEET_VERSION, PROTO_VERSION);
		return;
	}
	snprintf(s->program, sizeof(s->program), "%s", hello->program);
	session_task_admit(s, hello);
	s->scope = hello->scope;
	s->enforcement_mask = hello->enforcement_mask;
	session_set_state(s, SESSION_ACTIVE);
	report_session(s, EVENT(SESSION_START));
	session_task_declare(s);
	gpu = session_task_choose_gpu(s, hello);
	for (size_t i = 0; i < hello->n_features; i++) {
		s->answers_pings |= strcmp(hello->features[i], PROTO_FEATURE_PING) == 0;
	}
	log_debug("session %llu: pid %d, uid %u, program '%s', task '%s'",
		  (unsigned long long)s->id, s->cred.pid, s->cred.uid, s->program, s->task.name);

	welcome.version = PROTO_VERSION;
	welcome.session = s->id;
	welcome.task = s->task.name;
	welcome.linger_ns = s->server->linger;
	welcome.features = features;
	welcome.n_features = 1u + engine_cuts_green(s->server->engine);
	session_mps_welcome(s, gpu, &mps);
	welcome.mps_pipe_directory = (char *)mps.pipe_directory;
	welcome.mps_log_directory = (char *)mps.log_directory;
	welcome.notice = mps.notice;
	if (gpu) {
		welcome.gpu_uuid.data = (uint8_t *)gpu->uuid;
		welcome.gpu_uuid.len = sizeof(gpu->uuid);
	}
	m.body_case = SBEET__TO_SHIM__BODY_WELCOME;
	m.welcome = &welcome;
	session_send(s, &m);
	if (s->fd >= 0) {
		resume_session(s, hello);
	}
}

/* Room for the bit of kernel @id. Return: 0, -ENOMEM, SESSION_E_QUOTA. */
static int reserve_kernel(struct session *s, uint32_t id) {
	size_t bytes = s->kernels_bytes ? s->kernels_bytes : 64;
	uint8_t *kernels;

	while (bytes <= id / 8) {
		bytes *= 2;
	}
	if (bytes == s->kernels_bytes) {
		return 0;
	}
	if (quota_charge(s->user, QUOTA_BYTES, bytes - s->kernels_bytes)) {
		return SESSION_E_QUOTA;
	}
	kernels = realloc(s->kernels, bytes);
	if (!kernels) {
		quota_release(s->user, QUOTA_BYTES, bytes - s->kernels_bytes);
		return -ENOMEM;
	}
	memset(kernels + s->kernels_bytes, 0, bytes - s->kernels_bytes);
	s->kernels = kernels;
	s->kernels_bytes = bytes;
	return 0;
}

static void handle_kernel(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__KernelDef *kernel = packet->kernel;
	uint8_t bit = (uint8_t)BIT(kernel->id % 8);

	if (reserve_kernel(s, kernel->id)) {
		session_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
			      "kernel %u is not recorded: no memory left for this user",
			      kernel->id);
		return;
	}
	if (s->kernels[kernel->id / 8] & bit) {
		session_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE,
			      "kernel %u is declared already", kernel->id);
		return;
	}
	s->kernels[kernel->id / 8] |= bit;
	s->n_kernels++;
	s->n_confinable += (kernel->enforcement_mask & s->enforcement_mask &
			    ~BIT(SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE)) != 0;
}

/* The time that the client claims, as far as it can be true. */
static nsec_t clamp_release(const struct session *s, nsec_t claimed, nsec_t now) {
	if (claimed == 0 || claimed > now) {
		return now;
	}
	return !s->replayed && now - claimed > RELEASE_AGE_MAX ? now - RELEASE_AGE_MAX : claimed;
}

int session_add_job(struct session *s, struct job *job) {
	if (quota_charge(s->user, QUOTA_JOBS, 1)) {
		return SESSION_E_QUOTA;
	}
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	return 0;
}

static struct job *open_job(struct session *s, const Sbeet__Request *request, size_t gpu) {
	struct job *job = job_new(s, request->job);

	if (!job) {
		return NULL;
	}
	session_task_refresh(s);
	job->owner = s->id;
	job->label = s->task.name;
	job->task = s->sched_task;
	job->tid = request->tid;
	job->gpu = gpu;
	s->gpus |= BIT(gpu);
	job->enforcement_mask = request->enforcement_mask & s->enforcement_mask;
	job->sm_step = request->sm_step;
	job->job_class = s->task.task_class == SBEET__TASK_CLASS__TASK_CLASS_REALTIME
				 ? SCHED_CLASS_REALTIME
				 : SCHED_CLASS_BEST_EFFORT;
	job->priority = s->task.priority;
	job->max_sms = s->task.max_sms;
	job->release = task_release(&s->task, clamp_release(s, request->release_ns, nsec_now()));
	job->deadline = task_deadline(&s->task, job->release);
	if (engine_arrive(s->server->engine, job)) {
		return job_free(job);
	}
	TAILQ_INSERT_TAIL(&s->jobs, job, link);
	s->n_jobs++;
	report_job(job, EVENT(JOB_REQUEST));
	return job;
}

static void handle_request(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__Request *request = packet->request;
	int gpu = inventory_find(s->server->inventory, request->gpu_uuid.data);

	if (gpu < 0) {
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_NO_GPU,
			      "job %llu is for a GPU that sbeetd does not manage",
			      (unsigned long long)request->job);
	} else if (s->task.gpu >= 0 && s->task.gpu != gpu) {
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_DENIED,
			      "job %llu is for GPU %d, but task '%s' may use GPU %d alone",
			      (unsigned long long)request->job, gpu, s->task.name, s->task.gpu);
	} else if (find_job(s, request->job)) {
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_DUPLICATE,
			      "job %llu exists already", (unsigned long long)request->job);
	} else if (s->n_jobs == PROTO_JOBS_PER_SESSION) {
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
			      "this program has %d jobs already, and no more are allowed",
			      PROTO_JOBS_PER_SESSION);
	} else if (quota_charge(s->user, QUOTA_JOBS, 1)) {
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
			      "user %u has %llu jobs already, and no more are allowed", s->cred.uid,
			      (unsigned long long)quota_limit(s->user, QUOTA_JOBS));
	} else if (!open_job(s, request, (size_t)gpu)) {
		quota_release(s->user, QUOTA_JOBS, 1);
		session_error(s, request->job, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
			      "sbeetd has no room for more jobs");
	}
}

/* Records may outlive their job by a moment, so those of an unknown one are no error. */
static void handle_ops(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__OpBatch *batch = packet->ops;
	struct job *job = find_job(s, batch->job);

	for (size_t i = 0; job && i < batch->n_ops; i++) {
		const Sbeet__Op *op = batch->ops[i];

		job->launches += op->kind == SBEET__OP_KIND__OP_KIND_LAUNCH;
		if (op->kind == SBEET__OP_KIND__OP_KIND_LAUNCH ||
		    op->kind == SBEET__OP_KIND__OP_KIND_GRAPH) {
			job->unconfined |= op->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_NONE;
			if (!job->launched || op->time_ns < job->launched) {
				job->launched = op->time_ns;
			}
		}
	}
}

static void count_done(struct session *s, const struct job *job, const Sbeet__JobDone *done) {
	struct session_counters *c = &s->counters;
	nsec_t now = nsec_now(), finished = done->finished_ns;

	if (finished < job->granted || finished > now) {
		finished = now;
	}
	c->jobs++;
	c->jobs_partition += job_enforcement(job) > SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE;
	c->launches += done->launches;
	c->copies += done->copies;
	c->outside_blocks += done->outside_blocks;
	c->misses += job->deadline && finished > job->deadline;
	s->server->n_misses += job->deadline && finished > job->deadline;
	if (job->granted > job->release && job->granted - job->release > c->max_wait) {
		c->max_wait = job->granted - job->release;
	}
	c->last_response = finished > job->release ? finished - job->release : 0;
	if (c->last_response > c->max_response) {
		c->max_response = c->last_response;
	}
	metrics_job(s->server->metrics, s->task.name,
		    job->granted > job->release ? job->granted - job->release : 0, c->last_response,
		    job->deadline && finished > job->deadline);
	session_task_learn(s, job, done, finished);
	report_job_done(job, finished, done->launches);
}

static void handle_done(struct session *s, const Sbeet__ToDaemon *packet) {
	const Sbeet__JobDone *done = packet->done;
	struct job *job = find_job(s, done->job);

	if (!job || (job->state == JOB_WAITING && !done->cancelled)) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "job %llu is said to be done, but it does not run",
			     (unsigned long long)done->job);
		return;
	}
	if (!done->cancelled) {
		count_done(s, job, done);
		s->server->n_launches += done->launches;
	}
	drop_job(s, job, !done->cancelled);
	if (s->state == SESSION_DRAINING && s->n_jobs == 0) {
		session_end(s);
	}
}

/* What waits is dropped; what runs may still report its end. */
static void handle_goodbye(struct session *s, const Sbeet__ToDaemon *packet) {
	log_debug("session %llu says goodbye: %s", (unsigned long long)s->id,
		  packet->goodbye->reason);
	drop_waiting(s);
	if (s->state == SESSION_ACTIVE && s->n_jobs > 0) {
		session_set_state(s, SESSION_DRAINING);
	} else {
		session_end(s);
	}
}

static void handle_pong(struct session *s, const Sbeet__ToDaemon *packet) {
	if (packet->pong->number == s->pinged) {
		s->pinged = 0;
	}
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
	[SBEET__TO_DAEMON__BODY_DONE] = {"done", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					 handle_done},
	[SBEET__TO_DAEMON__BODY_GOODBYE] = {"goodbye", BIT(SESSION_NEW) | BIT(SESSION_ACTIVE),
					    handle_goodbye},
	[SBEET__TO_DAEMON__BODY_PONG] = {"pong", BIT(SESSION_ACTIVE) | BIT(SESSION_DRAINING),
					 handle_pong},
};

void session_hear(struct session *s, const Sbeet__ToDaemon *m) {
	char why[256];
	int r = validate_to_daemon(m, why, sizeof(why));

	if (r == -ENOMSG) {
		session_error(s, 0, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN,
			      "sbeetd %s does not know this message", SBEET_VERSION);
	} else if (r < 0) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID, "%s", why);
	} else if (!(handlers[m->body_case].allowed & BIT(s->state))) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_STATE,
			     "'%s' can't be said when the session is %s",
			     handlers[m->body_case].name, states[s->state].name);
	} else {
		handlers[m->body_case].handle(s, m);
	}
}

static void handle_packet(struct session *s, const void *packet, size_t n) {
	ProtobufCMessage *m = NULL;
	int r = packet_unpack(&sbeet__to_daemon__descriptor, packet, n, &m);

	if (r < 0) {
		session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
			     r == -EBADMSG   ? "a packet is no protobuf message"
			     : r == -ENOBUFS ? "a packet takes too much memory to unpack"
					     : "no memory to unpack a packet");
		return;
	}
	session_hear(s, (const Sbeet__ToDaemon *)m);
	packet_free(m);
}

static void on_resumed(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;

	event_add(&s->readable, NULL);
}

/* Its user sends more than allowed, or it makes mistakes: then nothing is read of it for a while.
 */
static bool is_too_fast(struct session *s) {
	nsec_t wait = quota_packet(s->user, nsec_now());
	struct timeval t;

	wait = s->penance > wait ? s->penance : wait;
	s->penance = 0;
	t = util_timeval(wait);
	if (wait == 0 || event_add(&s->resumed, &t) < 0) {
		return false;
	}
	event_del(&s->readable);
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	/* Who was answered will think before the next packet: looking for one would be in vain. */
	s->answered = false;
	for (int i = 0; i < PACKETS_PER_EVENT && !s->answered; i++) {
		int r = packet_receive(s->fd, server->buffer, NULL);

		if (r == -EAGAIN) {
			break;
		}
		if (r == -EMSGSIZE) {
			session_fail(s, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
				     "a packet is longer than %d bytes", PROTO_PACKET_MAX);
		} else if (r <= 0) {
			log_debug("session %llu has closed: %s", (unsigned long long)s->id,
				  r < 0 ? strerror(-r) : "end of file");
			session_hang_up(s);
		} else {
			handle_packet(s, server->buffer, (size_t)r);
		}
		if (s->fd < 0 || is_too_fast(s)) {
			break;
		}
		server_decide(server);
	}
	server_decide(server);
}

static void on_dead(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	log_debug("session %llu: process %d has ended", (unsigned long long)s->id, s->cred.pid);
	session_end(s);
	server_decide(server);
}

static void on_drained(evutil_socket_t fd, short what, void *userdata) {
	struct session *s = userdata;
	struct server *server = s->server;

	log_client(LOG_LEVEL_WARNING,
		   "session %llu: process %d hung up while %u jobs ran, and lives; their SMs are "
		   "given to others now (see --drain)",
		   (unsigned long long)s->id, s->cred.pid, s->n_jobs);
	session_end(s);
	server_decide(server);
}

static void refuse_quota(int fd, uint64_t limit) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	char text[128];

	snprintf(text, sizeof(text),
		 "this user has %llu connections already, and no more are allowed",
		 (unsigned long long)limit);
	error.code = SBEET__ERROR_CODE__ERROR_CODE_QUOTA;
	error.text = text;
	m.body_case = SBEET__TO_SHIM__BODY_ERROR;
	m.error = &error;
	packet_send(fd, &m.base, -1);
}

static int watch_process(struct session *s) {
	if (s->pidfd < 0) {
		return 0;
	}
	event_assign(&s->dead, s->server->base, s->pidfd, EV_READ, on_dead, s);
	return event_add(&s->dead, NULL) < 0 ? -ENOMEM : 0;
}

static int watch(struct session *s, int fd) {
	event_assign(&s->readable, s->server->base, fd, EV_READ | EV_PERSIST, on_readable, s);
	if (event_add(&s->readable, NULL) < 0) {
		return -ENOMEM;
	}
	if (watch_process(s) < 0) {
		event_del(&s->readable);
		return -ENOMEM;
	}
	return 0;
}

/* Charged, and of a living process as far as that is known. */
static int make(struct session **ret, struct server *server, uint64_t id, const struct peer *peer,
		int fd) {
	struct quota_user *user;
	struct session *s;
	int r = quota_user_ref(server->quota, peer->cred.uid, &user);

	if (r < 0) {
		return r;
	}
	admission_user(server->reload->config, peer, user);
	if (quota_charge(user, QUOTA_SESSIONS, 1)) {
		if (fd >= 0) {
			refuse_quota(fd, quota_limit(user, QUOTA_SESSIONS));
		}
		quota_user_unref(user);
		return SESSION_E_QUOTA;
	}
	s = calloc(1, sizeof(*s));
	if (!s) {
		quota_release(user, QUOTA_SESSIONS, 1);
		quota_user_unref(user);
		return -ENOMEM;
	}
	s->server = server;
	s->user = user;
	s->id = id;
	s->cred = peer->cred;
	s->connected = nsec_now();
	s->fd = -1;
	s->sched_task = SCHED_TASK_NONE;
	TAILQ_INIT(&s->jobs);
	event_assign(&s->drained, server->base, -1, EV_TIMEOUT, on_drained, s);
	event_assign(&s->resumed, server->base, -1, EV_TIMEOUT, on_resumed, s);
	s->pidfd = peer_open_process(fd, peer->cred.pid);
	if (s->pidfd < -1) {
		r = s->pidfd;
		session_free(s);
		return r;
	}
	*ret = s;
	return 0;
}

int session_new(struct session **ret, struct server *server, uint64_t id, int fd) {
	struct session *s;
	struct peer peer;
	int r = peer_read(fd, &peer);

	if (r < 0) {
		return r;
	}
	r = make(&s, server, id, &peer, fd);
	if (r) {
		return r;
	}
	r = watch(s, fd);
	if (r < 0) {
		session_free(s);
		return r;
	}
	s->fd = fd;
	*ret = s;
	return 0;
}

int session_new_absent(struct session **ret, struct server *server, uint64_t id,
		       const struct ucred *cred) {
	struct session *s;
	const struct peer peer = {.cred = *cred};
	int r = make(&s, server, id, &peer, -1);

	if (r) {
		return r;
	}
	r = begin_drain(s);
	if (r == 0) {
		r = watch_process(s);
	}
	if (r < 0) {
		event_del(&s->drained);
		session_free(s);
		return r;
	}
	session_set_state(s, SESSION_ACTIVE);
	session_set_state(s, SESSION_DRAINING);
	*ret = s;
	return 0;
}

struct session *session_free(struct session *s) {
	if (!s) {
		return NULL;
	}
	assert(TAILQ_EMPTY(&s->jobs));
	if (s->fd >= 0) {
		packet_close(s->fd);
	}
	if (s->pidfd >= 0) {
		close(s->pidfd);
	}
	quota_release(s->user, QUOTA_BYTES, s->kernels_bytes);
	quota_release(s->user, QUOTA_SESSIONS, 1);
	quota_user_unref(s->user);
	session_task_free(s);
	free(s->kernels);
	free(s);
	return NULL;
}
