/*
 * harness.c: starts sbeetd, talks to it. See harness.h.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "proto/validate.h"

/* Long enough for a loaded machine under valgrind; only a hang gets there. */
#define HANG_MS 30000

static void wait_readable(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	if (poll(&p, 1, HANG_MS) != 1) {
		fail_msg("nothing came in %d s", HANG_MS / 1000);
	}
}

/* In the child: what sd_listen_fds(3) wants to see. */
static void pass_sockets(const struct harness *h) {
	char pid[16], n[16];
	int above[HARNESS_PASSED_MAX];

	snprintf(pid, sizeof(pid), "%d", getpid());
	snprintf(n, sizeof(n), "%d", h->n_passed);
	setenv("LISTEN_PID", pid, 1);
	setenv("LISTEN_FDS", n, 1);
	setenv("LISTEN_FDNAMES", h->passed_names, 1);
	for (int i = 0; i < h->n_passed; i++) {
		above[i] = fcntl(h->passed[i], F_DUPFD, 100);
	}
	for (int i = 0; i < h->n_passed; i++) {
		dup2(above[i], 3 + i);
		close(above[i]);
	}
}

/* Starts sbeetd with stderr in @errors_fd. */
static pid_t spawn(const struct harness *h, const char *const *args, int errors_fd) {
	const char *other = getenv("SBEET_TEST_DAEMON");
	char *argv[HARNESS_ARGS_MAX + 2] = {(char *)(uintptr_t)(other ? other : SBEETD)};
	pid_t pid;

	for (size_t i = 0; args[i]; i++) {
		assert_true(i < HARNESS_ARGS_MAX);
		argv[i + 1] = (char *)args[i];
	}
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		/* A test that fails half-way leaves none behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(errors_fd, STDERR_FILENO);
		if (h->n_passed > 0) {
			pass_sockets(h);
		}
		execv(argv[0], argv);
		_exit(127);
	}
	return pid;
}

/* Where a test says nothing else, jobs are granted one by one and at once. */
static void write_default_config(const struct harness *h) {
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/sbeetd.conf", h->directory);
	f = fopen(path, "we");
	assert_non_null(f);
	assert_true(fputs("[sbeetd]\npolicy = even\n", f) >= 0);
	assert_int_equal(fclose(f), 0);
}

void harness_prepare(struct harness *h) {
	if (!*h->directory) {
		snprintf(h->directory, sizeof(h->directory), "/tmp/sbeet-func-XXXXXX");
		assert_non_null(mkdtemp(h->directory));
		setenv("SBEET_RUNTIME_DIR", h->directory, 1);
		setenv("SBEET_CONFIG_DIR", h->directory, 1); /* not this machine's */
		write_default_config(h);
	}
}

void harness_listen(struct harness *h) {
	h->log_fd = memfd_create("sbeetd-log", MFD_CLOEXEC);
	assert_true(h->log_fd > 0);
	assert_int_equal(fcntl(h->log_fd, F_SETFL, O_APPEND), 0);
}

unsigned harness_said(const struct harness *h, const char *text) {
	static char log[256 * 1024];
	ssize_t n = pread(h->log_fd, log, sizeof(log) - 1, 0);
	unsigned times = 0;

	assert_true(n >= 0);
	log[n] = '\0';
	for (const char *p = log; (p = strstr(p, text)); p++) {
		times++;
	}
	return times;
}

static int exit_code(pid_t pid) {
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		assert_int_equal(errno, EINTR);
	}
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

bool harness_try_start(struct harness *h, const char *const *args) {
	nsec_t hang = nsec_now() + HANG_MS * NSEC_PER_MSEC;
	siginfo_t info = {0};
	int code;

	assert_int_equal(ftruncate(h->log_fd, 0), 0);
	h->pid = spawn(h, args, h->log_fd);
	while (harness_said(h, "Ready in") == 0) {
		assert_int_equal(waitid(P_PID, (id_t)h->pid, &info, WEXITED | WNOHANG | WNOWAIT),
				 0);
		if (info.si_pid == h->pid) {
			code = exit_code(h->pid);
			h->pid = 0;
			if (code != 1 && code != 2) {
				fail_msg("it ended with %d", code);
			}
			return false;
		}
		assert_true(nsec_now() < hang);
		usleep(1000);
	}
	return true;
}

void harness_start(struct harness *h, const char *const *args) {
	char path[128];
	nsec_t hang = nsec_now() + HANG_MS * NSEC_PER_MSEC;
	int fd;

	harness_prepare(h);
	h->pid = spawn(h, args, h->log_fd > 0 ? h->log_fd : STDERR_FILENO);
	snprintf(path, sizeof(path), "%s/control.sock", h->directory);
	while ((fd = packet_connect(path, 0)) < 0) {
		assert_true(fd == -ENOENT || fd == -ECONNREFUSED);
		assert_int_equal(waitpid(h->pid, NULL, WNOHANG), 0);
		assert_true(nsec_now() < hang);
		usleep(1000);
	}
	close(fd);
}

int harness_run(struct harness *h, const char *const *args, char *errors, size_t size) {
	size_t n = 0;
	ssize_t r;
	int fds[2], code;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = spawn(h, args, fds[1]);
	close(fds[1]);
	while (n < size - 1 && (r = read(fds[0], errors + n, size - 1 - n)) > 0) {
		n += (size_t)r;
	}
	errors[n] = '\0';
	code = exit_code(pid);
	close(fds[0]);
	return code;
}

int harness_wait(struct harness *h) {
	pid_t pid = h->pid;

	h->pid = 0;
	return exit_code(pid);
}

int harness_stop(struct harness *h, int signal_number) {
	assert_int_equal(kill(h->pid, signal_number), 0);
	return harness_wait(h);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
	return remove(path);
}

void harness_clean(struct harness *h) {
	if (h->pid > 0) {
		kill(h->pid, SIGKILL);
		exit_code(h->pid);
	}
	if (*h->directory) {
		nftw(h->directory, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
	}
	if (h->log_fd > 0) {
		close(h->log_fd);
	}
	*h = (struct harness){0};
}

static int connect_to(const char *name) {
	char path[PROTO_PATH_MAX];
	int fd;

	assert_int_equal(packet_socket_path(name, path, sizeof(path)), 0);
	fd = packet_connect(path, 0);
	assert_true(fd >= 0);
	return fd;
}

int shim_connect(void) {
	return connect_to("shim.sock");
}

void shim_send(int fd, const Sbeet__ToDaemon *m) {
	assert_int_equal(packet_send(fd, &m->base, -1), 0);
}

void shim_declare(int fd, uint32_t id, const char *name, const char *refusal) {
	Sbeet__KernelDef kernel = SBEET__KERNEL_DEF__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	kernel.id = id;
	kernel.name = (char *)(uintptr_t)name;
	kernel.refusal = (char *)(uintptr_t)refusal;
	kernel.enforcement_mask = *refusal ? MASK_WHOLE : MASK_ALL;
	m.body_case = SBEET__TO_DAEMON__BODY_KERNEL;
	m.kernel = &kernel;
	shim_send(fd, &m);
}

void shim_count(int fd, uint32_t id, uint64_t launches, uint64_t blocks) {
	Sbeet__KernelCount count = SBEET__KERNEL_COUNT__INIT, *list[] = {&count};
	Sbeet__Counts counts = SBEET__COUNTS__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	count.kernel = id;
	count.launches = launches;
	count.blocks = blocks;
	count.block_threads = 64;
	counts.kernels = list;
	counts.n_kernels = 1;
	m.body_case = SBEET__TO_DAEMON__BODY_COUNTS;
	m.counts = &counts;
	shim_send(fd, &m);
}

/* As shim_receive(). @ret_passed: NULL, or receives the descriptor that came along, or -1. */
static Sbeet__ToShim *receive(int fd, int *ret_passed) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *m = NULL;
	char why[256] = "";
	int r;

	wait_readable(fd);
	r = packet_receive(fd, buffer, ret_passed);
	if (r == 0 || r == -ECONNRESET) {
		return NULL;
	}
	assert_true(r > 0);
	assert_int_equal(packet_unpack(&sbeet__to_shim__descriptor, buffer, (size_t)r, &m), 0);
	if (validate_to_shim((Sbeet__ToShim *)m, why, sizeof(why)) < 0) {
		fail_msg("the daemon sent something invalid: %s", why);
	}
	return (Sbeet__ToShim *)m;
}

Sbeet__ToShim *shim_receive(int fd) {
	return receive(fd, NULL);
}

/* The question's connection is accepted in one turn of the loop and read in a later one; what was
 * there before is handled by then. */
void harness_settle(void) {
	status_free(status_get());
}

void shim_expect_silence(int fd) {
	struct pollfd p = {.fd = fd, .events = POLLIN};

	harness_settle();
	if (poll(&p, 1, 0) != 0) {
		fail_msg("the daemon sent something that it should not");
	}
}

/* What clients show, see shim_forget_secret(). */
static uint8_t secret[PROTO_SECRET_BYTES];
static bool has_secret;

void shim_forget_secret(void) {
	has_secret = false;
}

void shim_show_secret(const uint8_t shown[static PROTO_SECRET_BYTES]) {
	memcpy(secret, shown, sizeof(secret));
	has_secret = true;
}

void shim_keep_secret(uint8_t ret[static PROTO_SECRET_BYTES]) {
	memcpy(ret, secret, sizeof(secret));
}

/* Whether programs read terms from now on: while steered_open() is at work. */
static bool reads_terms, takes_boards;

static void send_hello(int fd, Sbeet__Hello *hello, const char *program, uint32_t mask) {
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	hello->version = PROTO_VERSION;
	hello->program = (char *)(uintptr_t)program;
	hello->enforcement_mask = mask;
	hello->shim_version = (char[]){"test"};
	m.body_case = SBEET__TO_DAEMON__BODY_HELLO;
	m.hello = hello;
	shim_send(fd, &m);
}

/* What most programs here say of themselves. */
static void say_hello(int fd, Sbeet__Hello *hello, const char *program, uint32_t mask) {
	char keeps[] = PROTO_FEATURE_SECRET, terms[] = PROTO_FEATURE_TERMS;
	char copies[] = PROTO_FEATURE_COPIES, *features[] = {keeps, terms, copies};

	hello->features = features;
	hello->n_features = 1 + reads_terms + takes_boards;
	hello->secret.data = secret;
	hello->secret.len = has_secret ? sizeof(secret) : 0;
	send_hello(fd, hello, program, mask);
}

/* Freed with packet_free(). */
static Sbeet__ToShim *hear_welcome(int fd) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	assert_int_equal(m->welcome->version, PROTO_VERSION);
	assert_int_equal(m->welcome->secret.len, sizeof(secret));
	memcpy(secret, m->welcome->secret.data, sizeof(secret));
	has_secret = true;
	return m;
}

void shim_hello(int fd, const char *program, const Sbeet__TaskSpec *task, uint32_t mask) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;

	hello.task = (Sbeet__TaskSpec *)(uintptr_t)task;
	say_hello(fd, &hello, program, mask);
}

struct shim shim_open(const char *program, uint32_t mask) {
	struct shim s = {.fd = shim_connect()};
	Sbeet__ToShim *m;

	shim_hello(s.fd, program, NULL, mask);
	m = hear_welcome(s.fd);
	s.session = m->welcome->session;
	packet_free(&m->base);
	return s;
}

struct shim shim_open_with(const char *program, const Sbeet__TaskSpec *task,
			   const char *const *features, size_t n, uint32_t mask) {
	struct shim s = {.fd = shim_connect()};
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__ToShim *m;

	hello.task = (Sbeet__TaskSpec *)(uintptr_t)task;
	hello.features = (char **)(uintptr_t)features;
	hello.n_features = n;
	send_hello(s.fd, &hello, program, mask);
	m = shim_receive(s.fd);
	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	s.session = m->welcome->session;
	packet_free(&m->base);
	return s;
}

void steered_welcome(struct steered *s) {
	Sbeet__ToShim *m = receive(s->fd, &s->page_fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_WELCOME);
	s->session = m->welcome->session;
	assert_true(s->page_fd >= 0);
	assert_true(packet_has_feature(m->welcome->features, m->welcome->n_features,
				       PROTO_FEATURE_TERMS));
	s->page = mmap(NULL, sizeof(*s->page), PROT_READ, MAP_SHARED, s->page_fd, 0);
	assert_ptr_not_equal(s->page, MAP_FAILED);
	assert_int_equal(s->page->magic, PROTO_TERMS_MAGIC);
	assert_int_equal(s->page->version, PROTO_TERMS_VERSION);
	packet_free(&m->base);
}

struct steered steered_open(const char *program, const Sbeet__TaskSpec *task, uint32_t mask) {
	struct steered s = {.fd = shim_connect()};

	reads_terms = true;
	shim_hello(s.fd, program, task, mask);
	reads_terms = false;
	steered_welcome(&s);
	harness_settle(); /* at the end of the turn its words are there */
	return s;
}

struct steered steered_open_taking_boards(const char *program, const Sbeet__TaskSpec *task,
					  uint32_t mask) {
	struct steered s;

	takes_boards = true;
	s = steered_open(program, task, mask);
	takes_boards = false;
	return s;
}

struct board *steered_board(struct steered *s, unsigned *ret_slot) {
	int fd = -1;
	Sbeet__ToShim *m = receive(s->fd, &fd);
	struct board *board;

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_BOARD);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW),
			 F_SEAL_SHRINK | F_SEAL_GROW);
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(board, MAP_FAILED);
	close(fd);
	assert_int_equal(board->magic, PROTO_BOARD_MAGIC);
	assert_int_equal(board->version, PROTO_BOARD_VERSION);
	*ret_slot = m->board->slot;
	packet_free(&m->base);
	return board;
}

void steered_close(struct steered *s) {
	munmap((void *)(uintptr_t)s->page, sizeof(*s->page));
	close(s->page_fd);
	close(s->fd);
	s->fd = s->page_fd = -1;
}

struct terms steered_terms(const struct steered *s, unsigned gpu) {
	return terms_unpack(atomic_load(&s->page->gpu[gpu].word));
}

void steered_request(int fd, const struct steered *s, uint64_t job) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	request.job = job;
	request.gpu_uuid.data = (uint8_t *)(uintptr_t)s->page->gpu[0].uuid;
	request.gpu_uuid.len = PROTO_UUID_BYTES;
	request.enforcement_mask = MASK_WHOLE;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	shim_send(fd, &m);
}

void steered_began(const struct steered *s, unsigned gpu, const struct began *b) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__Began began = SBEET__BEGAN__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	began.job = done.job = b->job;
	began.gpu_uuid.data = (uint8_t *)(uintptr_t)s->page->gpu[gpu].uuid;
	began.gpu_uuid.len = PROTO_UUID_BYTES;
	began.release_ns = b->release;
	began.began_ns = b->release;
	began.terms = b->terms;
	began.marked_ns = b->marked;
	began.own_deadline_ns = b->own_deadline;
	began.dropped = b->dropped;
	done.finished_ns = b->finished;
	done.launches = b->work ? b->work->launches : 3;
	done.waves = b->work ? b->work->waves : 0;
	began.done = b->finished ? &done : NULL;
	m.body_case = SBEET__TO_DAEMON__BODY_BEGAN;
	m.began = &began;
	shim_send(s->fd, &m);
}

void claim_init(struct claim *c, uint64_t job, unsigned gpu, const struct grant *g) {
	*c = (struct claim){.held = SBEET__HELD__INIT, .uuid = {(uint8_t)(gpu + 1)}};
	c->held.job = job;
	c->held.gpu_uuid.data = c->uuid;
	c->held.gpu_uuid.len = sizeof(c->uuid);
	c->held.sms.data = c->sms;
	c->held.sms.len = smset_to_bytes(&g->sms, c->sms);
	c->held.slot = g->slot;
	c->held.enforcement = g->enforcement;
	c->held.sequence = g->sequence;
	c->held.enforcement_mask = MASK_ALL;
	c->held.release_ns = c->held.granted_ns = nsec_now();
}

static int come_back(const char *program, Sbeet__Hello *hello) {
	int fd = shim_connect();
	Sbeet__ToShim *m;

	say_hello(fd, hello, program, MASK_ALL);
	m = hear_welcome(fd);
	assert_true(m->welcome->n_features > 0);
	assert_string_equal(m->welcome->features[0], PROTO_FEATURE_RESUME);
	packet_free(&m->base);
	return fd;
}

int shim_come_back_ended(const char *program, uint64_t job) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT, *list[] = {&done};

	done.job = job;
	done.launches = 1;
	done.finished_ns = nsec_now();
	hello.ended = list;
	hello.n_ended = 1;
	return come_back(program, &hello);
}

int shim_come_back(const char *program, struct claim *claims, size_t n) {
	Sbeet__Hello hello = SBEET__HELLO__INIT;
	Sbeet__Held *list[CLAIMS_MAX];

	assert_true(n <= CLAIMS_MAX);
	for (size_t i = 0; i < n; i++) {
		list[i] = &claims[i].held;
	}
	hello.held = list;
	hello.n_held = n;
	return come_back(program, &hello);
}

void shim_close(struct shim *s) {
	close(s->fd);
	s->fd = -1;
}

static void send_request(int fd, uint64_t job, unsigned gpu, uint32_t mask, nsec_t at,
			 uint32_t tid) {
	Sbeet__Request request = SBEET__REQUEST__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;
	uint8_t uuid[PROTO_UUID_BYTES] = {(uint8_t)(gpu + 1)};

	request.job = job;
	request.gpu_uuid.data = uuid;
	request.gpu_uuid.len = sizeof(uuid);
	request.release_ns = at;
	request.enforcement_mask = mask;
	request.tid = tid;
	request.op = SBEET__OP_KIND__OP_KIND_LAUNCH;
	m.body_case = SBEET__TO_DAEMON__BODY_REQUEST;
	m.request = &request;
	shim_send(fd, &m);
}

void shim_request(int fd, uint64_t job, unsigned gpu, uint32_t mask) {
	send_request(fd, job, gpu, mask, nsec_now(), 0);
}

void shim_request_at(int fd, uint64_t job, nsec_t at, uint32_t tid) {
	send_request(fd, job, 0, MASK_ALL, at, tid);
}

static void send_done(int fd, uint64_t job, bool cancelled, nsec_t at) {
	Sbeet__JobDone done = SBEET__JOB_DONE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	done.job = job;
	done.cancelled = cancelled;
	done.launches = cancelled ? 0 : 1;
	done.finished_ns = at;
	m.body_case = SBEET__TO_DAEMON__BODY_DONE;
	m.done = &done;
	shim_send(fd, &m);
}

void shim_done(int fd, uint64_t job) {
	send_done(fd, job, false, nsec_now());
}

void shim_done_at(int fd, uint64_t job, nsec_t at) {
	send_done(fd, job, false, at);
}

void shim_cancel(int fd, uint64_t job) {
	send_done(fd, job, true, nsec_now());
}

struct grant shim_granted(int fd, uint64_t job) {
	Sbeet__ToShim *m = shim_receive(fd);
	struct grant g;

	assert_non_null(m);
	if (m->body_case == SBEET__TO_SHIM__BODY_ERROR) {
		fail_msg("an error instead of a grant: %s", m->error->text);
	}
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_GRANT);
	assert_int_equal(m->grant->job, job);
	g = (struct grant){
		.enforcement = m->grant->enforcement,
		.slot = m->grant->slot,
		.gpu_sms = m->grant->gpu_sms,
		.sequence = m->grant->sequence,
		.deadline_ns = m->grant->deadline_ns,
	};
	assert_int_equal(smset_from_bytes(m->grant->sms.data, m->grant->sms.len, &g.sms), 0);
	packet_free(&m->base);
	return g;
}

void shim_error(int fd, uint64_t job, Sbeet__ErrorCode code) {
	Sbeet__ToShim *m = shim_receive(fd);

	assert_non_null(m);
	assert_int_equal(m->body_case, SBEET__TO_SHIM__BODY_ERROR);
	assert_int_equal(m->error->code, code);
	assert_int_equal(m->error->job, job);
	assert_true(strlen(m->error->text) > 0);
	packet_free(&m->base);
}

void shim_closed(int fd) {
	assert_null(shim_receive(fd));
}

/* A status and the packets that it came in, which hold what it points to. */
struct gathered {
	Sbeet__Control__Status status; /* first: see status_free() */
	ProtobufCMessage **packets;
	size_t n_packets;
};

/* Adds the @n pointers @from. */
static void add_all(void ***to, size_t *n_to, void *const *from, size_t n) {
	if (n == 0) {
		return;
	}
	*to = realloc(*to, (*n_to + n) * sizeof(void *));
	assert_non_null(*to);
	memcpy(*to + *n_to, from, n * sizeof(void *));
	*n_to += n;
}

/* Owns @packet from now on. */
static void gather(struct gathered *g, ProtobufCMessage *packet) {
	const Sbeet__Control__Status *from = ((Sbeet__Control__Reply *)packet)->status;
	Sbeet__Control__Status *to = &g->status;

	add_all((void ***)&g->packets, &g->n_packets, (void *const[]){packet}, 1);
	if (from->service) {
		assert_null(to->service);
		to->service = from->service;
	}
	if (from->mps) {
		assert_null(to->mps);
		to->mps = from->mps;
	}
	add_all((void ***)&to->gpus, &to->n_gpus, (void *const *)from->gpus, from->n_gpus);
	add_all((void ***)&to->sessions, &to->n_sessions, (void *const *)from->sessions,
		from->n_sessions);
	add_all((void ***)&to->jobs, &to->n_jobs, (void *const *)from->jobs, from->n_jobs);
}

int control_begin(Sbeet__Control__Request *request) {
	int fd = connect_to("control.sock");

	assert_int_equal(packet_send(fd, &request->base, -1), 0);
	return fd;
}

Sbeet__Control__Reply *control_ask(Sbeet__Control__Request *request) {
	return control_end(control_begin(request));
}

void control_do(Sbeet__Control__Request *request) {
	Sbeet__Control__Reply *reply = control_ask(request);

	assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_DONE);
	packet_free(&reply->base);
}

Sbeet__Control__Reply *control_end(int fd) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *m = NULL;
	char why[256];
	int n;

	wait_readable(fd);
	n = packet_receive(fd, buffer, NULL);
	assert_true(n > 0);
	assert_int_equal(packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			 0);
	assert_int_equal(validate_control_reply((Sbeet__Control__Reply *)m, why, sizeof(why)), 0);
	close(fd);
	return (Sbeet__Control__Reply *)m;
}

void policy_set(const char *name, Sbeet__ErrorCode error) {
	Sbeet__Control__PolicyRequest policy = SBEET__CONTROL__POLICY_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	Sbeet__Control__Reply *reply;

	policy.name = (char *)(uintptr_t)name;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_POLICY;
	request.policy = &policy;
	reply = control_ask(&request);
	if (error == SBEET__ERROR_CODE__ERROR_CODE_NONE) {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_POLICY);
		assert_string_equal(reply->policy->name, name);
	} else {
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_ERROR);
		assert_int_equal(reply->error->code, error);
	}
	packet_free(&reply->base);
}

Sbeet__Control__Status *status_get(void) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	Sbeet__Control__StatusRequest ask = SBEET__CONTROL__STATUS_REQUEST__INIT;
	Sbeet__Control__Request request = SBEET__CONTROL__REQUEST__INIT;
	struct gathered *g = calloc(1, sizeof(*g));
	int fd = connect_to("control.sock");
	bool last = false;

	assert_non_null(g);
	sbeet__control__status__init(&g->status);
	request.id = 7;
	request.body_case = SBEET__CONTROL__REQUEST__BODY_STATUS;
	request.status = &ask;
	assert_int_equal(packet_send(fd, &request.base, -1), 0);
	while (!last) {
		Sbeet__Control__Reply *reply;
		ProtobufCMessage *m = NULL;
		char why[256];
		int n;

		wait_readable(fd);
		n = packet_receive(fd, buffer, NULL);
		assert_true(n > 0);
		assert_int_equal(
			packet_unpack(&sbeet__control__reply__descriptor, buffer, (size_t)n, &m),
			0);
		reply = (Sbeet__Control__Reply *)m;
		assert_int_equal(validate_control_reply(reply, why, sizeof(why)), 0);
		assert_int_equal(reply->id, 7);
		assert_int_equal(reply->body_case, SBEET__CONTROL__REPLY__BODY_STATUS);
		last = reply->last;
		gather(g, m);
	}
	close(fd);
	assert_non_null(g->status.service);
	return &g->status;
}

void status_free(Sbeet__Control__Status *status) {
	struct gathered *g = (struct gathered *)status;

	for (size_t i = 0; i < g->n_packets; i++) {
		packet_free(g->packets[i]);
	}
	free(g->packets);
	free(status->gpus);
	free(status->sessions);
	free(status->jobs);
	free(g);
}

void status_until(bool (*holds)(const Sbeet__Control__Status *status, void *data), void *data) {
	nsec_t hang = nsec_now() + HANG_MS * NSEC_PER_MSEC;
	bool ok;

	do {
		Sbeet__Control__Status *status = status_get();

		assert_true(nsec_now() < hang);
		ok = holds(status, data);
		status_free(status);
		if (!ok) {
			usleep(1000); /* between two looks, not in place of one */
		}
	} while (!ok);
}
