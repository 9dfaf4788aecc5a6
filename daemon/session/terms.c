/*
 * terms.c: see terms.h.
 */
#include "daemon/session/terms.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/base/memfile.h"
#include "daemon/gpu/inventory.h"

_Static_assert(SCHED_GPUS_MAX <= PROTO_TERMS_GPUS_MAX, "each GPU has a word");

int session_terms_open(struct session_terms *t, const struct inventory *inventory, int *ret_fd) {
	struct terms_page *page;
	void *map;
	int fd = memfile_new("sbeet-terms", sizeof(*page), false, &map);

	if (fd < 0) {
		return fd;
	}
	page = map;
	page->magic = PROTO_TERMS_MAGIC;
	page->version = PROTO_TERMS_VERSION;
	page->n_gpus = (uint32_t)inventory_n_gpus(inventory);
	for (size_t i = 0; i < page->n_gpus; i++) {
		memcpy(page->gpu[i].uuid, inventory_gpu(inventory, i)->uuid, PROTO_UUID_BYTES);
	}
	session_terms_close(t);
	t->page = page;
	*ret_fd = fd;
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

void session_terms_record_ops(struct session_terms *t, bool on) {
	if (t->page) {
		atomic_store_explicit(&t->page->record_ops, on, memory_order_release);
	}
}

void session_terms_set_due(struct session_terms *t, size_t gpu, nsec_t deadline, nsec_t tail,
			   nsec_t period) {
	/* What can't be in time any more still has a deadline. */
	nsec_t due = deadline > tail ? deadline - tail : deadline > 0;
	nsec_t late_due = deadline > 0 && period > deadline ? due + period - deadline : 0;

	atomic_store_explicit(&t->page->copy_late_due_ns[gpu], late_due, memory_order_release);
	atomic_store_explicit(&t->page->gpu[gpu].copy_due_ns, due, memory_order_release);
	atomic_store_explicit(&t->page->deadline_ns[gpu], deadline, memory_order_release);
}

void session_terms_set_next(struct session_terms *t, size_t gpu, nsec_t period, nsec_t lead) {
	atomic_store_explicit(&t->page->lead_ns[gpu], lead, memory_order_release);
	atomic_store_explicit(&t->page->period_ns[gpu], period, memory_order_release);
}

void session_terms_set_kernel(struct session_terms *t, size_t gpu, nsec_t kernel) {
	atomic_store_explicit(&t->page->kernel_ns[gpu], kernel, memory_order_release);
}
