/*
 * control.c: a control connection: what is heard, and what is sent when. See control.h.
 */
#include "daemon/control/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/gate.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/config/reload.h"
#include "daemon/control/admin-task.h"
#include "daemon/control/admin.h"
#include "daemon/control/control-explain.h"
#include "daemon/control/control-kernels.h"
#include "daemon/control/control-status.h"
#include "daemon/control/ending.h"
#include "daemon/control/subscriber.h"
#include "daemon/engine/engine.h"
#include "daemon/session/admission.h"
#include "daemon/session/session.h"
#include "daemon/watch/report.h"
#include "daemon/watch/watched.h"
#include "proto/packet.h"
#include "proto/validate.h"

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
		gate_waited(client->control->gate, &client->cred);
	}
}

void control_client_end(struct control_client *client) {
	nsec_t now = client->control->now();

	if (!client->ended) {
		client->ended = true;
		event_del(&client->readable);
		event_del(&client->resumed);
		event_del(&client->writable);
		answer_deinit(client);
		client->subscriber = subscriber_free(client->subscriber);
		leave_gate(client);
		gate_leave(client->control->gate, &client->cred, client->n_told, client->faulty,
			   now);
		quota_work(client->user, 1, 0, now);
		ending_client_gone(client);
		admin_task_client_gone(client);
		TAILQ_REMOVE(&client->control->clients, client, link);
		TAILQ_INSERT_TAIL(&client->control->ended, client, link);
	}
}

static void give_up(struct control_client *client, const char *why) {
	log_client(quota_log(client->user), LOG_LEVEL_INFO, "A control connection is closed: %s",
		   why);
	control_client_end(client);
}

/* Keeps a packet until the peer reads. Return: 0, CONTROL_E_QUOTA, -ENOMEM. */
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

/* The next question, unless one is being answered, or the client has to wait. */
static void hear(struct control_client *client) {
	if (control_client_is_idle(client) && !answer_goes_on(client) &&
	    !event_pending(&client->resumed, EV_TIMEOUT, NULL)) {
		event_add(&client->readable, NULL);
	}
}

void control_client_answered(struct control_client *client, nsec_t began) {
	nsec_t now = client->control->now();
	nsec_t wait = pace_add(&client->pace, ANSWER_SHARE * (now - began), ANSWER_BURST, now);
	struct timeval t = util_timeval(wait);

	if (client->ended) {
		return;
	}
	if (answer_goes_on(client)) {
		event_del(&client->readable);
		answer_go_on(client, wait);
	} else if (wait > 0 && event_add(&client->resumed, &t) == 0) {
		event_del(&client->readable);
	} else {
		hear(client);
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
	hear(client);
	answer_resume(client);
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

static void handle_policy(struct control_client *client, const Sbeet__Control__Request *request) {
	Sbeet__Control__Policy policy = SBEET__CONTROL__POLICY__INIT;
	Sbeet__Control__Reply reply = SBEET__CONTROL__REPLY__INIT;
	struct engine *engine = client->control->engine;
	const char *name = request->policy->name;

	if (*name) {
		const struct sched_policy *wanted = sched_policy_find_live(name);

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
		report_policy(client->control->report);
	}
	policy.name = (char *)sched_get_policy(engine_sched(engine))->name;
	reply.id = request->id;
	reply.last = true;
	reply.body_case = SBEET__CONTROL__REPLY__BODY_POLICY;
	reply.policy = &policy;
	control_client_send(client, &reply);
}

static void handle_events(struct control_client *client, const Sbeet__Control__Request *request) {
	static const char *const refusals[] = {
		[SUBSCRIBER_E_TOO_MANY] =
			"sbeetd has as many subscribers to events as it can serve",
		[SUBSCRIBER_E_QUOTA] =
			"this user has as many subscriptions to events as "
			"'subscriptions' in sbeetd.conf allows",
		[SUBSCRIBER_E_TOO_FAST] =
			"this user's connections have just cost sbeetd too much "
			"time; try again in a second",
	};
	int r;

	if (client->subscriber) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_STATE,
				     "this connection receives events already");
		return;
	}
	r = subscriber_new(&client->subscriber, &client->control->subscribers, client, request->id);
	if (r) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				     r < 0 ? "no memory left to tell of events" : refusals[r]);
	}
}

static void (*const handlers[])(struct control_client *, const Sbeet__Control__Request *) = {
	[SBEET__CONTROL__REQUEST__BODY_HELLO] = handle_hello,
	[SBEET__CONTROL__REQUEST__BODY_STATUS] = control_status,
	[SBEET__CONTROL__REQUEST__BODY_POLICY] = handle_policy,
	[SBEET__CONTROL__REQUEST__BODY_EXPLAIN] = control_explain,
	[SBEET__CONTROL__REQUEST__BODY_EVENTS] = handle_events,
	[SBEET__CONTROL__REQUEST__BODY_CONFIG] = admin_config,
	[SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE] = admin_change_task,
	[SBEET__CONTROL__REQUEST__BODY_SESSION_KILL] = ending_kill_session,
	[SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN] = admin_drain_gpu,
	[SBEET__CONTROL__REQUEST__BODY_KERNELS] = control_kernels,
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
		client->control->totals->protocol_errors++;
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
	pace_settle(&client->pace, client->control->now());
	hear(client);
}

/* One question an event: an answer is long. */
static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;
	nsec_t began = client->control->now();
	int r = packet_receive(fd, client->control->buffer, NULL);

	if (r > 0) {
		handle_packet(client, client->control->buffer, (size_t)r);
		control_client_answered(client, began);
	} else if (r == -EMSGSIZE) {
		client->control->totals->protocol_errors++;
		client->faulty = true;
		control_client_error(client, 0, SBEET__ERROR_CODE__ERROR_CODE_INVALID,
				     "a packet is longer than 65536 bytes");
		control_client_end(client);
	} else if (r != -EAGAIN) {
		control_client_end(client);
	}
}

static void free_client(struct control_client *client) {
	while (!STAILQ_EMPTY(&client->unsent)) {
		drop_unsent(client);
	}
	if (client->fd >= 0) {
		packet_close(client->fd);
	}
	admission_release(client->user);
	free(client);
}

/* @a: entered; on success its charges are the client's. */
static int make(struct control_client **ret, struct control *control, const struct admission *a) {
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client) {
		return -ENOMEM;
	}
	client->control = control;
	client->user = a->user;
	client->cred = a->peer.cred;
	client->fd = -1;
	STAILQ_INIT(&client->unsent);
	LIST_INIT(&client->endings);
	answer_init(client);
	*ret = client;
	return 0;
}

/* At once, or after the time that it has to wait. */
static int listen_to(struct control_client *client, int fd, const struct admission *a) {
	struct event_base *base = client->control->base;
	struct timeval t = util_timeval(a->wait);

	event_assign(&client->readable, base, fd, EV_READ | EV_PERSIST, on_readable, client);
	event_assign(&client->writable, base, fd, EV_WRITE, on_writable, client);
	event_assign(&client->resumed, base, -1, EV_TIMEOUT, on_resumed, client);
	if ((a->wait > 0 ? event_add(&client->resumed, &t) : event_add(&client->readable, NULL)) <
	    0) {
		return -ENOMEM;
	}
	client->at_gate = a->at_gate;
	client->fd = fd;
	return 0;
}

int control_client_new(struct control *control, int fd) {
	struct control_client *client;
	struct admission a;
	int r = admission_enter(&a, control->sessions, fd, ADMISSION_CONTROL);

	if (r != 0) {
		return r == ADMISSION_E_REFUSED ? CONTROL_E_REFUSED : r;
	}
	r = make(&client, control, &a);
	if (r < 0) {
		admission_release(a.user);
	} else {
		r = listen_to(client, fd, &a);
		if (r < 0) {
			free_client(client);
		}
	}
	if (r == 0) {
		TAILQ_INSERT_TAIL(&control->clients, client, link);
	} else if (a.at_gate) {
		gate_waited(control->gate, &a.peer.cred);
	}
	return r;
}

void control_init(struct control *control) {
	TAILQ_INIT(&control->clients);
	TAILQ_INIT(&control->ended);
	TAILQ_INIT(&control->answers);
	subscribers_init(&control->subscribers, control->watched, control->report, control->late,
			 control->totals);
}

void control_deinit(struct control *control) {
	subscribers_deinit(&control->subscribers);
	control->task_save = admin_task_save_free(control->task_save);
}

void control_session_gone(struct control *control, const struct session *s) {
	answers_session_gone(&control->answers, s);
}

void control_job_gone(struct control *control, const struct job *job) {
	answers_job_gone(&control->answers, job);
}

void control_reap(struct control *control) {
	struct control_client *client;

	while ((client = TAILQ_FIRST(&control->ended))) {
		TAILQ_REMOVE(&control->ended, client, link);
		free_client(client);
	}
}

void control_stop(struct control *control) {
	struct control_client *client;

	while ((client = TAILQ_FIRST(&control->clients))) {
		control_client_end(client);
	}
}
