/*
 * control.c: Hello and Status for sbeetctl. See control.h.
 */
#include "daemon/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/admin-task.h"
#include "daemon/admin.h"
#include "daemon/admission.h"
#include "daemon/core/explain.h"
#include "daemon/ending.h"
#include "daemon/engine.h"
#include "daemon/gate.h"
#include "daemon/inventory.h"
#include "daemon/log.h"
#include "daemon/mps.h"
#include "daemon/quota.h"
#include "daemon/reload.h"
#include "daemon/report.h"
#include "daemon/server.h"
#include "daemon/session-mps.h"
#include "daemon/subscriber.h"
#include "daemon/util.h"
#include "proto/packet.h"
#include "proto/validate.h"

/* Sessions or jobs in one packet: at most some 400 bytes each, so it stays small enough for the
 * socket's buffer to hold several. */
#define ITEMS_PER_PACKET 32

/* Beyond the first 10 ms, answering a client takes at most a fifth of our time, one answer after
 * the other with a pause: programs wait meanwhile. */
#define ANSWER_SHARE 5
#define ANSWER_BURST (50 * NSEC_PER_MSEC)

/* How long a peer may leave an answer unread. */
static const struct timeval unread_max = {.tv_sec = 5};

struct control_packet {
	STAILQ_ENTRY(control_packet) link;
	size_t n;
	uint8_t bytes[];
};

static size_t charge_of(size_t n) {
	return sizeof(struct control_packet) + n;
}

static void drop_unsent(struct control_client *client) {
	struct control_packet *packet = STAILQ_FIRST(&client->unsent);

	STAILQ_REMOVE_HEAD(&client->unsent, link);
	quota_release(client->user, QUOTA_BYTES, charge_of(packet->n));
	free(packet);
}

static void leave_gate(struct control_client *client) {
	if (client->at_gate) {
		client->at_gate = false;
		gate_waited(client->server->gate, &client->cred);
	}
}

void control_client_end(struct control_client *client) {
	if (!client->ended) {
		client->ended = true;
		event_del(&client->readable);
		event_del(&client->resumed);
		event_del(&client->writable);
		client->subscriber = subscriber_free(client->subscriber);
		leave_gate(client);
		gate_leave(client->server->gate, &client->cred, client->faulty, nsec_now());
		ending_client_gone(client);
		admin_task_client_gone(client);
		server_client_ended(client->server, client);
	}
}

static void give_up(struct control_client *client, const char *why) {
	log_client(LOG_LEVEL_INFO, "A control connection is closed: %s", why);
	control_client_end(client);
}

/* Keeps a packet until the peer reads. */
static int keep_unsent(struct control_client *client, const ProtobufCMessage *m) {
	size_t n = protobuf_c_message_get_packed_size(m);
	struct control_packet *packet;

	if (quota_charge(client->user, QUOTA_BYTES, charge_of(n))) {
		return CONTROL_E_QUOTA;
	}
	packet = malloc(sizeof(*packet) + n);
	if (!packet) {
		quota_release(client->user, QUOTA_BYTES, charge_of(n));
		return -ENOMEM;
	}
	packet->n = protobuf_c_message_pack(m, packet->bytes);
	if (STAILQ_EMPTY(&client->unsent)) {
		event_del(&client->readable);
		event_add(&client->writable, &unread_max);
	}
	STAILQ_INSERT_TAIL(&client->unsent, packet, link);
	return 0;
}

void control_client_send(struct control_client *client, Sbeet__Control__Reply *reply) {
	int r = -EAGAIN;

	if (client->ended) {
		return;
	}
	if (STAILQ_EMPTY(&client->unsent)) {
		r = packet_send(client->fd, &reply->base, -1);
	}
	if (r == -EAGAIN) {
		r = keep_unsent(client, &reply->base);
	}
	if (r) {
		give_up(client, r == CONTROL_E_QUOTA ? "its user leaves too many answers unread"
						     : strerror(-r));
	}
}

static void on_writable(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;

	if (what & EV_TIMEOUT) {
		give_up(client, "it does not read its answers");
		return;
	}
	while (!STAILQ_EMPTY(&client->unsent)) {
		struct control_packet *packet = STAILQ_FIRST(&client->unsent);

		if (send(fd, packet->bytes, packet->n, MSG_NOSIGNAL) < 0) {
			if (errno != EAGAIN && errno != EINTR) {
				give_up(client, strerror(errno));
			} else {
				event_add(&client->writable, &unread_max);
			}
			return;
		}
		drop_unsent(client);
	}
	if (!event_pending(&client->resumed, EV_TIMEOUT, NULL)) {
		event_add(&client->readable, NULL);
	}
	if (client->subscriber) {
		subscriber_resume(client->subscriber);
	}
}

bool control_client_is_idle(const struct control_client *client) {
	return !client->ended && STAILQ_EMPTY(&client->unsent);
}

/* Without a time limit: nothing is kept for it. */
void control_client_wait_writable(struct control_client *client) {
	event_add(&client->writable, NULL);
}

void control_client_error(struct control_client *client, uint32_t id, Sbeet__ErrorCode code,
			  const char *text) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	error.code = code;
	error.text = (char *)text;
	reply.id = id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_ERROR;
	reply.error = &error;
	control_client_send(client, &reply);
}

static void handle_hello(struct control_client *client, const Sbeet__Control__Request *request) {
	Sbeet__Control__Hello hello = SBEET__CONTROL__HELLO__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	if (request->hello->version != PROTO_VERSION) {
		char text[160];

		snprintf(text, sizeof(text),
			 "sbeetctl speaks protocol %u, sbeetd %s speaks %d: install the same "
			 "version "
			 "of both",
			 request->hello->version, SBEET_VERSION, PROTO_VERSION);
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_VERSION,
				     text);
		control_client_end(client);
		return;
	}
	hello.version = PROTO_VERSION;
	reply.id = request->id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_HELLO;
	reply.hello = &hello;
	control_client_send(client, &reply);
}

/* One packet of a status answer. */
static void send_status(struct control_client *client, uint32_t id, bool last,
			Sbeet__Control__Status *status) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;

	reply.id = id;
	reply.last = last;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_STATUS;
	reply.status = status;
	control_client_send(client, &reply);
}

static void fill_service(const struct server *server, nsec_t now,
			 Sbeet__Control__Service *service) {
	const struct engine_counters *counters = engine_counters(server->engine);

	service->version = (char *)SBEET_VERSION;
	service->protocol = PROTO_VERSION;
	service->pid = (uint32_t)getpid();
	service->uptime_ns = now - server->started;
	service->policy = (char *)sched_get_policy(engine_sched(server->engine))->name;
	service->grants = counters->grants;
	service->jobs_done = counters->done;
	service->jobs_abandoned = counters->abandoned;
	service->launches = server->n_launches;
	service->misses = server->n_misses;
	service->protocol_errors = server->n_protocol_errors;
	service->now_ns = now;
	service->stopping = server->stopping;
}

static void fill_gpu(const struct server *server, size_t index, nsec_t now, uint8_t busy[static 32],
		     Sbeet__Control__Gpu *ret) {
	const struct inventory_gpu *gpu = inventory_gpu(server->inventory, index);
	const struct account_gpu *account = &server->account.gpus[index];
	struct smset sms = engine_sms_busy(server->engine, index);

	ret->index = (uint32_t)index;
	ret->uuid.data = (uint8_t *)gpu->uuid;
	ret->uuid.len = sizeof(gpu->uuid);
	ret->name = (char *)gpu->name;
	ret->sms = gpu->n_sms;
	ret->sharing = (char *)(gpu->sharing == SCHED_SHARING_MPS ? "mps" : "exclusive");
	ret->sms_busy.data = busy;
	ret->sms_busy.len = smset_to_bytes(&sms, busy);
	ret->power_mw = gpu->power_mw;
	ret->power_limit_mw = gpu->power_limit_mw;
	ret->energy_mj = gpu->energy_mj;
	ret->memory_bytes = gpu->memory_bytes;
	ret->drained = sched_gpu(engine_sched(server->engine), index)->drained;
	ret->lost = gpu->lost;
	ret->programs = session_mps_programs(server, index);
	ret->power_age_ns = gpu->read_at ? now - gpu->read_at : 0;
	account_gpu_at(account, gpu->read_at, &ret->model_mj);
	ret->unknown_ns = account_gpu_unknown(account, now);
}

static void fill_mps(const struct mps_info *mps, Sbeet__Control__Mps *ret) {
	ret->state = (char *)mps_state_name(mps->state);
	ret->pipe_directory = (char *)mps->pipe_directory;
	ret->log_directory = (char *)mps->log_directory;
	ret->ours = mps->ours;
	ret->owner = mps->owner;
	ret->counted = mps->counted;
	ret->clients = mps->n_clients;
	ret->thread_percent = mps->thread_percent;
	ret->restarts = mps->n_restarts;
	ret->clients_max = MPS_CLIENTS_MAX;
	ret->note = (char *)mps->note;
}

/* The first packet: the service, its GPUs, MPS. */
static void send_service(struct control_client *client, uint32_t id) {
	struct server *server = client->server;
	Sbeet__Control__Service service = SBEET__CONTROL__SERVICE__INIT;
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;
	Sbeet__Control__Mps mps = SBEET__CONTROL__MPS__INIT;
	struct mps_info info = mps_info(server->mps);
	Sbeet__Control__Gpu gpus[SCHED_GPUS_MAX], *pointers[SCHED_GPUS_MAX];
	uint8_t busy[SCHED_GPUS_MAX][32];
	nsec_t now = nsec_now();

	fill_service(server, now, &service);
	fill_mps(&info, &mps);
	status.service = &service;
	status.mps = &mps;
	status.gpus = pointers;
	status.n_gpus = inventory_n_gpus(server->inventory);
	for (size_t i = 0; i < status.n_gpus; i++) {
		sbeet__control__gpu__init(&gpus[i]);
		fill_gpu(server, i, now, busy[i], &gpus[i]);
		pointers[i] = &gpus[i];
	}
	send_status(client, id, false, &status);
}

static void fill_session(const struct session *s, Sbeet__Control__Session *ret) {
	ret->id = s->id;
	ret->pid = (uint32_t)s->cred.pid;
	ret->uid = s->cred.uid;
	ret->program = (char *)s->program;
	ret->task = (char *)s->task.name;
	ret->task_class = s->task.task_class;
	ret->period_ns = s->task.period;
	ret->deadline_ns = s->task.deadline;
	ret->priority = s->task.priority;
	ret->state = (char *)session_state_name(s->state);
	ret->scope = s->scope;
	ret->connected_ns = s->connected;
	ret->jobs = s->counters.jobs;
	ret->launches = s->counters.launches;
	ret->copies = s->counters.copies;
	ret->misses = s->counters.misses;
	ret->kernels = s->n_kernels;
	ret->kernels_confinable = s->n_confinable;
	ret->outside_blocks = s->counters.outside_blocks;
	ret->max_wait_ns = s->counters.max_wait;
	ret->max_response_ns = s->counters.max_response;
	ret->last_response_ns = s->counters.last_response;
	ret->jobs_partition = s->counters.jobs_partition;
	ret->planned = s->sched_task != SCHED_TASK_NONE;
	ret->energy_mj = s->counters.energy_mj;
}

static void fill_prediction(const struct job *job, Sbeet__Control__Job *ret) {
	const struct sched *sched = engine_sched(job->session->server->engine);
	const struct sched_job *decided = sched_job(sched, job->sched_id);
	nsec_t finish = decided ? decided->finish : 0;

	ret->predicted_finish_ns = finish;
	ret->overrun = decided && decided->overrun;
}

static void fill_job(const struct job *job, uint8_t sms[static 32], Sbeet__Control__Job *ret) {
	ret->session = job->session->id;
	ret->job = job->number;
	ret->task = (char *)job->session->task.name;
	ret->state = (char *)job_state_name(job->state);
	ret->gpu = (uint32_t)job->gpu;
	ret->release_ns = job->release;
	ret->deadline_ns = job->deadline;
	ret->launches = job->launches;
	ret->pid = (uint32_t)job->session->cred.pid;
	ret->tid = job->tid;
	if (job->state == JOB_WAITING) {
		return;
	}
	ret->slot = job->slot;
	ret->sms.data = sms;
	ret->sms.len = smset_to_bytes(&job->sms, sms);
	ret->enforcement = job_enforcement(job);
	ret->exact = ret->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_WHOLE ||
		     ret->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_SMID ||
		     ret->enforcement == SBEET__ENFORCEMENT__ENFORCEMENT_GREEN;
	ret->granted_ns = job->granted;
	fill_prediction(job, ret);
	ret->sequence = job->sequence;
}

static void send_sessions(struct control_client *client, uint32_t id) {
	Sbeet__Control__Session sessions[ITEMS_PER_PACKET], *pointers[ITEMS_PER_PACKET];
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;
	struct session *s;

	status.sessions = pointers;
	TAILQ_FOREACH(s, &client->server->sessions, link) {
		size_t n = status.n_sessions++;

		sbeet__control__session__init(&sessions[n]);
		fill_session(s, &sessions[n]);
		pointers[n] = &sessions[n];
		if (status.n_sessions == ITEMS_PER_PACKET) {
			send_status(client, id, false, &status);
			status.n_sessions = 0;
		}
	}
	if (status.n_sessions > 0) {
		send_status(client, id, false, &status);
	}
}

/* The last packets, with `last` set in the very last even if there are no jobs. */
static void send_jobs(struct control_client *client, uint32_t id) {
	Sbeet__Control__Job jobs[ITEMS_PER_PACKET], *pointers[ITEMS_PER_PACKET];
	Sbeet__Control__Status status = SBEET__CONTROL__STATUS__INIT;
	uint8_t sms[ITEMS_PER_PACKET][32];
	struct session *s;
	struct job *job;

	status.jobs = pointers;
	TAILQ_FOREACH(s, &client->server->sessions, link) {
		TAILQ_FOREACH(job, &s->jobs, link) {
			size_t n = status.n_jobs;

			if (n == ITEMS_PER_PACKET) {
				send_status(client, id, false, &status);
				n = 0;
			}
			sbeet__control__job__init(&jobs[n]);
			fill_job(job, sms[n], &jobs[n]);
			pointers[n] = &jobs[n];
			status.n_jobs = n + 1;
		}
	}
	send_status(client, id, true, &status);
}

static void handle_status(struct control_client *client, const Sbeet__Control__Request *request) {
	inventory_refresh(client->server->inventory, nsec_now());
	mps_refresh(client->server->mps);
	send_service(client, request->id);
	send_sessions(client, request->id);
	send_jobs(client, request->id);
}

static void handle_policy(struct control_client *client, const Sbeet__Control__Request *request) {
	Sbeet__Control__Policy policy = SBEET__CONTROL__POLICY__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	struct engine *engine = client->server->engine;
	const char *name = request->policy->name;

	if (*name) {
		const struct sched_policy *wanted = engine_find_policy(name);

		if (!admin_may(client)) {
			control_client_error(client, request->id,
					     SBEET__ERROR_CODE__ERROR_CODE_DENIED,
					     "only root, the user that sbeetd runs as and its "
					     "admins may set the "
					     "policy");
			return;
		}
		if (!wanted) {
			control_client_error(
				client, request->id, SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY,
				"there is no policy of this name, or it is for simulations only");
			return;
		}
		log_info("Policy '%s', set by user %u", wanted->name, client->cred.uid);
		engine_set_policy(engine, wanted);
		report_policy(client->server);
		server_decide(client->server);
	}
	policy.name = (char *)sched_get_policy(engine_sched(engine))->name;
	reply.id = request->id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_POLICY;
	reply.policy = &policy;
	control_client_send(client, &reply);
}

static void handle_events(struct control_client *client, const Sbeet__Control__Request *request) {
	int r;

	if (client->subscriber) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_STATE,
				     "this connection is told already what happens");
		return;
	}
	r = subscriber_new(&client->subscriber, client, request->id);
	if (r) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				     r < 0 ? "no memory left to tell what happens"
					   : "too many are told already what happens");
	}
}

static void fill_try(const struct explain_try *try, Sbeet__Control__Try *ret) {
	sbeet__control__try__init(ret);
	ret->wait = try->wait;
	ret->gpu = try->gpu;
	ret->sms = try->n_sms;
	ret->start_ns = try->start;
	ret->finish_ns = try->finish;
	ret->feasible = try->feasible;
	ret->loss = try->loss;
	ret->energy_pj = try->energy_pj;
	ret->chosen = try->chosen;
}

/* One packet with one decision: with all that was tried it is some kilobytes. */
static void send_decision(struct control_client *client, uint32_t id,
			  const struct explain_entry *e) {
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Explanation explanation = SBEET__CONTROL__EXPLANATION__INIT;
	Sbeet__Control__Decision d = SBEET__CONTROL__DECISION__INIT, *decisions[] = {&d};
	Sbeet__Control__Try tries[EXPLAIN_TRIES_MAX], *pointers[EXPLAIN_TRIES_MAX];
	uint8_t sms[sizeof(struct smset)];

	for (size_t i = 0; i < e->n_tries; i++) {
		fill_try(&e->tries[i], &tries[i]);
		pointers[i] = &tries[i];
	}
	d.number = e->number;
	d.session = e->owner;
	d.job = e->tag;
	d.task = (char *)e->label;
	d.policy = (char *)e->policy;
	d.first_ns = e->first;
	d.last_ns = e->last;
	d.times = e->times;
	d.starts = e->gpu >= 0;
	d.gpu = e->gpu >= 0 ? (uint32_t)e->gpu : 0;
	d.sms.data = sms;
	d.sms.len = smset_to_bytes(&e->sms, sms);
	d.release_ns = e->release;
	d.deadline_ns = e->deadline;
	d.predicted_finish_ns = e->finish;
	d.energy_pj = e->energy_pj;
	d.ended_ns = e->ended;
	d.completed = e->completed;
	d.reason = (char *)explain_reason_name(e->reason);
	d.text = (char *)explain_reason_text(e->reason);
	d.tries = pointers;
	d.n_tries = e->n_tries;
	d.tries_left_out = (uint32_t)e->n_left_out;
	explanation.decisions = decisions;
	explanation.n_decisions = 1;
	reply.id = id;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_EXPLANATION;
	reply.explanation = &explanation;
	control_client_send(client, &reply);
}

static void handle_explain(struct control_client *client, const Sbeet__Control__Request *request) {
	const Sbeet__Control__ExplainRequest *wanted = request->explain;
	const struct explain *e = sched_explain(engine_sched(client->server->engine));
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	Sbeet__Control__Explanation last = SBEET__CONTROL__EXPLANATION__INIT;
	size_t n = e ? explain_count(e) : 0;

	for (size_t i = 0; i < n; i++) {
		const struct explain_entry *entry = explain_get(e, i);

		if ((wanted->session == 0 || wanted->session == entry->owner) &&
		    (wanted->job == 0 || wanted->job == entry->tag)) {
			send_decision(client, request->id, entry);
		}
	}
	last.complete = n == 0 || explain_get(e, 0)->number == 1;
	reply.id = request->id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_EXPLANATION;
	reply.explanation = &last;
	control_client_send(client, &reply);
}

static void (*const handlers[])(struct control_client *, const Sbeet__Control__Request *) = {
	[SBEET__CONTROL__REQUEST__BODY_HELLO] = handle_hello,
	[SBEET__CONTROL__REQUEST__BODY_STATUS] = handle_status,
	[SBEET__CONTROL__REQUEST__BODY_POLICY] = handle_policy,
	[SBEET__CONTROL__REQUEST__BODY_EXPLAIN] = handle_explain,
	[SBEET__CONTROL__REQUEST__BODY_EVENTS] = handle_events,
	[SBEET__CONTROL__REQUEST__BODY_CONFIG] = admin_config,
	[SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE] = admin_change_task,
	[SBEET__CONTROL__REQUEST__BODY_SESSION_KILL] = ending_kill_session,
	[SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN] = admin_drain_gpu,
};

static void handle_packet(struct control_client *client, const void *bytes, size_t n) {
	const Sbeet__Control__Request *request;
	ProtobufCMessage *m = NULL;
	char why[256] = "a packet is no protobuf message, or too large";
	int r = packet_unpack(&sbeet__control__request__descriptor, bytes, n, &m);

	request = (const Sbeet__Control__Request *)m;
	if (r == 0) {
		r = validate_control_request(request, why, sizeof(why));
	}
	if (r == 0) {
		handlers[request->body_case](client, request);
	} else if (r == -ENOMSG) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN,
				     "sbeetd " SBEET_VERSION " does not know this request");
	} else {
		client->server->n_protocol_errors++;
		client->faulty = true;
		control_client_error(client, request ? request->id : 0,
				     SBEET__ERROR_CODE__ERROR_CODE_INVALID, why);
		control_client_end(client);
	}
	packet_free(m);
}

static void on_resumed(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;

	leave_gate(client);
	/* What the timer overslept is not to be made up for: that would come all at once. */
	pace_settle(&client->pace, nsec_now());
	if (STAILQ_EMPTY(&client->unsent)) {
		event_add(&client->readable, NULL);
	}
}

/* It has been answered, which took from @began till now. */
static void rest(struct control_client *client, nsec_t began) {
	nsec_t now = nsec_now();
	nsec_t wait = pace_add(&client->pace, ANSWER_SHARE * (now - began), ANSWER_BURST, now);
	struct timeval t = util_timeval(wait);

	if (!client->ended && wait > 0 && event_add(&client->resumed, &t) == 0) {
		event_del(&client->readable);
	}
}

/* One question an event: an answer is long. */
static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;
	nsec_t began = nsec_now();
	int r = packet_receive(fd, client->server->buffer, NULL);

	if (r > 0) {
		handle_packet(client, client->server->buffer, (size_t)r);
		rest(client, began);
	} else if (r == -EMSGSIZE) {
		client->server->n_protocol_errors++;
		client->faulty = true;
		control_client_error(client, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
				     "a packet is longer than 65536 bytes");
		control_client_end(client);
	} else if (r != -EAGAIN) {
		control_client_end(client);
	}
}

/* Charged. */
static int make(struct control_client **ret, struct server *server, const struct peer *peer) {
	struct control_client *client;
	struct quota_user *user;
	int r = quota_user_ref(server->quota, peer->cred.uid, &user);

	if (r < 0) {
		return r;
	}
	admission_user(server->reload->config, peer, user);
	if (quota_charge(user, QUOTA_SESSIONS, 1)) {
		quota_user_unref(user);
		return CONTROL_E_QUOTA;
	}
	client = calloc(1, sizeof(*client));
	if (!client) {
		quota_release(user, QUOTA_SESSIONS, 1);
		quota_user_unref(user);
		return -ENOMEM;
	}
	client->server = server;
	client->user = user;
	client->cred = peer->cred;
	client->fd = -1;
	STAILQ_INIT(&client->unsent);
	LIST_INIT(&client->endings);
	*ret = client;
	return 0;
}

/* At once, or after the time that its process has to wait. */
static int listen_to(struct control_client *client, int fd, nsec_t wait) {
	struct event_base *base = client->server->base;
	struct timeval t = util_timeval(wait);

	event_assign(&client->readable, base, fd, EV_READ | EV_PERSIST, on_readable, client);
	event_assign(&client->writable, base, fd, EV_WRITE, on_writable, client);
	event_assign(&client->resumed, base, -1, EV_TIMEOUT, on_resumed, client);
	if ((wait > 0 ? event_add(&client->resumed, &t) : event_add(&client->readable, NULL)) < 0) {
		return -ENOMEM;
	}
	client->at_gate = wait > 0;
	client->fd = fd;
	return 0;
}

int control_client_new(struct control_client **ret, struct server *server, int fd) {
	struct control_client *client;
	struct ucred cred;
	struct peer peer;
	nsec_t wait;
	int r = peer_credentials(fd, &cred);

	if (r < 0) {
		return r;
	}
	wait = gate_enter(server->gate, &cred, nsec_now());
	if (wait == GATE_FULL) {
		return CONTROL_E_GATE;
	}
	r = peer_read(fd, &peer);
	if (r == 0) {
		r = make(&client, server, &peer);
	}
	if (r == 0) {
		r = listen_to(client, fd, wait);
		if (r < 0) {
			control_client_free(client);
		}
	}
	if (r != 0 && wait > 0) {
		gate_waited(server->gate, &cred);
	}
	if (r == 0) {
		*ret = client;
	}
	return r;
}

struct control_client *control_client_free(struct control_client *client) {
	if (client) {
		while (!STAILQ_EMPTY(&client->unsent)) {
			drop_unsent(client);
		}
		if (client->fd >= 0) {
			packet_close(client->fd);
		}
		quota_release(client->user, QUOTA_SESSIONS, 1);
		quota_user_unref(client->user);
		free(client);
	}
	return NULL;
}
