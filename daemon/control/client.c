/*
 * client.c: a control connection: what is heard, and what is sent when. See client.h.
 */
#include "daemon/control/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/client-socket.h"
#include "daemon/base/gate.h"
#include "daemon/base/log.h"
#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "daemon/session/admission.h"
#include "daemon/watch/watched.h"
#include "proto/packet.h"

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
		control_queue_remove(client->queue, &client->turn);
		client->control->gone(client);
		leave_gate(client);
		gate_leave(client->control->gate, &client->cred, client->n_told, client->faulty,
			   now);
		quota_work(client->user, 1, 0, now);
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
	int r = 0;

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
		r = event_add(&client->writable, &unread_max) < 0 ? -ENOMEM : 0;
	}
	STAILQ_INSERT_TAIL(&client->unsent, packet, link);
	return r;
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
	if (control_client_is_idle(client) && !client->answer.step && !client->turn.waits &&
	    !event_pending(&client->resumed, EV_TIMEOUT, NULL) &&
	    event_add(&client->readable, NULL) < 0) {
		give_up(client, strerror(ENOMEM));
	}
}

void control_client_answered(struct control_client *client) {
	if (client->answer.step) {
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
			if ((errno != EAGAIN && errno != EINTR) ||
			    event_add(&client->writable, &unread_max) < 0) {
				give_up(client, strerror(errno));
			}
			return;
		}
		drop_unsent(client);
	}
	hear(client);
	client->control->idle(client);
}

bool control_client_is_idle(const struct control_client *client) {
	return !client->ended && STAILQ_EMPTY(&client->unsent);
}

/* Without a time limit: nothing is kept for it. */
void control_client_wait_writable(struct control_client *client) {
	if (event_add(&client->writable, NULL) < 0) {
		give_up(client, strerror(ENOMEM));
	}
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

void control_client_fail(struct control_client *client, uint32_t id, const char *why) {
	client->control->totals->protocol_errors++;
	client->faulty = true;
	control_client_error(client, id, SBEET__ERROR_CODE__ERROR_CODE_INVALID, why);
	control_client_end(client);
}

static void on_resumed(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;

	leave_gate(client);
	hear(client);
}

/* One question: an answer is long. */
static void receive(struct control_client *client) {
	int r = client_socket_receive(client->fd, quota_user_uid(client->user),
				      client->control->buffer, NULL);

	if (r > 0 && !client->has_asked) {
		client->has_asked = true;
		client->power = client->cred.uid == 0 && peer_has_power(client->fd, &client->cred);
	}
	if (r > 0) {
		client->control->heard(client, (size_t)r);
	} else if (r == -EMSGSIZE) {
		control_client_fail(client, 0, "a packet is longer than 65536 bytes");
	} else if (r != -EAGAIN) {
		control_client_end(client);
	} else {
		hear(client);
	}
}

/* And nothing is left to be read. */
static bool has_hung_up(int fd) {
	char c;

	return recv(fd, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

static void on_readable(evutil_socket_t fd, short what, void *userdata) {
	struct control_client *client = userdata;

	if (control_queue_is_free(client->queue) || has_hung_up(fd)) {
		receive(client);
	} else {
		event_del(&client->readable);
		control_queue_add(client->queue, &client->turn);
	}
}

static void on_turn(void *userdata) {
	struct control_client *client = userdata;

	if (client->answer.step) {
		client->control->more(client);
	} else {
		receive(client);
	}
}

void control_client_free(struct control_client *client) {
	while (!STAILQ_EMPTY(&client->unsent)) {
		drop_unsent(client);
	}
	if (client->fd >= 0) {
		client_socket_hang_up(client->fd);
	}
	control_queue_unref(client->queue);
	admission_release(client->user);
	free(client);
}

/* @a: entered; on success its charges are the client's. */
static int make(struct control_client **ret, struct control *control, const struct admission *a) {
	struct control_client *client = calloc(1, sizeof(*client));

	if (!client || control_queue_ref(&client->queue, &control->queues, control->base, a->user,
					 control->now) < 0) {
		free(client);
		return -ENOMEM;
	}
	client->control = control;
	client->turn.come = on_turn;
	client->turn.userdata = client;
	client->user = a->user;
	client->cred = a->peer.cred;
	client->fd = -1;
	STAILQ_INIT(&client->unsent);
	LIST_INIT(&client->endings);
	*ret = client;
	return 0;
}

/* At once, or after the time that it has to wait. */
static int listen_to(struct control_client *client, int fd, const struct admission *a) {
	struct event_base *base = client->control->base;

	event_assign(&client->readable, base, fd, EV_READ | EV_PERSIST, on_readable, client);
	event_assign(&client->writable, base, fd, EV_WRITE, on_writable, client);
	event_assign(&client->resumed, base, -1, EV_TIMEOUT, on_resumed, client);
	if (admission_listen(a, &client->readable, &client->resumed) < 0) {
		return -ENOMEM;
	}
	client->at_gate = a->at_gate;
	client->fd = fd;
	return 0;
}

int control_client_new(struct control_client **ret, struct control *control, int fd) {
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
			control_client_free(client);
		}
	}
	if (r == 0) {
		TAILQ_INSERT_TAIL(&control->clients, client, link);
		*ret = client;
	} else if (a.at_gate) {
		gate_waited(control->gate, &a.peer.cred);
	}
	return r;
}
