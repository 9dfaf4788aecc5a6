/*
 * steerer.c: stands in for an sbeetd that changes its mind every millisecond: programs on GPU 0 are
 * steered to another set of SMs and another level each time, or to the whole GPU, at random.
 *
 * usage: steerer SOCKET [sets]. Listens there and ends when the last program has gone. Then it says
 * what it was told, as JSON: jobs, launches, how often a job was asked for (never), changes, how
 * many jobs ran beside their set, and how many of those behind the first ones. `sets`: never the
 * whole GPU, and one set until the first jobs were told of.
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

#include "proto/limits.h"
#include "proto/packet.h"
#include "proto/terms.h"
#include "sbeet.pb-c.h"

#define PROGRAMS 16
#define FIRST	 20 /* jobs of a program in one set, if it is to have sets only */
#define GROUP	 8 /* whatever the GPU's groups are, eight SMs are some of them */

struct program {
	int fd;
	unsigned jobs;
	struct terms_page *page;
};

static struct program programs[PROGRAMS];
static unsigned n_programs, n_gpu_sms;
static uint8_t uuid[PROTO_UUID_BYTES];
static struct { unsigned long long jobs, launches, requests, changes, unconfined, relapses; } told;
static bool sets; /* never the whole GPU */

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
			  .epoch = (uint16_t)told.changes};

	if (sets || below(4) > 0) {
		t.group = GROUP;
		t.first = below(n);
		t.n = 1 + below(n - t.first);
	}
	return t;
}

static int make_page(struct program *p) {
	int fd = memfd_create("terms", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, sizeof(*p->page)) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
		fail("memfd");
	}
	p->page = mmap(NULL, sizeof(*p->page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p->page == MAP_FAILED) {
		fail("mmap");
	}
	p->page->magic = PROTO_TERMS_MAGIC;
	p->page->version = PROTO_TERMS_VERSION;
	p->page->n_gpus = 1;
	memcpy(p->page->gpu[0].uuid, uuid, sizeof(uuid));
	return fd;
}

static void change(struct program *p) {
	struct terms t = any_terms();

	atomic_store_explicit(&p->page->gpu[0].word, terms_pack(&t), memory_order_release);
	told.changes++;
}

static void welcome(struct program *p) {
	char terms[] = PROTO_FEATURE_TERMS, counts[] = PROTO_FEATURE_COUNTS,
	     *features[] = {terms, counts};
	Sbeet__Welcome body = SBEET__WELCOME__INIT;
	Sbeet__ToShim m = SBEET__TO_SHIM__INIT;
	int fd = make_page(p);

	change(p);
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
		if (programs[i].page && (!sets || programs[i].jobs >= FIRST)) {
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
	if ((argc != 2 && !sets) || strlen(argv[1]) >= sizeof(address.sun_path)) {
		fprintf(stderr, "usage: steerer SOCKET [sets]\n");
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
