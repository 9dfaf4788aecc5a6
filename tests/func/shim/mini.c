/*
 * mini.c: see mini.h.
 */
#include "mini.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "proto/limits.h"
#include "proto/packet.h"

const char *const mini_plain[] = {NULL};
const char *const mini_by_thread[] = {"SBEET_SCOPE=thread", NULL};

int mini_setup(void **state) {
	static struct mini mini;

	mini_init(&mini);
	*state = &mini;
	return 0;
}

int mini_teardown(void **state) {
	mini_deinit(*state);
	return 0;
}

void mini_init(struct mini *m) {
	*m = (struct mini){
		.listener = -1,
		.to_guest = -1,
		.from_guest = -1,
		.terms_fd = -1,
		.linger_ns = MINI_LINGER_LONG_NS,
	};
	strcpy(m->directory, "/tmp/sbeet-shim-XXXXXX");
	assert_non_null(mkdtemp(m->directory));
	snprintf(m->socket, sizeof(m->socket), "%s/shim.sock", m->directory);
}

static void remove_in(struct mini *m, const char *name) {
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", m->directory, name);
	unlink(path);
}

void mini_end(struct mini *m) {
	int status = -1;

	close(m->to_guest); /* the guest reads the end and exits */
	if (m->guest > 0) {
		assert_int_equal(waitpid(m->guest, &status, 0), m->guest);
		assert_int_equal(status, 0);
	}
	close(m->from_guest);
	m->guest = 0;
	m->to_guest = m->from_guest = -1;
}

void mini_deinit(struct mini *m) {
	mini_end(m);
	mini_unlisten(m);
	mini_drop_page(m);
	remove_in(m, "stderr");
	assert_int_equal(rmdir(m->directory), 0);
}

void mini_make_page(struct mini *m, bool sealed) {
	mini_drop_page(m);
	m->terms_fd = memfd_create("terms", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	assert_true(m->terms_fd >= 0);
	assert_int_equal(ftruncate(m->terms_fd, sizeof(*m->terms)), 0);
	m->terms =
		mmap(NULL, sizeof(*m->terms), PROT_READ | PROT_WRITE, MAP_SHARED, m->terms_fd, 0);
	assert_ptr_not_equal(m->terms, MAP_FAILED);
	if (sealed) {
		assert_int_equal(
			fcntl(m->terms_fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
			0);
	}
	m->terms->magic = PROTO_TERMS_MAGIC;
	m->terms->version = PROTO_TERMS_VERSION;
	m->terms->n_gpus = 2;
	m->terms->gpu[0].uuid[0] = 2; /* as the fake driver's, the other way round */
	m->terms->gpu[1].uuid[0] = 1;
}

void mini_drop_page(struct mini *m) {
	if (m->terms) {
		munmap(m->terms, sizeof(*m->terms));
	}
	if (m->terms_fd >= 0) {
		close(m->terms_fd);
	}
	m->terms = NULL;
	m->terms_fd = -1;
}

void mini_steer(struct mini *m, int level) {
	struct terms t = {.steered = level >= 0, .level = (unsigned)level, .epoch = 1};

	atomic_store(&m->terms->gpu[1].word, terms_pack(&t));
}

uint64_t mini_began(struct mini *m, int fd, uint64_t *ret_launches) {
	Sbeet__ToDaemon *message = mini_expect(fd, SBEET__TO_DAEMON__BODY_BEGAN);
	const Sbeet__Began *began = message->began;
	uint64_t job = began->job;

	assert_int_equal(began->terms, atomic_load(&m->terms->gpu[1].word));
	assert_memory_equal(began->gpu_uuid.data, m->terms->gpu[1].uuid, PROTO_UUID_BYTES);
	assert_true(began->release_ns > 0 && began->release_ns <= began->began_ns);
	*ret_launches = 0;
	if (began->done) {
		assert_int_equal(began->done->job, job);
		assert_true(began->done->finished_ns >= began->began_ns);
		*ret_launches = began->done->launches;
	}
	mini_free(message);
	return job;
}

void mini_listen(struct mini *m) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	strcpy(address.sun_path, m->socket);
	m->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(m->listener >= 0);
	assert_int_equal(bind(m->listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(m->listener, 16), 0);
}

void mini_unlisten(struct mini *m) {
	if (m->listener >= 0) {
		close(m->listener);
		unlink(m->socket);
		m->listener = -1;
	}
}

static void run_guest(const char *const *options, const char *shim, const char *program) {
	const char *args[32] = {"sbeetctl", "run", "--shim", shim};
	size_t n = 4;

	while (*options && n < sizeof(args) / sizeof(*args) - 3) {
		args[n++] = *options++;
	}
	args[n++] = "--";
	args[n] = program;
	execv(getenv("SBEET_TEST_CTL"), (char **)(uintptr_t)args);
}

/* Never returns, and never comes back into the tests by cmocka's signal handlers. */
static void be_guest(struct mini *m, const char *shim, const char *program,
		     const char *const *environment, int in, int out) {
	static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
	char path[128], socket_variable[128];
	int error;

	for (size_t i = 0; i < sizeof(caught) / sizeof(*caught); i++) {
		signal(caught[i], SIG_DFL);
	}

	snprintf(path, sizeof(path), "%s/stderr", m->directory);
	error = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	snprintf(socket_variable, sizeof(socket_variable), "SBEET_SOCKET=%s", m->socket);
	putenv(socket_variable);
	for (; *environment; environment++) {
		putenv((char *)*environment);
	}
	dup2(in, STDIN_FILENO);
	dup2(out, STDOUT_FILENO);
	dup2(error, STDERR_FILENO);
	if (m->run) {
		run_guest(m->run, shim, program);
		_exit(127);
	}
	setenv("LD_PRELOAD", shim, 1);
	execl(program, "guest", NULL);
	_exit(127);
}

void mini_start(struct mini *m, const char *const *environment) {
	const char *shim = getenv("SBEET_TEST_SHIM"), *program = getenv("SBEET_TEST_GUEST");
	int in[2], out[2];

	assert_non_null(shim);
	assert_non_null(program);
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	m->n_welcomes = 0;
	m->guest = fork();
	assert_true(m->guest >= 0);
	if (m->guest == 0) {
		be_guest(m, shim, program, environment, in[0], out[1]);
	}
	close(in[0]);
	close(out[1]);
	m->to_guest = in[1];
	m->from_guest = out[0];
}

static bool readable(int fd, int timeout_ms) {
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int r;

	do {
		r = poll(&p, 1, timeout_ms);
	} while (r < 0 && errno == EINTR);
	return r == 1;
}

void mini_tell(struct mini *m, const char *line) {
	dprintf(m->to_guest, "%s\n", line);
}

void mini_answer(struct mini *m, char answer[static MINI_ANSWER_MAX]) {
	size_t n = 0;

	while (n < MINI_ANSWER_MAX - 1 && (n == 0 || answer[n - 1] != '\n')) {
		if (!readable(m->from_guest, MINI_TIMEOUT_MS) ||
		    read(m->from_guest, answer + n, 1) != 1) {
			fail_msg("the guest does not answer");
		}
		n++;
	}
	answer[n - 1] = '\0';
}

void mini_answers(struct mini *m, const char *line) {
	char answer[MINI_ANSWER_MAX];

	mini_answer(m, answer);
	assert_string_equal(answer, line);
}

bool mini_wait(struct mini *m, int fd) {
	struct pollfd p[] = {{.fd = m->from_guest, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	int r;

	do {
		r = poll(p, 2, MINI_TIMEOUT_MS);
	} while (r < 0 && errno == EINTR);
	if (r < 1) {
		fail_msg("neither an answer nor a message");
	}
	return p[0].revents != 0;
}

/* To @line, "@T COMMAND", the guest answers "T COMMAND RESULT". */
static void answer_to(const char *line, int result, char ret[static MINI_ANSWER_MAX]) {
	char name[64];

	assert_int_equal(sscanf(line + 3, "%63s", name), 1);
	snprintf(ret, MINI_ANSWER_MAX, "%c %s %d", line[1], name, result);
}

static void expect_result(struct mini *m, const char *line, int result) {
	char answer[MINI_ANSWER_MAX];

	answer_to(line, result, answer);
	mini_answers(m, answer);
}

void mini_do(struct mini *m, const char *line, int result) {
	mini_tell(m, line);
	expect_result(m, line, result);
}

void mini_open_gate(struct mini *m, const char *line, const char *other) {
	char own[MINI_ANSWER_MAX], first[MINI_ANSWER_MAX];

	answer_to(line, 0, own);
	mini_tell(m, line);
	mini_answer(m, first);
	if (strcmp(first, other) == 0) {
		mini_answers(m, own);
	} else {
		assert_string_equal(first, own);
		mini_answers(m, other);
	}
}

unsigned mini_said(struct mini *m, const char *text) {
	char path[128], line[1024];
	unsigned n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/stderr", m->directory);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		n += strstr(line, text) != NULL;
	}
	fclose(f);
	return n;
}

int mini_accept_only(struct mini *m) {
	int fd;

	assert_true(readable(m->listener, MINI_TIMEOUT_MS));
	fd = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

bool mini_is_called(struct mini *m) {
	return readable(m->listener, 0);
}

/* The one that the last Welcome gave. */
static void check_secret(const struct mini *m, const ProtobufCBinaryData *shown) {
	const uint8_t expected[PROTO_SECRET_BYTES] = {(uint8_t)m->n_welcomes};

	assert_int_equal(shown->len, m->n_welcomes > 0 ? sizeof(expected) : 0);
	if (m->n_welcomes > 0) {
		assert_memory_equal(shown->data, expected, sizeof(expected));
	}
}

void mini_welcome(struct mini *m, int fd) {
	uint8_t secret[PROTO_SECRET_BYTES] = {(uint8_t)(m->n_welcomes + 1)};
	Sbeet__Welcome body = SBEET__WELCOME__INIT;
	Sbeet__ToShim answer = SBEET__TO_SHIM__INIT;

	char *features[5];

	m->n_welcomes++;
	body.secret.data = secret;
	body.secret.len = sizeof(secret);
	body.version = 1;
	body.session = 7;
	body.task = (char *)"guest";
	body.linger_ns = m->linger_ns;
	body.spin_ns = m->spin_ns;
	body.features = features;
	if (m->resumes) {
		features[body.n_features++] = (char *)PROTO_FEATURE_RESUME;
	}
	if (m->pings) {
		features[body.n_features++] = (char *)PROTO_FEATURE_PING;
	}
	if (m->dependent) {
		features[body.n_features++] = (char *)PROTO_FEATURE_DEPENDENT;
	}
	if (m->counts) {
		features[body.n_features++] = (char *)PROTO_FEATURE_COUNTS;
	}
	body.mps_pipe_directory = (char *)"/tmp/pipe-of-test";
	body.mps_log_directory = (char *)"/tmp/log-of-test";
	answer.body_case = SBEET__TO_SHIM__BODY_WELCOME;
	if (m->terms) {
		features[body.n_features++] = (char *)PROTO_FEATURE_TERMS;
	}
	answer.welcome = &body;
	assert_int_equal(packet_send(fd, &answer.base, m->terms_fd), 0);
}

/* Answers @hello, and frees it. */
static int welcome(struct mini *m, int fd, Sbeet__ToDaemon *hello) {
	assert_string_equal(hello->hello->program, "guest");
	check_secret(m, &hello->hello->secret);
	mini_free(hello);
	mini_welcome(m, fd);
	return fd;
}

int mini_accept(struct mini *m) {
	return mini_accept_held(m, 0);
}

int mini_accept_held(struct mini *m, uint64_t job) {
	int fd = mini_accept_only(m);
	Sbeet__ToDaemon *hello = mini_expect(fd, SBEET__TO_DAEMON__BODY_HELLO);

	assert_int_equal(hello->hello->n_held, job != 0);
	if (job) {
		assert_int_equal(hello->hello->held[0]->job, job);
		assert_int_equal(hello->hello->held[0]->sms.len, 5); /* as mini_grant() said */
	}
	return welcome(m, fd, hello);
}

int mini_accept_ended(struct mini *m, uint64_t job) {
	int fd = mini_accept_only(m);
	Sbeet__ToDaemon *hello = mini_expect(fd, SBEET__TO_DAEMON__BODY_HELLO);

	assert_int_equal(hello->hello->n_held, 0);
	assert_int_equal(hello->hello->n_ended, 1);
	assert_int_equal(hello->hello->ended[0]->job, job);
	assert_int_equal(hello->hello->ended[0]->launches, 1);
	return welcome(m, fd, hello);
}

int mini_begin(struct mini *m, const char *const *environment) {
	int fd;

	mini_listen(m);
	mini_start(m, environment);
	mini_tell(m, "@0 init");
	fd = mini_accept(m);
	mini_answers(m, "0 init 0");
	mini_do(m, "@0 device", 0);
	return fd;
}

uint64_t mini_open_job(struct mini *m, int fd) {
	return mini_open_job_by(m, fd, "@0 launch", WHOLE);
}

uint64_t mini_open_job_by(struct mini *m, int fd, const char *line,
			  Sbeet__Enforcement enforcement) {
	uint64_t job;

	mini_tell(m, line);
	job = mini_let_in(m, fd, enforcement);
	expect_result(m, line, 0);
	return job;
}

/* Looks only at what comes next, and leaves it there, unless it is the end of a job that had
 * nothing in it. Return: whether it was. */
static bool take_unused(int fd, uint64_t job) {
	uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *base = NULL;
	const Sbeet__ToDaemon *m;
	ssize_t n = recv(fd, buffer, sizeof(buffer), MSG_PEEK | MSG_DONTWAIT);
	bool unused;

	if (n <= 0) {
		return false;
	}
	assert_int_equal(packet_unpack(&sbeet__to_daemon__descriptor, buffer, (size_t)n, &base), 0);
	m = (const Sbeet__ToDaemon *)base;
	unused = m->body_case == SBEET__TO_DAEMON__BODY_DONE && m->done->job == job &&
		 m->done->cancelled;
	packet_free(base);
	if (unused) {
		mini_free(mini_next(fd));
	}
	return unused;
}

uint64_t mini_let_in(struct mini *m, int fd, Sbeet__Enforcement enforcement) {
	uint64_t job;

	do {
		job = mini_request(fd, NULL);
		mini_grant(fd, job, enforcement);
	} while (!mini_wait(m, fd) && take_unused(fd, job));
	return job;
}

Sbeet__ToDaemon *mini_next(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *base = NULL;
	int n;

	if (!readable(fd, MINI_TIMEOUT_MS)) {
		fail_msg("no message");
	}
	n = packet_receive(fd, buffer, NULL);
	if (n <= 0) {
		return NULL;
	}
	assert_int_equal(packet_unpack(&sbeet__to_daemon__descriptor, buffer, (size_t)n, &base), 0);
	return (Sbeet__ToDaemon *)base;
}

/* Kernels are introduced before they are named, and sums are told of now and then. */
static bool comes_by_the_way(const Sbeet__ToDaemon *m) {
	return m->body_case == SBEET__TO_DAEMON__BODY_KERNEL ||
	       m->body_case == SBEET__TO_DAEMON__BODY_COUNTS;
}

Sbeet__ToDaemon *mini_expect(int fd, Sbeet__ToDaemon__BodyCase body) {
	Sbeet__ToDaemon *m = mini_next(fd);

	if (!m) {
		fail_msg("the connection ended instead of a body of kind %d", body);
	}
	if (comes_by_the_way(m) && body != m->body_case) {
		mini_free(m);
		return mini_expect(fd, body);
	}
	assert_int_equal(m->body_case, body);
	return m;
}

void mini_free(Sbeet__ToDaemon *m) {
	packet_free(&m->base);
}

void mini_expect_end(int fd) {
	uint8_t byte;

	assert_true(readable(fd, MINI_TIMEOUT_MS));
	assert_true(recv(fd, &byte, 1, 0) <= 0);
}

bool mini_is_quiet(int fd) {
	return !readable(fd, 0);
}

void mini_send(int fd, const Sbeet__ToShim *m) {
	assert_int_equal(packet_send(fd, &m->base, -1), 0);
}

uint64_t mini_request(int fd, uint32_t *ret_mask) {
	nsec_t called;

	return mini_request_at(fd, ret_mask, &called);
}

uint64_t mini_request_at(int fd, uint32_t *ret_mask, nsec_t *ret_called) {
	Sbeet__ToDaemon *m = mini_expect(fd, SBEET__TO_DAEMON__BODY_REQUEST);
	uint64_t job = m->request->job;

	assert_int_equal(m->request->gpu_uuid.len, PROTO_UUID_BYTES);
	if (ret_mask) {
		*ret_mask = m->request->enforcement_mask;
	}
	*ret_called = m->request->release_ns;
	mini_free(m);
	return job;
}

bool mini_try_grant(int fd, uint64_t job, Sbeet__Enforcement enforcement) {
	Sbeet__Grant grant = SBEET__GRANT__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {1}, sms[] = {0xff, 0xff, 0xff, 0xff, 0xff};

	grant.job = job;
	grant.gpu_uuid.data = uuid;
	grant.gpu_uuid.len = sizeof(uuid);
	grant.sms.data = sms;
	grant.sms.len = sizeof(sms);
	grant.enforcement = enforcement;
	grant.sequence = job;
	grant.gpu_sms = enforcement == WHOLE ? 40 : 80;
	m.body_case = SBEET__TO_SHIM__BODY_GRANT;
	m.grant = &grant;
	return packet_send(fd, &m.base, -1) == 0;
}

void mini_grant(int fd, uint64_t job, Sbeet__Enforcement enforcement) {
	assert_true(mini_try_grant(fd, job, enforcement));
}

void mini_error(int fd, uint64_t job, Sbeet__ErrorCode code, const char *why) {
	Sbeet__Error error = SBEET__ERROR__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;

	error.job = job;
	error.code = code;
	error.text = (char *)why;
	m.body_case = SBEET__TO_SHIM__BODY_ERROR;
	m.error = &error;
	mini_send(fd, &m);
}

static void add_ops(const Sbeet__OpBatch *batch, uint64_t job, struct mini_sums *sums) {
	assert_int_equal(batch->job, job);
	assert_true(batch->n_ops > 0);
	for (size_t i = 0; i < batch->n_ops; i++) {
		Sbeet__OpKind kind = batch->ops[i]->kind;

		if (kind == SBEET__OP_KIND__OP_KIND_LAUNCH) {
			assert_int_equal(batch->ops[i]->blocks, 24);
			assert_int_equal(batch->ops[i]->block_threads, 64);
		}
		if (kind == SBEET__OP_KIND__OP_KIND_LAUNCH ||
		    kind == SBEET__OP_KIND__OP_KIND_GRAPH) {
			sums->launches++;
		} else {
			sums->copies++;
		}
	}
}

bool mini_read(int fd, uint64_t job, struct mini_sums *sums) {
	Sbeet__ToDaemon *m = mini_next(fd);
	bool done;

	assert_non_null(m);
	done = m->body_case == SBEET__TO_DAEMON__BODY_DONE;
	if (m->body_case == SBEET__TO_DAEMON__BODY_OPS) {
		add_ops(m->ops, job, sums);
	} else if (m->body_case != SBEET__TO_DAEMON__BODY_KERNEL) {
		assert_true(done);
		assert_int_equal(m->done->job, job);
		assert_in_range(m->done->launches, sums->launches,
				sums->launches + sums->elsewhere);
		sums->launches = m->done->launches;
		assert_int_equal(m->done->copies, sums->copies);
		assert_true(m->done->finished_ns >= m->done->granted_ns);
		sums->cancelled = m->done->cancelled;
		sums->finished_ns = m->done->finished_ns;
	}
	mini_free(m);
	return done;
}

struct mini_sums mini_done_after(int fd, uint64_t job, uint64_t before) {
	struct mini_sums sums = {.elsewhere = before};

	while (!mini_read(fd, job, &sums)) {
	}
	return sums;
}

struct mini_sums mini_done(int fd, uint64_t job) {
	return mini_done_after(fd, job, 0);
}
