/*
 * steerer.c: stands in for an sbeetd that changes its mind every millisecond: programs on GPU 0 are
 * steered to another set of SMs and another level each time, or to the whole GPU, at random.
 *
 * usage: steerer SOCKET [sets | gates | HOLD]. Listens there and ends when the last program has
 * gone. Then it says what it was told, as JSON: jobs, launches, how often a job was asked for
 * (never), changes, how many jobs ran beside their set, and how many of those behind the first
 * ones. `sets`: never the whole GPU, and one set until the first jobs were told of. `gates`: always
 * so that kernels of the program yield. In all of these, jobs and copies of others that are due
 * earlier come and go on the board.
 *
 * HOLD is a file, as in SIMGPU_GRAPH=held:HOLD, that stands for what takes a program long. One
 * program has one set until the first jobs were told of. Then the file is made and the set is
 * another one, and after more jobs the file goes. Each step is said in a line: "held" when the file
 * is there, "stayed N" when jobs have come since, of which N were under the new terms, "followed"
 * when one was under the new terms after the file was gone.
 */
#include <cuda.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "proto/board.h"
#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/terms.h"
#include "proto/units.h"
#include "sbeet.pb-c.h"

#define PROGRAMS 16
#define FIRST	 20 /* jobs of a program in one set, if it is to have sets only */
#define SETTLED	 80 /* jobs of a program until the set is another one, with HOLD */
#define GROUP	 8  /* whatever the GPU's groups are, eight SMs are some of them */

struct program {
	int fd;
	unsigned jobs;
	struct terms_page *page;
	struct board *board;
};

static struct program programs[PROGRAMS];
static unsigned n_programs, n_gpu_sms;
static uint8_t uuid[PROTO_UUID_BYTES];
static struct { unsigned long long jobs, launches, requests, changes, unconfined, relapses; } told;
static bool sets;  /* never the whole GPU */
static bool gates; /* kernels yield */

/* With a file that holds programs up. */
static struct {
	const char *path; /* NULL: there is none */
	enum { HOLD_FIRST, HOLD_HELD, HOLD_GONE, HOLD_FOLLOWED } step;
	uint64_t since_ns; /* the file is there */
	uint64_t word;	   /* of the new terms */
	unsigned jobs;	   /* since then */
	unsigned new;	   /* of these, under the new terms */
} hold;

static void fail(const char *what) {
	perror(what);
	exit(1);
}

static unsigned below(unsigned n) {
	static uint64_t random = 1;

	random = random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(random >> 33) % n;
}

static struct terms any_terms(void) {
	unsigned n = terms_groups(n_gpu_sms, GROUP);
	struct terms t = {.steered = true,
			  .level = below(PROTO_TERMS_LEVEL_MAX + 1),
			  .copies = below(_TERMS_COPIES_N),
			  .awaited = below(2),
			  .guarded = below(2),
			  .yields = gates || below(2),
			  .back_by_kernel = below(2),
			  .epoch = (uint16_t)told.changes};

	if (sets || below(4) > 0) {
		t.group = GROUP;
		t.first = below(n);
		t.n = 1 + below(n - t.first);
	}
	return t;
}

/* Mapped at *@ret. */
static int make_memory(const char *name, size_t size, void **ret) {
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)size) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		fail("memfd");
	}
	*ret = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*ret == MAP_FAILED) {
		fail("mmap");
	}
	return fd;
}

static int make_page(struct program *p) {
	void *map;
	int fd = make_memory("terms", sizeof(*p->page), &map);

	p->page = map;
	p->page->magic = PROTO_TERMS_MAGIC;
	p->page->version = PROTO_TERMS_VERSION;
	p->page->n_gpus = 1;
	memcpy(p->page->gpu[0].uuid, uuid, sizeof(uuid));
	return fd;
}

/* The program's slot is the first one. */
static void send_board(struct program *p) {
	Sbeet__Board body = SBEET__BOARD__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	void *map;
	int fd = make_memory("board", sizeof(*p->board), &map);

	p->board = map;
	p->board->magic = PROTO_BOARD_MAGIC;
	p->board->version = PROTO_BOARD_VERSION;
	m.body_case = SBEET__TO_SHIM__BODY_BOARD;
	m.board = &body;
	if (packet_send(p->fd, &m.base, fd) < 0) {
		fail("send");
	}
	close(fd);
}

/* Half of the time there is something that is due soon, or was due just now. */
static uint64_t any_due(void) {
	return below(2) ? 0 : nsec_now() - NSEC_PER_MSEC + below(20 * NSEC_PER_MSEC);
}

/* What others say, and when the program's own jobs are due. */
static void change_board(struct program *p) {
	unsigned slot = 1 + below(PROTO_BOARD_SLOTS - 1);
	struct board_slot *other = &p->board->slots[0][slot];
	struct board_needs *needs = &p->board->needs[0][slot];
	uint64_t deadline = below(3) * 10 * NSEC_PER_MSEC;

	atomic_store(&other->due_ns, any_due());
	atomic_store(&other->job_due_ns, any_due());
	atomic_store(&other->jobs, (uint64_t)below(3) << 32);
	atomic_store(&needs->done, below(3));
	atomic_store(&needs->from_ns, any_due());
	atomic_store(&needs->since_ns, any_due());
	atomic_store(&needs->next_from_ns, any_due());
	atomic_store(&needs->next_until_ns, any_due());
	atomic_store(&needs->next_due_ns, any_due());
	atomic_store(&p->page->period_ns[0], below(3) * 10 * NSEC_PER_MSEC);
	atomic_store(&p->page->lead_ns[0], below(3) * NSEC_PER_MSEC);
	atomic_store(&p->page->deadline_ns[0], deadline);
	atomic_store(&p->page->gpu[0].copy_due_ns, deadline / 2);
	atomic_store(&p->page->copy_late_due_ns[0], below(3) * deadline);
}

static void change(struct program *p) {
	struct terms t = any_terms();

	if (p->board) {
		change_board(p);
	}
	atomic_store_explicit(&p->page->gpu[0].word, terms_pack(&t), memory_order_release);
	told.changes++;
}

/* One half of the GPU, or the other. */
static void change_half(struct program *p, bool other) {
	unsigned n = terms_groups(n_gpu_sms, GROUP), half = n / 2;
	struct terms t = {.steered = true,
			  .level = other ? 3 : 1,
			  .group = GROUP,
			  .first = other ? half : 0,
			  .n = other ? n - half : half,
			  .epoch = (uint16_t)++told.changes};

	hold.word = terms_pack(&t);
	atomic_store_explicit(&p->page->gpu[0].word, hold.word, memory_order_release);
}

static void welcome(struct program *p) {
	char terms[] = PROTO_FEATURE_TERMS, counts[] = PROTO_FEATURE_COUNTS,
	     *features[] = {terms, counts};
	Sbeet__Welcome body = SBEET__WELCOME__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	int fd = make_page(p);

	if (hold.path) {
		change_half(p, false);
	} else {
		change(p);
	}
	body.version = PROTO_VERSION;
	body.session = 1;
	body.task = (char *)"steered";
	body.linger_ns = 100000;
	body.features = features;
	body.n_features = 2;
	m.body_case = SBEET__TO_SHIM__BODY_WELCOME;
	m.welcome = &body;
	if (packet_send(p->fd, &m.base, fd) < 0) {
		fail("send");
	}
	close(fd);
	if (!hold.path) {
		send_board(p);
	}
}

static void say(const char *what, unsigned n) {
	printf("%s %u\n", what, n);
	fflush(stdout);
}

static void hold_up(struct program *p) {
	int fd = open(hold.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0) {
		fail(hold.path);
	}
	close(fd);
	hold.step = HOLD_HELD;
	hold.since_ns = nsec_now();
	change_half(p, true);
	say("held", 0);
}

/* A job began. */
static void add_began(struct program *p, const Sbeet__Began *began) {
	if (!hold.path) {
		return;
	}
	if (hold.step == HOLD_FIRST && p->jobs >= SETTLED) {
		hold_up(p);
	} else if (hold.step == HOLD_HELD && began->began_ns > hold.since_ns) {
		hold.new += began->terms == hold.word;
		if (++hold.jobs == FIRST) {
			hold.step = HOLD_GONE;
			say("stayed", hold.new);
			unlink(hold.path);
		}
	} else if (hold.step == HOLD_GONE && began->terms == hold.word) {
		hold.step = HOLD_FOLLOWED;
		say("followed", 0);
	}
}

static void add_done(struct program *p, const Sbeet__JobDone *done) {
	told.jobs++;
	told.relapses += p->jobs >= FIRST && done->unconfined;
	p->jobs++;
	told.launches += done->launches;
	told.unconfined += done->unconfined;
}

/* Return: false when the program has gone. */
static bool hear(struct program *p) {
	static uint8_t buffer[PROTO_PACKET_MAX];
	ProtobufCMessage *base = NULL;
	int n = packet_receive(p->fd, buffer, NULL);
	const Sbeet__ToDaemon *m;

	if (n <= 0) {
		return false;
	}
	if (packet_unpack(&sbeet__to_daemon__descriptor, buffer, (size_t)n, &base) < 0) {
		fail("packet");
	}
	m = (const Sbeet__ToDaemon *)base;
	switch (m->body_case) {
	case SBEET__TO_DAEMON__BODY_HELLO:
		welcome(p);
		break;
	case SBEET__TO_DAEMON__BODY_REQUEST:
		told.requests++;
		break;
	case SBEET__TO_DAEMON__BODY_BEGAN:
		if (m->began->done) {
			add_done(p, m->began->done);
		}
		add_began(p, m->began);
		break;
	case SBEET__TO_DAEMON__BODY_DONE:
		add_done(p, m->done);
		break;
	default:
		break;
	}
	packet_free(base);
	return true;
}

static void serve(int listener) {
	struct pollfd ready[PROGRAMS + 1] = {{.fd = listener, .events = POLLIN}};

	for (unsigned i = 0; i < n_programs; i++) {
		ready[i + 1] = (struct pollfd){.fd = programs[i].fd, .events = POLLIN};
	}
	if (poll(ready, n_programs + 1, 1) < 0 && errno != EINTR) {
		fail("poll");
	}
	for (unsigned i = n_programs; i > 0; i--) {
		if (ready[i].revents && !hear(&programs[i - 1])) {
			close(programs[i - 1].fd);
			programs[i - 1] = programs[--n_programs];
		}
	}
	if (ready[0].revents && n_programs < PROGRAMS) {
		programs[n_programs++] =
			(struct program){.fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)};
	}
	for (unsigned i = 0; i < n_programs; i++) {
		if (programs[i].page && !hold.path && (!sets || programs[i].jobs >= FIRST)) {
			change(&programs[i]);
		}
	}
}

static void find_gpu(void) {
	CUuuid id;
	int n = 0;

	if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetUuid(&id, 0) != CUDA_SUCCESS ||
	    cuDeviceGetAttribute(&n, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0) != CUDA_SUCCESS) {
		fail("no GPU");
	}
	memcpy(uuid, id.bytes, sizeof(uuid));
	n_gpu_sms = (unsigned)n;
}

int main(int argc, char **argv) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	sets = argc == 3 && strcmp(argv[2], "sets") == 0;
	gates = argc == 3 && strcmp(argv[2], "gates") == 0;
	hold.path = argc == 3 && !sets && !gates ? argv[2] : NULL;
	if (argc < 2 || argc > 3 || strlen(argv[1]) >= sizeof(address.sun_path)) {
		fprintf(stderr, "usage: steerer SOCKET [sets | gates | HOLD]\n");
		return 2;
	}
	find_gpu();
	strcpy(address.sun_path, argv[1]);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    listen(listener, PROGRAMS) < 0) {
		fail(argv[1]);
	}
	do {
		serve(listener);
	} while (n_programs > 0 || told.changes == 0);
	printf("{\"jobs\":%llu,\"launches\":%llu,\"requests\":%llu,\"changes\":%llu,"
	       "\"unconfined\":%llu,\"relapses\":%llu}\n",
	       told.jobs, told.launches, told.requests, told.changes, told.unconfined,
	       told.relapses);
	return 0;
}
