/*
 * terms.c: see terms.h.
 */
#include "daemon/session/terms.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/base/util.h"
#include "daemon/gpu/inventory.h"

_Static_assert(SCHED_GPUS_MAX <= PROTO_TERMS_GPUS_MAX, "each GPU has a word");

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

/* The program may rely on its size, and can't write it where the kernel knows how to forbid that.
 * Return: 0 or -errno. */
static int seal(int fd) {
	int seals = F_SEAL_SHRINK | F_SEAL_GROW;

	if (fcntl(fd, F_ADD_SEALS, seals | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0) {
		return 0;
	}
	return fcntl(fd, F_ADD_SEALS, seals | F_SEAL_SEAL) < 0 ? -errno : 0;
}

int session_terms_open(struct session_terms *t, const struct inventory *inventory, int *ret_fd) {
	_cleanup_close_ int fd = memfd_create("sbeet-terms", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct terms_page *page;
	int r;

	if (fd < 0 || ftruncate(fd, sizeof(*page)) < 0) {
		return -errno;
	}
	page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		return -errno;
	}
	r = seal(fd);
	if (r < 0) {
		munmap(page, sizeof(*page));
		return r;
	}
	page->magic = PROTO_TERMS_MAGIC;
	page->version = PROTO_TERMS_VERSION;
	page->n_gpus = (uint32_t)inventory_n_gpus(inventory);
	for (size_t i = 0; i < page->n_gpus; i++) {
		memcpy(page->gpu[i].uuid, inventory_gpu(inventory, i)->uuid, PROTO_UUID_BYTES);
	}
	session_terms_close(t);
	t->page = page;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

void session_terms_close(struct session_terms *t) {
	if (t->page) {
		munmap(t->page, sizeof(*t->page));
	}
	*t = (struct session_terms){.page = NULL};
}

bool session_terms_set(struct session_terms *t, size_t gpu, const struct terms *terms, nsec_t now) {
	struct terms *held = &t->now[gpu];
	uint16_t epoch = (uint16_t)(held->epoch + 1);

	if (terms_equal(held, terms)) {
		return false;
	}
	*held = *terms;
	held->epoch = epoch; /* goes on where a word does not steer, too */
	t->since[gpu] = now;
	atomic_store_explicit(&t->page->gpu[gpu].word, terms_pack(held), memory_order_release);
	return true;
}
