/* memory.c: see memory.h. First fit from the rover on, over a sorted array. */
#include "tests/simgpu/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MEMORY_PAGE 4096ull

int memory_init(struct memory *m, uint64_t base, uint64_t size) {
	void *host;
	int fd, r;

	fd = memfd_create("simgpu-device", MFD_CLOEXEC);
	if (fd < 0) {
		return -errno;
	}
	if (ftruncate(fd, (off_t)size) < 0) {
		r = -errno;
		close(fd);
		return r;
	}
	host = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
	if (host == MAP_FAILED) {
		r = -errno;
		close(fd);
		return r;
	}
	*m = (struct memory){.host = host, .fd = fd, .base = base, .size = size, .rover = base};
	return 0;
}

void memory_deinit(struct memory *m) {
	if (!m->host) {
		return;
	}
	munmap(m->host, m->size);
	close(m->fd);
	free(m->allocs);
	*m = (struct memory){.fd = -1};
}

/* Index of the first allocation that starts above @addr. */
static size_t memory_above(const struct memory *m, uint64_t addr) {
	size_t low = 0, high = m->n_allocs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->allocs[mid].start > addr) {
			high = mid;
		} else {
			low = mid + 1;
		}
	}
	return low;
}

const struct memory_alloc *memory_find(const struct memory *m, uint64_t addr) {
	size_t i = memory_above(m, addr);

	if (i == 0 || addr - m->allocs[i - 1].start >= m->allocs[i - 1].size) {
		return NULL;
	}
	return &m->allocs[i - 1];
}

uint8_t *memory_resolve(const struct memory *m, uint64_t addr, uint64_t size, const void *owner,
			uint64_t *ret_start, uint64_t *ret_end) {
	const struct memory_alloc *a = memory_find(m, addr);

	if (!a || a->owner != owner || size > a->size - (addr - a->start)) {
		return NULL;
	}
	if (ret_start) {
		*ret_start = a->start;
		*ret_end = a->start + a->size;
	}
	return m->host + (addr - m->base);
}

/* The first gap of @pages bytes in [@from, @to). Return: its address, or 0; @ret_index: where in
 * the array an allocation there belongs. */
static uint64_t memory_gap(const struct memory *m, uint64_t from, uint64_t to, uint64_t pages,
			   size_t *ret_index) {
	size_t i = memory_above(m, from);
	uint64_t at = from;

	if (i > 0 && m->allocs[i - 1].start + m->allocs[i - 1].pages > at) {
		at = m->allocs[i - 1].start + m->allocs[i - 1].pages;
	}
	for (; at + pages <= to; i++) {
		if (i == m->n_allocs || m->allocs[i].start - at >= pages) {
			*ret_index = i;
			return at;
		}
		at = m->allocs[i].start + m->allocs[i].pages;
	}
	return 0;
}

int memory_alloc(struct memory *m, uint64_t size, const void *owner, uint64_t *ret_addr) {
	uint64_t end = m->base + m->size, pages, at;
	size_t i = 0;

	if (size == 0) {
		return -EINVAL;
	}
	if (size > m->size - m->used) {
		return -ENOMEM;
	}
	if (m->n_allocs == m->capacity) {
		size_t capacity = m->capacity ? m->capacity * 2 : 64;
		struct memory_alloc *more = realloc(m->allocs, capacity * sizeof(*more));

		if (!more) {
			return -ENOMEM;
		}
		m->allocs = more;
		m->capacity = capacity;
	}
	pages = (size + MEMORY_PAGE - 1) / MEMORY_PAGE * MEMORY_PAGE + MEMORY_PAGE;
	at = memory_gap(m, m->rover, end, pages, &i);
	if (at == 0) {
		at = memory_gap(m, m->base, end, pages, &i);
	}
	if (at == 0) {
		return -ENOMEM;
	}
	memmove(&m->allocs[i + 1], &m->allocs[i], (m->n_allocs - i) * sizeof(*m->allocs));
	m->allocs[i] =
		(struct memory_alloc){.start = at, .size = size, .pages = pages, .owner = owner};
	m->n_allocs++;
	m->used += pages - MEMORY_PAGE;
	m->rover = at + pages;
	*ret_addr = at;
	return 0;
}

static void memory_release(struct memory *m, const struct memory_alloc *a) {
	/* Punches a hole into the memfd: the pages are gone, and zero when they come back. */
	(void)madvise(m->host + (a->start - m->base), a->pages, MADV_REMOVE);
	m->used -= a->pages - MEMORY_PAGE;
}

int memory_free(struct memory *m, uint64_t addr, const void *owner) {
	size_t i = memory_above(m, addr);

	if (i == 0 || m->allocs[i - 1].start != addr || m->allocs[i - 1].owner != owner) {
		return -EINVAL;
	}
	i--;
	memory_release(m, &m->allocs[i]);
	m->n_allocs--;
	memmove(&m->allocs[i], &m->allocs[i + 1], (m->n_allocs - i) * sizeof(*m->allocs));
	return 0;
}

void memory_free_owner(struct memory *m, const void *owner) {
	size_t kept = 0;

	for (size_t i = 0; i < m->n_allocs; i++) {
		if (m->allocs[i].owner == owner) {
			memory_release(m, &m->allocs[i]);
		} else {
			m->allocs[kept++] = m->allocs[i];
		}
	}
	m->n_allocs = kept;
}
