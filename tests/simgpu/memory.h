/*
 * memory.h: the device memory of one simulated GPU: an arena of device addresses over host memory,
 * cut into allocations that belong to a context each.
 *
 * Every allocation starts on a page and is followed by a page that belongs to nobody, so an index
 * that runs out of its array faults instead of reading its neighbour. Who may touch what is decided
 * by the owner: an address of another context resolves to nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_alloc {
	uint64_t start; /* device address */
	uint64_t size;	/* as asked for */
	uint64_t pages; /* bytes taken, guard included */
	const void *owner;
};

struct memory {
	uint8_t *host; /* owned mapping of the arena */
	int fd;	       /* owned memfd behind it */
	uint64_t base; /* device address of its first byte */
	uint64_t size;
	uint64_t used;		     /* bytes in allocations, without guards */
	struct memory_alloc *allocs; /* owned, sorted by start */
	size_t n_allocs, capacity;
	uint64_t rover; /* next address to try: fresh addresses first, so that stale pointers fault
			 */
};

/* Return: 0 or negative errno of memfd_create or mmap. Pages cost nothing before they are used. */
int memory_init(struct memory *m, uint64_t base, uint64_t size);
void memory_deinit(struct memory *m);

/* Fresh memory is zero. Return: 0; -EINVAL for size 0; -ENOMEM. */
int memory_alloc(struct memory *m, uint64_t size, const void *owner, uint64_t *ret_addr);

/* @addr: start of an allocation of @owner. Return: 0 or -EINVAL. The pages go back to the host. */
int memory_free(struct memory *m, uint64_t addr, const void *owner);
void memory_free_owner(struct memory *m, const void *owner);

/* The allocation that holds @addr, or NULL. */
const struct memory_alloc *memory_find(const struct memory *m, uint64_t addr);

/* Host address of @size bytes inside one allocation of @owner, else NULL. @ret_start and @ret_end
 * (may be NULL): its bounds, device addresses. */
uint8_t *memory_resolve(const struct memory *m, uint64_t addr, uint64_t size, const void *owner,
			uint64_t *ret_start, uint64_t *ret_end);
