/*
 * control.c: requests and their handlers. See control.h.
 */
#include "daemon/control/control.h"

#include <errno.h>

#include "daemon/base/log.h"
#include "daemon/control/admin-policy.h"
#include "daemon/control/admin-task.h"
#include "daemon/control/admin.h"
#include "daemon/control/answer.h"
#include "daemon/control/control-allocation.h"
#include "daemon/control/control-explain.h"
#include "daemon/control/control-history.h"
#include "daemon/control/control-kernels.h"
#include "daemon/control/control-status.h"
#include "daemon/control/ending.h"
#include "daemon/control/subscriber.h"
#include "daemon/engine/engine.h"
#include "daemon/watch/report.h"
#include "proto/packet.h"
#include "proto/validate.h"

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
	r = subscriber_new(&client->subscriber, client->control->subscribers, client, request->id,
			   request->events->ops);
	if (r) {
		control_client_error(client, request->id, SBEET__ERROR_CODE__ERROR_CODE_QUOTA,
				     r < 0 ? "no memory left to tell of events" : refusals[r]);
	}
}

static void (*const handlers[])(struct control_client *, const Sbeet__Control__Request *) = {
	[SBEET__CONTROL__REQUEST__BODY_HELLO] = handle_hello,
	[SBEET__CONTROL__REQUEST__BODY_STATUS] = control_status,
	[SBEET__CONTROL__REQUEST__BODY_POLICY] = admin_policy,
	[SBEET__CONTROL__REQUEST__BODY_EXPLAIN] = control_explain,
	[SBEET__CONTROL__REQUEST__BODY_EVENTS] = handle_events,
	[SBEET__CONTROL__REQUEST__BODY_CONFIG] = admin_config,
	[SBEET__CONTROL__REQUEST__BODY_TASK_CHANGE] = admin_change_task,
	[SBEET__CONTROL__REQUEST__BODY_SESSION_KILL] = ending_kill_session,
	[SBEET__CONTROL__REQUEST__BODY_GPU_DRAIN] = admin_drain_gpu,
	[SBEET__CONTROL__REQUEST__BODY_KERNELS] = control_kernels,
	[SBEET__CONTROL__REQUEST__BODY_HISTORY] = control_history,
	[SBEET__CONTROL__REQUEST__BODY_ALLOCATION_CHANGE] = control_allocation_change,
};

static void on_heard(struct control_client *client, size_t n) {
	nsec_t began = client->control->now();
	const Sbeet__Control__Request *request;
	ProtobufCMessage *m = NULL;
	char why[256] = "a packet is no protobuf message, or too large";
	int r = packet_unpack(&sbeet__control__request__descriptor, client->control->buffer, n, &m);

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
		control_client_fail(client, request ? request->id : 0, why);
	}
	packet_free(m);
	answer_paced(client, began);
}

static void on_idle(struct control_client *client) {
	answer_resume(client);
	if (client->subscriber) {
		subscriber_resume(client->subscriber);
	}
}

static void on_gone(struct control_client *client) {
	answer_deinit(client);
	client->subscriber = subscriber_free(client->subscriber);
	ending_client_gone(client);
	admin_task_client_gone(client);
}

void control_init(struct control *control) {
	TAILQ_INIT(&control->clients);
	TAILQ_INIT(&control->ended);
	TAILQ_INIT(&control->answers);
	LIST_INIT(&control->queues);
	control->heard = on_heard;
	control->more = answer_next;
	control->idle = on_idle;
	control->gone = on_gone;
}

void control_deinit(struct control *control) {
	control->task_save = admin_task_save_free(control->task_save);
}

int control_accept(struct control *control, int fd) {
	struct control_client *client;
	int r = control_client_new(&client, control, fd);

	if (r == 0) {
		answer_init(client);
	}
	return r;
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
		control_client_free(client);
	}
}

void control_stop(struct control *control) {
	struct control_client *client;

	while ((client = TAILQ_FIRST(&control->clients))) {
		control_client_end(client);
	}
}
