/*
 * interp-memory.c: state spaces, address translation, loads and stores.
 *
 * Generic addresses: windows for shared, local and parameter memory (interp.h), all else is device
 * memory, which constants live in too. Every access is checked; device memory through the device
 * model's resolve(), whose last answers the block keeps for as long as it runs.
 *
 * Single accesses are host atomics (relaxed unless PTX says more): blocks run in several host
 * threads, and a GPU never tears an aligned access.
 */
#include "tests/simgpu/interp-internal.h"

static const char *space_text(unsigned space) {
	switch (space) {
	case PTX_SPACE_SHARED:
		return "outside of the block's shared memory";
	case PTX_SPACE_LOCAL:
		return "outside of the thread's local memory";
	case PTX_SPACE_PARAM:
		return "outside of the kernel's parameters";
	default:
		return "outside of any allocation";
	}
}

static uint8_t *address_fault(struct warp *w, const struct insn *in, unsigned lane, uint64_t addr,
			      unsigned size, bool write, unsigned space) {
	warp_fault(w, in, lane, INTERP_FAULT_ADDRESS, "%s of %u bytes at 0x%llx, %s",
		   write ? "write" : "read", size, (unsigned long long)addr, space_text(space));
	return NULL;
}

/* Asks the device model and remembers the answer. */
static uint8_t *global_miss(struct interp_block *b, uint64_t addr, size_t size, bool write) {
	const struct interp_memory *m = &b->machine.memory;
	uint64_t start = 0, end = 0;
	uint8_t *host = m->resolve(m->userdata, addr, size, write, &start, &end);

	if (host && start <= addr && end >= addr + size) {
		b->tlb[b->tlb_next] = (struct tlb_entry){start, end, host - (addr - start), write};
		b->tlb_next = (b->tlb_next + 1) % BLOCK_TLB;
	}
	return host;
}

static inline uint8_t *global_address(struct interp_block *b, uint64_t addr, size_t size,
				      bool write) {
	for (unsigned k = 0; k < BLOCK_TLB; k++) {
		const struct tlb_entry *t = &b->tlb[k];

		if (addr >= t->start && addr < t->end && t->end - addr >= size &&
		    (t->write || !write)) {
			return t->host + (addr - t->start);
		}
	}
	return global_miss(b, addr, size, write);
}

/* A window's space, and the address inside it; global for all else. */
static inline unsigned generic_space(uint64_t *addr) {
	if (*addr - INTERP_SHARED_WINDOW >= 3 * INTERP_WINDOW_SIZE) {
		return PTX_SPACE_GLOBAL;
	}
	if (*addr < INTERP_LOCAL_WINDOW) {
		*addr -= INTERP_SHARED_WINDOW;
		return PTX_SPACE_SHARED;
	}
	if (*addr < INTERP_PARAM_WINDOW) {
		*addr -= INTERP_LOCAL_WINDOW;
		return PTX_SPACE_LOCAL;
	}
	*addr -= INTERP_PARAM_WINDOW;
	return PTX_SPACE_PARAM;
}

static inline uint8_t *space_address(struct warp *w, unsigned lane, unsigned space, uint64_t addr,
				     size_t size, bool write) {
	struct interp_block *b = w->block;

	switch (space) {
	case PTX_SPACE_SHARED:
		return addr < b->shared_size && b->shared_size - addr >= size ? b->shared + addr
									      : NULL;
	case PTX_SPACE_LOCAL:
		return addr < w->local_stride && w->local_stride - addr >= size
			       ? w->local + (size_t)lane * w->local_stride + addr
			       : NULL;
	case PTX_SPACE_PARAM: {
		size_t n = b->launch.params_size;

		/* Kernel parameters are constant. */
		return !write && addr < n && n - addr >= size
			       ? (uint8_t *)(uintptr_t)b->launch.params + addr
			       : NULL;
	}
	default:
		return global_address(b, addr, size, write);
	}
}

/* Eight bytes at most, all written: the usual question. */
static inline bool all_written(const uint8_t *written, unsigned size) {
	uint64_t eight = 0;
	uint32_t four;

	if (size == 4) {
		memcpy(&four, written, 4);
		return four == 0x01010101u;
	}
	if (size <= 8) {
		memcpy(&eight, written, size);
		return eight == (0x0101010101010101ull & (UINT64_MAX >> (64 - 8 * size)));
	}
	for (unsigned i = 0; i < size; i++) {
		if (!written[i]) {
			return false;
		}
	}
	return true;
}

/* Shared memory holds nothing before somebody writes it: who reads it then has come too early, or
 * somebody else forgot to write. Return: false after a fault. */
static bool shared_touch(struct warp *w, const struct insn *in, unsigned lane, uint64_t at,
			 unsigned size, enum mem_access access) {
	uint8_t *written = w->block->shared_written + at;

	if (access != MEM_WRITE && !all_written(written, size)) {
		warp_fault(w, in, lane, INTERP_FAULT_UNINITIALISED,
			   "read of %u bytes at 0x%llx of shared memory that no thread of the "
			   "block has written yet",
			   size, (unsigned long long)at);
		return false;
	}
	if (access != MEM_READ) {
		memset(written, 1, size);
	}
	return true;
}

uint8_t *mem_address(struct warp *w, const struct insn *in, unsigned lane, uint64_t addr,
		     unsigned size, unsigned align, enum mem_access access) {
	bool write = access != MEM_READ;
	unsigned space = in->space;
	uint64_t inside = addr;
	uint8_t *host;

	if (space == PTX_SPACE_NONE) {
		space = generic_space(&inside);
	} else if (space != PTX_SPACE_GLOBAL) {
		inside = (uint32_t)addr; /* addresses of these spaces have 32 bits */
	}
	if (inside & (align - 1)) {
		warp_fault(w, in, lane, INTERP_FAULT_ALIGNMENT,
			   "%s of %u bytes at 0x%llx, which is not aligned to %u",
			   write ? "write" : "read", size, (unsigned long long)addr, align);
		return NULL;
	}
	host = space_address(w, lane, space, inside, size, write);
	if (!host) {
		return address_fault(w, in, lane, addr, size, write, space);
	}
	if (space == PTX_SPACE_SHARED && !shared_touch(w, in, lane, inside, size, access)) {
		return NULL;
	}
	return host;
}

uint8_t *mem_try(struct warp *w, unsigned lane, uint64_t addr, size_t size) {
	unsigned space = generic_space(&addr);

	return space_address(w, lane, space, addr, size, false);
}

/* One element; the type says how it is extended. */
static inline uint64_t load(const uint8_t *p, unsigned type) {
	switch (type) {
	case PTX_TYPE_B8:
	case PTX_TYPE_U8:
		return __atomic_load_n(p, __ATOMIC_RELAXED);
	case PTX_TYPE_S8:
		return (uint64_t)(int8_t)__atomic_load_n(p, __ATOMIC_RELAXED);
	case PTX_TYPE_B16:
	case PTX_TYPE_U16:
	case PTX_TYPE_F16:
	case PTX_TYPE_BF16:
		return __atomic_load_n((const uint16_t *)(const void *)p, __ATOMIC_RELAXED);
	case PTX_TYPE_S16:
		return (uint64_t)(int16_t)__atomic_load_n((const uint16_t *)(const void *)p,
							  __ATOMIC_RELAXED);
	case PTX_TYPE_S32:
		return (uint64_t)(int32_t)__atomic_load_n((const uint32_t *)(const void *)p,
							  __ATOMIC_RELAXED);
	case PTX_TYPE_B64:
	case PTX_TYPE_U64:
	case PTX_TYPE_S64:
	case PTX_TYPE_F64:
		return __atomic_load_n((const uint64_t *)(const void *)p, __ATOMIC_RELAXED);
	default:
		return __atomic_load_n((const uint32_t *)(const void *)p, __ATOMIC_RELAXED);
	}
}

static inline void store(uint8_t *p, unsigned bytes, uint64_t v) {
	switch (bytes) {
	case 1:
		__atomic_store_n(p, (uint8_t)v, __ATOMIC_RELAXED);
		break;
	case 2:
		__atomic_store_n((uint16_t *)(void *)p, (uint16_t)v, __ATOMIC_RELAXED);
		break;
	case 4:
		__atomic_store_n((uint32_t *)(void *)p, (uint32_t)v, __ATOMIC_RELAXED);
		break;
	default:
		__atomic_store_n((uint64_t *)(void *)p, v, __ATOMIC_RELAXED);
		break;
	}
}

/* Acquire and release at once cost a GPU simulation nothing: relaxed and volatile get them too. */
static inline void order(struct warp *w, const struct insn *in) {
	if (in->flags & INSN_ORDERED) {
		w->polls++;
		if (in->space != PTX_SPACE_SHARED) {
			__atomic_thread_fence(__ATOMIC_SEQ_CST);
		}
	}
}

/* Scalars of device memory that is hit in one allocation, all lanes: the loop that kernels live in.
 */
#define LOAD_RUN(T)                                                                          \
	FOR_LANES(                                                                           \
		mask, uint64_t a = base[i] + offset;                                         \
		if (a - t->start > room || (a & (sizeof(T) - 1))) { return false; } d[i] =   \
			__atomic_load_n((const T *)(const void *)(t->host + (a - t->start)), \
					__ATOMIC_RELAXED));                                  \
	return true

/* Return: whether all was done; if not, the general way does it again, with all checks. */
static bool load_run(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *base = warp_src(w, in->s[0]);
	uint64_t *d = warp_dst(w, in->d[0]);
	uint64_t offset = (uint64_t)in->imm, first = base[__builtin_ctz(mask)] + offset, room;
	unsigned bytes = ptx_type_bytes(in->type);
	const struct tlb_entry *t = w->block->tlb;

	/* The destination may be the address. */
	if (in->d[0] == in->s[0]) {
		return false;
	}
	if (first < t->start || first >= t->end) {
		t++;
		if (first < t->start || first >= t->end) {
			t++;
		}
	}
	if (first < t->start || t->end - t->start < bytes) {
		return false;
	}
	room = t->end - t->start - bytes;
	if (bytes == 4 && in->type != PTX_TYPE_S32) {
		LOAD_RUN(uint32_t);
	}
	if (bytes == 8) {
		LOAD_RUN(uint64_t);
	}
	return false;
}

enum exec_result mem_ld(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *base = warp_src(w, in->s[0]);
	unsigned bytes = ptx_type_bytes(in->type), n = in->n;

	if (n == 1 && in->d[0] >= 0 && in->space == PTX_SPACE_GLOBAL &&
	    !(in->flags & INSN_ORDERED) && load_run(w, in, mask)) {
		return EXEC_NEXT;
	}
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		const uint8_t *p = mem_address(w, in, i, base[i] + (uint64_t)in->imm, bytes * n,
					       bytes * n, MEM_READ);

		if (!p) {
			return EXEC_FAULT;
		}
		for (unsigned k = 0; k < n; k++) {
			uint64_t v = load(p + k * bytes, in->type);

			if (in->d[k] >= 0) {
				warp_dst(w, in->d[k])[i] = v;
			}
		}
	}
	order(w, in);
	return EXEC_NEXT;
}

enum exec_result mem_st(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *base = warp_src(w, in->s[0]);
	unsigned bytes = ptx_type_bytes(in->type), n = in->n;

	order(w, in);
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint8_t *p = mem_address(w, in, i, base[i] + (uint64_t)in->imm, bytes * n,
					 bytes * n, MEM_WRITE);

		if (!p) {
			return EXEC_FAULT;
		}
		for (unsigned k = 0; k < n; k++) {
			/* A store's values stand in d: s holds the address alone. */
			store(p + k * bytes, bytes, warp_src(w, in->d[k])[i]);
		}
	}
	return EXEC_NEXT;
}

/* Kernel parameters by name: the same for all. */
enum exec_result mem_ld_param(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint8_t *params = w->block->launch.params;
	unsigned bytes = ptx_type_bytes(in->type);

	for (unsigned k = 0; k < in->n; k++) {
		uint64_t v = load(params + in->imm + k * bytes, in->type);

		if (in->d[k] >= 0) {
			uint64_t *d = warp_dst(w, in->d[k]);

			FOR_LANES(mask, d[i] = v);
		}
	}
	return EXEC_NEXT;
}

enum exec_result mem_fence(struct warp *w, const struct insn *in, uint32_t mask) {
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return EXEC_NEXT;
}

/* imm: bytes to write, of which s[2] (if there) says how many are read; the rest are zeros. s[3]: a
 * predicate to ignore the source. Synchronous: done before anyone can wait for it. */
enum exec_result mem_cp_async(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *to = warp_src(w, in->s[0]), *from = warp_src(w, in->s[1]);
	const uint64_t *limit = warp_src(w, in->s[2]);
	uint32_t ignore = warp_pred_src(w, in, 3);
	struct insn there = *in, here = *in;

	there.space = PTX_SPACE_GLOBAL;
	here.space = PTX_SPACE_SHARED;
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left), size = in->n;
		unsigned read = ignore >> i & 1 ? 0 : (uint32_t)limit[i];
		const uint8_t *source = NULL;
		uint8_t *p =
			mem_address(w, &here, i, to[i] + (uint64_t)in->imm, size, size, MEM_WRITE);

		read = read > size ? size : read;
		if (p && read) {
			source = mem_address(w, &there, i, from[i] + in->target, read, size,
					     MEM_READ);
		}
		if (!p || (read && !source)) {
			return EXEC_FAULT;
		}
		memset(p, 0, size);
		if (read) {
			memcpy(p, source, read);
		}
	}
	return EXEC_NEXT;
}

static uint64_t window_of(unsigned space) {
	switch (space) {
	case PTX_SPACE_SHARED:
		return INTERP_SHARED_WINDOW;
	case PTX_SPACE_LOCAL:
		return INTERP_LOCAL_WINDOW;
	case PTX_SPACE_PARAM:
		return INTERP_PARAM_WINDOW;
	default:
		return 0;
	}
}

/* mode: 0 from the space to generic, 1 back. */
enum exec_result mem_cvta(struct warp *w, const struct insn *in, uint32_t mask) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *a = warp_src(w, in->s[0]);
	uint64_t window = window_of(in->space), delta = in->mode ? 0 - window : window;
	uint64_t keep = window && !in->mode ? UINT32_MAX : UINT64_MAX;

	FOR_LANES(mask, d[i] = (a[i] & keep) + delta);
	return EXEC_NEXT;
}

enum exec_result mem_isspacep(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *a = warp_src(w, in->s[0]);
	uint32_t out = 0;

	FOR_LANES(mask, {
		uint64_t addr = a[i];

		out |= (uint32_t)(generic_space(&addr) == in->space) << i;
	});
	warp_set_pred(w, in->d[0], out, mask);
	return EXEC_NEXT;
}
