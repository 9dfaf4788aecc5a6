/*
 * harness-shim.c: programs that talk to sbeetd as the shim does. See harness.h.
 */
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "harness-internal.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/units.h"
#include "proto/validate.h"

int shim_connect(void) {
	return harness_connect("shim.sock");
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
	kernel.dependent = !*refusal;
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

	harness_wait_readable(fd);
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
	return s; /* its words are there: see the daemon's steer_welcome() */
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

void steered_leave(struct steered *s) {
	Sbeet__Goodbye goodbye = SBEET__GOODBYE__INIT;
	Sbeet__ToDaemon m = SBEET__TO_DAEMON__INIT;

	m.body_case = SBEET__TO_DAEMON__BODY_GOODBYE;
	m.goodbye = &goodbye;
	shim_send(s->fd, &m);
	harness_settle();
	steered_close(s);
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
	done.copies = b->work ? b->work->copies : 0;
	done.cold = b->cold;
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
