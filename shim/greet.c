/*
 * greet.c: see greet.h.
 */
#include "shim/greet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/enforcement.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/spin.h"
#include "proto/units.h"
#include "proto/validate.h"
#include "shim/base/env.h"
#include "shim/base/high-fd.h"
#include "shim/base/hot.h"
#include "shim/base/log.h"
#include "shim/base/visible.h"
#include "shim/enforce/dependent.h"
#include "shim/enforce/enforce.h"
#include "shim/enforce/green.h"
#include "shim/held.h"
#include "shim/keeper.h"
#include "shim/place.h"
#include "shim/terms.h"

/* A daemon answers Hello in microseconds; one that is stopped must not hold up a program. */
#define WELCOME_TIMEOUT_NS (2 * NSEC_PER_SEC)

#define LINGER_DEFAULT_NS (100 * NSEC_PER_USEC)

HOT_DATA static _Atomic nsec_t linger = LINGER_DEFAULT_NS;
static _Atomic nsec_t spin;
static _Atomic bool answers_pings, daemon_counts, daemon_cuts;

/* Of the last Welcome: it tells sbeetd that the next connection is of the same program. */
static uint8_t secret[PROTO_SECRET_BYTES];
static size_t n_secret; /* 0: the daemon gave none */

/* The MPS that CUDA was initialised with: what the first Welcome said; "/": none. Empty: there was
 * no such Welcome. */
static char mps_used[PROTO_PATH_MAX];

/* Why the last greet() failed; for greet_complain(). */
static int failure;			 /* negative errno; 0: it did not */
static char refusal[PROTO_TEXT_MAX + 1]; /* sbeetd's reason; empty: it did not refuse */
static Sbeet__ErrorCode refusal_code;

static int open_socket(void) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	const char *path = env_get()->socket;
	int fd, high, r;

	if (path) {
		if (strlen(path) >= sizeof(address.sun_path)) {
			return -ENAMETOOLONG;
		}
		strcpy(address.sun_path, path);
	} else {
		r = packet_socket_path("shim.sock", address.sun_path, sizeof(address.sun_path));
		if (r < 0) {
			return r;
		}
	}
	/* Not blocking until connected: a daemon that no longer accepts would hold us up here. */
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		return -errno;
	}
	high = high_fd_dup(fd);
	if (high >= 0) {
		close(fd);
		fd = high;
	}
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    fcntl(fd, F_SETFL, 0) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	return fd;
}

static void set_timeout(int fd, int option, nsec_t t) {
	struct timeval tv = nsec_timeval(t);

	setsockopt(fd, SOL_SOCKET, option, &tv, sizeof(tv));
}

/* Empty where it is not known, or no text. */
static const char *find_executable(char path[static PROTO_PATH_MAX]) {
	ssize_t n = readlink("/proc/self/exe", path, PROTO_PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return validate_text(path, PROTO_PATH_MAX) == 0 ? path : "";
}

/* @fallback: where the environment says nothing. */
static const char *mps_of_environment(const char *fallback) {
	const char *path = getenv("CUDA_MPS_PIPE_DIRECTORY");

	if (!path) {
		return fallback;
	}
	return *path == '/' && validate_text(path, PROTO_PATH_MAX) == 0 ? path : "/";
}

/* Before CUDA is initialised only its environment is known; without a Welcome then, CUDA has looked
 * in its default place. */
static void tell_mps(Sbeet__Hello *hello, bool initial) {
	const char *used = *mps_used ? mps_used
			   : initial ? mps_of_environment("")
				     : mps_of_environment("/tmp/nvidia-mps");

	hello->initialised = !initial || *mps_used;
	hello->mps_pipe_directory = (char *)used;
}

static int send_hello(int fd, bool initial) {
	const struct task_spec *spec = &env_get()->task;
	Sbeet__TaskSpec task = SBEET__TASK_SPEC__INIT;
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	char program[PROTO_NAME_MAX + 1], path[PROTO_PATH_MAX];
	const char *name = program_invocation_short_name;
	char ping[] = PROTO_FEATURE_PING, keeps[] = PROTO_FEATURE_SECRET;
	char counts[] = PROTO_FEATURE_COUNTS, choose[] = PROTO_FEATURE_CHOOSE_GPU;
	char terms[] = PROTO_FEATURE_TERMS, copies[] = PROTO_FEATURE_COPIES;
	char stop[] = PROTO_FEATURE_STOP, preempt[] = PROTO_FEATURE_PREEMPT;
	char level[] = PROTO_FEATURE_LEVEL, any[] = PROTO_FEATURE_ANY_GPU;
	char thread[] = PROTO_FEATURE_THREAD;
	char *features[11] = {ping, keeps, counts, stop, level, thread};
	size_t n_features = 6;

	/* For display. Names that the protocol does not take are said as "program". */
	strncpy(program, name, PROTO_NAME_MAX);
	program[PROTO_NAME_MAX] = '\0';
	task_spec_to_wire(spec, &task);
	hello.version = PROTO_VERSION;
	if (initial && !visible_is_set()) {
		features[n_features++] = choose;
		if (env_get()->any_gpu) {
			features[n_features++] = any;
		}
	}
	if (!env_get()->whole) {
		features[n_features++] = terms;
		features[n_features++] = copies;
		features[n_features++] = preempt;
	}
	hello.features = features;
	hello.n_features = n_features;
	hello.program = validate_name(program) == 0 ? program : (char *)"program";
	hello.run = (char *)(env_get()->run ? env_get()->run : hello.run);
	hello.task = &task;
	hello.scope = spec->scope;
	hello.enforcement_mask = enforce_mask();
	hello.shim_version = (char *)SBEET_VERSION;
	hello.executable = (char *)find_executable(path);
	hello.secret.data = secret;
	hello.secret.len = n_secret;
	tell_mps(&hello, initial);
	held_declare(&hello, nsec_now());
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = &hello;
	return packet_send(fd, &m.base, -1);
}

static void set_variable(const char *name, const char *value) {
	if (*value && !getenv(name)) {
		setenv(name, value, 0);
	}
}

static bool has_feature(const Sbeet__Welcome *welcome, const char *name) {
	return packet_has_feature(welcome->features, welcome->n_features, name);
}

static void note_features(const Sbeet__Welcome *welcome) {
	atomic_store(&answers_pings, has_feature(welcome, PROTO_FEATURE_PING));
	atomic_store(&daemon_counts, has_feature(welcome, PROTO_FEATURE_COUNTS));
	atomic_store(&daemon_cuts, has_feature(welcome, "green"));
	dependent_allow(has_feature(welcome, PROTO_FEATURE_DEPENDENT));
}

static void heed(const Sbeet__Welcome *welcome, bool initial) {
	if (initial) {
		set_variable("CUDA_MPS_PIPE_DIRECTORY", welcome->mps_pipe_directory);
		set_variable("CUDA_MPS_LOG_DIRECTORY", welcome->mps_log_directory);
		if (!*mps_used) {
			snprintf(mps_used, sizeof(mps_used), "%s",
				 *welcome->mps_pipe_directory ? welcome->mps_pipe_directory : "/");
		}
		visible_choose(&welcome->gpu_uuid);
	}
	n_secret = welcome->secret.len; /* 0 or all of it */
	if (n_secret > 0) {
		memcpy(secret, welcome->secret.data, n_secret);
	}
	atomic_store(&linger, welcome->linger_ns);
	atomic_store(&spin, spin_allowed(welcome->spin_ns));
	note_features(welcome);
	if (enforce_mask() & ENFORCEMENT_BIT(GREEN) && greet_daemon_cuts()) {
		place_activate();
	}
	for (size_t i = 0; i < welcome->n_rows; i++) {
		const Sbeet__GreenRows *rows = welcome->rows[i];

		green_expect(&(struct green_rows){.uuid = rows->gpu_uuid.data,
						  .group = rows->group,
						  .last_group = rows->last_group,
						  .anywhere = rows->anywhere});
	}
	if (!has_feature(welcome, PROTO_FEATURE_RESUME)) {
		held_clear(); /* an older one, which knows nothing of them */
	}
	log_line(LOG_LEVEL_INFO, "Session %llu of task '%s'", (unsigned long long)welcome->session,
		 welcome->task);
	if (*welcome->notice) {
		log_once(LOG_LEVEL_WARN, "%s", welcome->notice);
	}
}

/* @page_fd: the descriptor that came along, which is closed; -1: none. */
static void heed_terms(const Sbeet__Welcome *welcome, int page_fd) {
	if (!has_feature(welcome, PROTO_FEATURE_TERMS) && page_fd >= 0) {
		close(page_fd); /* what is that? */
		page_fd = -1;
	}
	terms_take(page_fd);
	if (terms_held() && enforce_mask() & ENFORCEMENT_BIT(GREEN)) {
		place_activate();
	}
}

void greet_heed_again(const Sbeet__Welcome *welcome, int page_fd) {
	note_features(welcome);
	heed_terms(welcome, page_fd);
}

static int read_welcome(int fd, uint8_t *buffer, bool initial) {
	ProtobufCMessage *base = NULL;
	const Sbeet__ToShim *m;
	char why[256] = "it does not parse";
	int n, r, page_fd = -1;

	n = packet_receive(fd, buffer, &page_fd);
	r = n > 0    ? packet_unpack(&sbeet__to_shim__descriptor, buffer, (size_t)n, &base)
	    : n == 0 ? -ECONNRESET
		     : n;
	m = (const Sbeet__ToShim *)base;
	if (r == 0) {
		r = validate_to_shim(m, why, sizeof(why));
	}
	if (r == 0 && m->body_case == SBEET__TO_SHIM__BODY_WELCOME) {
		heed(m->welcome, initial);
		heed_terms(m->welcome, page_fd);
		page_fd = -1;
	} else if (r == 0 && m->body_case == SBEET__TO_SHIM__BODY_ERROR) {
		snprintf(refusal, sizeof(refusal), "%s", m->error->text);
		refusal_code = m->error->code;
		r = -ECONNREFUSED;
	} else {
		log_line(LOG_LEVEL_DEBUG, "Unexpected answer to Hello from sbeetd (%s)",
			 r < 0 ? why : "not a Welcome");
		r = -EPROTO;
	}
	if (page_fd >= 0) {
		close(page_fd);
	}
	packet_free(base);
	return r;
}

/* Not SO_RCVTIMEO, which would begin anew with each signal that the program handles. */
static int wait_for_answer(int fd) {
	nsec_t now = nsec_now(), end = now + WELCOME_TIMEOUT_NS;
	struct pollfd p = {.fd = fd, .events = POLLIN};
	struct timespec left;
	int r;

	do {
		left = nsec_timespec(now < end ? end - now : 0);
		r = ppoll(&p, 1, &left, NULL);
		now = nsec_now();
	} while (r < 0 && errno == EINTR);
	return r > 0 ? 0 : r == 0 ? -EAGAIN : -errno;
}

static int handshake(int fd, uint8_t *buffer, bool initial) {
	int r;

	set_timeout(fd, SO_SNDTIMEO, WELCOME_TIMEOUT_NS);
	r = send_hello(fd, initial);
	/* A daemon that wants no more programs has said so by now and hears nothing. */
	if (r == 0 || r == -EPIPE) {
		r = wait_for_answer(fd);
		r = r == 0 ? read_welcome(fd, buffer, initial) : r;
	}
	return r == 0 && fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : r;
}

int greet(uint8_t *buffer, bool initial) {
	int fd, r;

	*refusal = '\0';
	fd = open_socket();
	r = fd < 0 ? fd : handshake(fd, buffer, initial);
	failure = r < 0 ? r : 0;
	if (r < 0) {
		if (fd >= 0) {
			close(fd);
		}
		return r;
	}
	return fd;
}

void greet_after_fork(void) {
	memset(secret, 0, sizeof(secret));
	n_secret = 0;
	mps_used[0] = '\0';
}

nsec_t greet_linger_ns(void) {
	return atomic_load_explicit(&linger, memory_order_relaxed);
}

bool greet_answers_pings(void) {
	return atomic_load_explicit(&answers_pings, memory_order_relaxed);
}

bool greet_daemon_counts(void) {
	return atomic_load_explicit(&daemon_counts, memory_order_relaxed);
}

bool greet_daemon_cuts(void) {
	return atomic_load_explicit(&daemon_cuts, memory_order_relaxed);
}

nsec_t greet_spin_ns(void) {
	return atomic_load_explicit(&spin, memory_order_relaxed);
}

void greet_note_refusal(const char *text, Sbeet__ErrorCode code) {
	snprintf(refusal, sizeof(refusal), "%s", text);
	refusal_code = code;
}

void greet_note_stuck(void) {
	failure = -EAGAIN;
	*refusal = '\0';
}

#define EXPLANATION_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) + sizeof(refusal) + 64)

/* What went wrong at @path, into @text. Return: what the user can do about it. */
static const char *explain_failure(const char *path, char *text, size_t size) {
	if (*refusal) {
		snprintf(text, size, "sbeetd at %s refuses this program: %s", path, refusal);
		switch (refusal_code) {
		case SBEET__ERROR_CODE__ERROR_CODE_INVALID:
			return "correct it and start the program again";
		case SBEET__ERROR_CODE__ERROR_CODE_QUOTA:
			return "'sbeetctl session list' shows who is connected";
		default:
			return "see its log, or 'systemctl status sbeetd'";
		}
	}
	switch (-failure) {
	case EACCES:
	case EPERM:
		snprintf(text, size, "Cannot connect to sbeetd at %s: permission denied", path);
		return "members of group 'sbeet' may use the service: 'sudo usermod -aG sbeet "
		       "USER', then log in again";
	case ENOENT:
	case ECONNREFUSED:
		snprintf(text, size, "No sbeetd at %s", path);
		return "start sbeetd; jobs are managed from then on";
	case EAGAIN:
		snprintf(text, size, "sbeetd at %s does not answer", path);
		return "jobs are managed once it does; see its log, or 'systemctl status sbeetd'";
	case 0:
	case ECONNRESET:
	case EPIPE:
		snprintf(text, size, "sbeetd at %s has ended the connection", path);
		return "jobs are managed once there is another; see its log, or 'systemctl status "
		       "sbeetd'";
	default:
		snprintf(text, size, "Cannot reach sbeetd at %s: %s", path, strerror(-failure));
		return "see its log, or 'systemctl status sbeetd'";
	}
}

/* Of the socket that was tried. Return: as explain_failure(). */
static const char *explain(char *text, size_t size) {
	char path[sizeof(((struct sockaddr_un *)0)->sun_path)] = "?";
	const struct env *env = env_get();

	if (!env->socket) {
		packet_socket_path("shim.sock", path, sizeof(path));
	}
	return explain_failure(env->socket ? env->socket : path, text, size);
}

void greet_wait(void) {
	char text[EXPLANATION_MAX], limit[32];
	const char *next = explain(text, sizeof(text));

	units_print_nsec(env_get()->require_ns, limit, sizeof(limit));
	log_once(LOG_LEVEL_WARN, "%s; waiting for it, %s at most (SBEET_REQUIRE; %s)", text, limit,
		 next);
}

void greet_complain(void) {
	const struct env *env = env_get();
	char text[EXPLANATION_MAX];
	const char *next = explain(text, sizeof(text));

	if (env->require) {
		log_once(LOG_LEVEL_ERROR,
			 "%s; SBEET_REQUIRE is set, so CUDA calls fail (%s, or unset "
			 "SBEET_REQUIRE to run unmanaged)",
			 text, next);
	} else {
		log_once(LOG_LEVEL_WARN, "%s; running unmanaged (%s)", text, next);
	}
}
