/*
 * control.c: see control.h.
 */
#include "client/live/control.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/base/ctl.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "proto/validate.h"

#define TIMEOUT_DEFAULT_NS (5 * NSEC_PER_SEC)

/* Packets of one answer: 256 MiB, far above what any number of sessions allowed comes to. */
#define ANSWER_PACKETS_MAX 4096

struct control {
	int fd; /* owned */
	uint32_t last_id;
	nsec_t timeout;
	char path[PROTO_PATH_MAX];
	uint8_t buffer[PROTO_PACKET_MAX];
};

static int fail(char *error, size_t size, int code, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int fail(char *error, size_t size, int code, const char *format, ...) {
	va_list args;

	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
	return code;
}

int control_fail_connect(const char *path, int r, char *error, size_t size) {
	switch (-r) {
	case ENOENT:
		return fail(error, size, CTL_EXIT_NOT_RUNNING,
			    "cannot reach sbeetd at %s: no such socket; start it with 'systemctl "
			    "start sbeetd', or run 'sbeetd' yourself",
			    path);
	case ECONNREFUSED:
		return fail(error, size, CTL_EXIT_NOT_RUNNING,
			    "cannot reach sbeetd at %s: nothing is listening there; start it "
			    "with 'systemctl start sbeetd', or run 'sbeetd' yourself",
			    path);
	case EACCES:
	case EPERM:
		return fail(error, size, CTL_EXIT_DENIED,
			    "cannot reach sbeetd at %s: permission denied; members of group "
			    "'sbeet' may use the service: 'sudo usermod -aG sbeet USER', then log "
			    "in again",
			    path);
	default:
		return fail(error, size, CTL_EXIT_FAILED, "cannot reach sbeetd at %s: %s", path,
			    strerror(-r));
	}
}

static int fail_transfer(const struct control *c, int r, char *error, size_t size) {
	char limit[32];

	switch (-r) {
	case EAGAIN:
		units_print_nsec(c->timeout, limit, sizeof(limit));
		return fail(error, size, CTL_EXIT_TIMEOUT,
			    "sbeetd at %s did not answer within %s; see its log ('journalctl -u "
			    "sbeetd'), or wait longer with SBEET_TIMEOUT",
			    c->path, limit);
	case EPIPE:
	case ECONNRESET:
		return fail(error, size, CTL_EXIT_NOT_RUNNING,
			    "sbeetd at %s closed the connection: it is stopping, or has died; see "
			    "'journalctl -u sbeetd'",
			    c->path);
	default:
		return fail(error, size, CTL_EXIT_FAILED, "cannot talk to sbeetd at %s: %s",
			    c->path, strerror(-r));
	}
}

/* Sbeetd's own words, with the exit code that fits. */
static int fail_remote(const Sbeet__Error *e, char *error, size_t size) {
	int code = CTL_EXIT_FAILED;

	if (e->code == SBEET__ERROR_CODE__ERROR_CODE_SHUTDOWN) {
		code = CTL_EXIT_NOT_RUNNING;
	} else if (e->code == SBEET__ERROR_CODE__ERROR_CODE_NO_GPU) {
		code = CTL_EXIT_NO_OBJECT;
	} else if (e->code == SBEET__ERROR_CODE__ERROR_CODE_NO_POLICY) {
		code = CTL_EXIT_NO_OBJECT;
	} else if (e->code == SBEET__ERROR_CODE__ERROR_CODE_NO_OBJECT) {
		code = CTL_EXIT_NO_OBJECT;
	} else if (e->code == SBEET__ERROR_CODE__ERROR_CODE_DENIED) {
		code = CTL_EXIT_DENIED;
	} else if (e->code == SBEET__ERROR_CODE__ERROR_CODE_UNKNOWN) {
		return fail(error, size, code,
			    "sbeetd does not know this request (%s): it is older than this "
			    "sbeetctl; install the same version of both",
			    e->text);
	}
	return fail(error, size, code, "sbeetd refuses: %s", e->text);
}

static int read_timeout(nsec_t *ret) {
	const char *text = getenv("SBEET_TIMEOUT");
	nsec_t t = TIMEOUT_DEFAULT_NS;

	if (text && *text && (units_parse_nsec(text, &t) < 0 || t == 0)) {
		return -EINVAL;
	}
	*ret = t;
	return 0;
}

/* Both directions: a peer that stops reading must not stop us either. */
static int set_timeout(const struct control *c) {
	struct timeval tv = nsec_timeval(c->timeout ? c->timeout : 1); /* 0: for ever */

	if (setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) < 0 ||
	    setsockopt(c->fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)) < 0) {
		return -errno;
	}
	return 0;
}

static int receive(struct control *c, Sbeet__Control__Reply **ret, char *error, size_t size) {
	ProtobufCMessage *message;
	Sbeet__Control__Reply *reply;
	char why[256];
	int n, r;

	n = packet_receive(c->fd, c->buffer, NULL);
	if (n <= 0) {
		return fail_transfer(c, n == 0 ? -EPIPE : n, error, size);
	}
	r = packet_unpack(&sbeet__control__reply__descriptor, c->buffer, (size_t)n, &message);
	if (r < 0) {
		return fail(error, size, CTL_EXIT_FAILED,
			    "sbeetd at %s sent a packet that does not parse: %s", c->path,
			    strerror(-r));
	}
	reply = (Sbeet__Control__Reply *)message;
	r = validate_control_reply(reply, why, sizeof(why));
	if (r < 0) {
		packet_free(message);
		return fail(error, size, CTL_EXIT_FAILED,
			    "sbeetd at %s sent an answer that this sbeetctl does not understand "
			    "(%s); install the same version of both",
			    c->path, r == -ENOMSG ? "unknown message" : why);
	}
	*ret = reply;
	return 0;
}

static int append(struct control_answer *a, Sbeet__Control__Reply *reply) {
	Sbeet__Control__Reply **replies;

	if (a->n_replies == ANSWER_PACKETS_MAX) {
		return -E2BIG;
	}
	replies = reallocarray(a->replies, a->n_replies + 1, sizeof(*replies));
	if (!replies) {
		return -ENOMEM;
	}
	replies[a->n_replies++] = reply;
	a->replies = replies;
	return 0;
}

/* One packet of the answer to request @id; it goes into @a. */
static int collect(struct control *c, uint32_t id, struct control_answer *a, bool *ret_last,
		   char *error, size_t size) {
	Sbeet__Control__Reply *reply;
	int r;

	r = receive(c, &reply, error, size);
	if (r != 0) {
		return r;
	}
	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_ERROR) {
		r = fail_remote(reply->error, error, size);
	} else if (reply->id != id) {
		r = fail(error, size, CTL_EXIT_FAILED,
			 "sbeetd at %s answered request %u when asked for %u", c->path, reply->id,
			 id);
	} else {
		*ret_last = reply->last;
		r = append(a, reply);
		if (r == 0) {
			return 0;
		}
		r = fail(error, size, CTL_EXIT_FAILED, "cannot store sbeetd's answer: %s",
			 strerror(-r));
	}
	packet_free(&reply->base);
	return r;
}

int control_call(struct control *c, Sbeet__Control__Request *request, struct control_answer *ret,
		 char *error, size_t error_size) {
	struct control_answer answer = {0};
	bool last = false;
	int r;

	request->id = ++c->last_id;
	r = packet_send(c->fd, &request->base, -1);
	if (r < 0) {
		return fail_transfer(c, r, error, error_size);
	}
	while (!last) {
		r = collect(c, request->id, &answer, &last, error, error_size);
		if (r != 0) {
			control_answer_deinit(&answer);
			return r;
		}
	}
	*ret = answer;
	return 0;
}

void control_answer_deinit(struct control_answer *a) {
	for (size_t i = 0; i < a->n_replies; i++) {
		packet_free(&a->replies[i]->base);
	}
	free(a->replies);
	*a = (struct control_answer){0};
}

int control_send(struct control *c, Sbeet__Control__Request *request, char *error,
		 size_t error_size) {
	int r;

	request->id = ++c->last_id;
	r = packet_send(c->fd, &request->base, -1);
	return r < 0 ? fail_transfer(c, r, error, error_size) : 0;
}

int control_next(struct control *c, nsec_t timeout, Sbeet__Control__Reply **ret, char *error,
		 size_t error_size) {
	struct pollfd p = {.fd = c->fd, .events = POLLIN};
	struct timespec limit = nsec_timespec(timeout);
	Sbeet__Control__Reply *reply;
	int r;

	r = ppoll(&p, 1, timeout == CONTROL_FOREVER ? NULL : &limit, NULL);
	if (r == 0 || (r < 0 && errno == EINTR)) {
		*ret = NULL;
		return 0;
	}
	if (r < 0) {
		return fail_transfer(c, -errno, error, error_size);
	}
	r = receive(c, &reply, error, error_size);
	if (r != 0) {
		return r;
	}
	if (reply->body_case == SBEET__CONTROL__REPLY__BODY_ERROR) {
		r = fail_remote(reply->error, error, error_size);
		packet_free(&reply->base);
		return r;
	}
	*ret = reply;
	return 0;
}

static int say_hello(struct control *c, char *error, size_t size) {
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Hello hello = SBEET__CONTROL__HELLO__INIT;
	struct control_answer answer;
	const Sbeet__Control__Reply *reply;
	int r;

	hello.version = PROTO_VERSION;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_HELLO;
	request.hello = &hello;
	r = control_call(c, &request, &answer, error, size);
	if (r != 0) {
		return r;
	}
	reply = answer.replies[0];
	if (reply->body_case != SBEET__CONTROL__REPLY__BODY_HELLO) {
		r = fail(error, size, CTL_EXIT_FAILED, "sbeetd at %s did not say hello", c->path);
	} else if (reply->hello->version != PROTO_VERSION) {
		r = fail(error, size, CTL_EXIT_FAILED,
			 "sbeetd at %s speaks protocol %u, this sbeetctl %d; install the same "
			 "version of both",
			 c->path, reply->hello->version, PROTO_VERSION);
	}
	control_answer_deinit(&answer);
	return r;
}

int control_open(struct control **ret, char *error, size_t error_size) {
	struct control *c = malloc(sizeof(*c));
	int r;

	if (!c) {
		return fail(error, error_size, CTL_EXIT_FAILED, "out of memory");
	}
	c->fd = -1;
	c->last_id = 0;
	if (read_timeout(&c->timeout) < 0) {
		control_close(c);
		return fail(error, error_size, CTL_EXIT_USAGE,
			    "bad SBEET_TIMEOUT: expected a time above 0 with a unit, such as 2s");
	}
	r = packet_socket_path("control.sock", c->path, sizeof(c->path));
	if (r < 0) {
		control_close(c);
		return fail(error, error_size, CTL_EXIT_FAILED,
			    "cannot name sbeetd's socket: %s (see SBEET_RUNTIME_DIR)",
			    strerror(-r));
	}
	c->fd = packet_connect(c->path, c->timeout);
	if (c->fd < 0) {
		r = c->fd == -EAGAIN ? fail_transfer(c, c->fd, error, error_size)
				     : control_fail_connect(c->path, c->fd, error, error_size);
		control_close(c);
		return r;
	}
	r = set_timeout(c);
	r = r < 0 ? fail_transfer(c, r, error, error_size) : say_hello(c, error, error_size);
	if (r != 0) {
		control_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

struct control *control_close(struct control *c) {
	if (!c) {
		return NULL;
	}
	if (c->fd >= 0) {
		close(c->fd);
	}
	free(c);
	return NULL;
}

int control_change(Sbeet__Control__Request *request) {
	struct control_answer answer;
	struct control *control;
	char error[2048];
	int r = control_open(&control, error, sizeof(error));

	if (r == 0) {
		r = control_call(control, request, &answer, error, sizeof(error));
		if (r == 0) {
			control_answer_deinit(&answer);
		}
		control_close(control);
	}
	if (r != 0) {
		ctl_error("%s", error);
	}
	return r;
}
