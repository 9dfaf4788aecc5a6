/*
 * interp-atom.c: atom and red.
 *
 * On device memory they are host atomics, sequentially consistent, whatever order and scope the
 * instruction asks for: never weaker than asked.
 */
#include "tests/simgpu/interp-internal.h"

static uint64_t narrow(uint64_t v, unsigned type) {
	switch (type) {
	case PTX_TYPE_S16:
		return (uint64_t)(int16_t)v;
	case PTX_TYPE_S32:
		return (uint64_t)(int32_t)v;
	case PTX_TYPE_S64:
		return v;
	default:
		return ptx_type_bytes(type) == 8
			       ? v
			       : v & (((uint64_t)1 << 8 * ptx_type_bytes(type)) - 1);
	}
}

static uint64_t add_f32(uint64_t a, uint64_t b, bool ftz) {
	uint32_t x = (uint32_t)a, y = (uint32_t)b, bits;
	float fx, fy, sum;

	if (ftz) {
		x = x & 0x7f800000 ? x : x & 0x80000000;
		y = y & 0x7f800000 ? y : y & 0x80000000;
	}
	memcpy(&fx, &x, sizeof(fx));
	memcpy(&fy, &y, sizeof(fy));
	sum = fx + fy;
	memcpy(&bits, &sum, sizeof(bits));
	if (sum != sum) {
		return 0x7fffffff;
	}
	return ftz && !(bits & 0x7f800000) ? bits & 0x80000000 : bits;
}

static uint64_t add_f64(uint64_t a, uint64_t b) {
	double x, y;

	memcpy(&x, &a, sizeof(x));
	memcpy(&y, &b, sizeof(y));
	x += y;
	memcpy(&a, &x, sizeof(a));
	return a;
}

static uint16_t half_op(uint16_t a, uint16_t b, unsigned op, bool bfloat) {
	double x = bfloat ? bfloat_to_double(a) : half_to_double(a);
	double y = bfloat ? bfloat_to_double(b) : half_to_double(b);

	if (op == ATOM_ADD) {
		x = half_sum_to_odd(x, y);
	} else if (x != x || (op == ATOM_MIN ? y < x : y > x)) {
		x = y;
	}
	return bfloat ? bfloat_from_double(x, ROUND_RN) : half_from_double(x, ROUND_RN);
}

static uint64_t add_float(const struct insn *in, uint64_t a, uint64_t b) {
	bool bfloat = in->type == PTX_TYPE_BF16 || in->type == PTX_TYPE_BF16X2;

	switch (in->type) {
	case PTX_TYPE_F32:
		/* Hardware flushes denormals of f32 sums in device memory. */
		return add_f32(a, b, in->space == PTX_SPACE_GLOBAL);
	case PTX_TYPE_F64:
		return add_f64(a, b);
	case PTX_TYPE_F16:
	case PTX_TYPE_BF16:
		return half_op((uint16_t)a, (uint16_t)b, in->mode, bfloat);
	default:
		return (uint64_t)half_op((uint16_t)(a >> 16), (uint16_t)(b >> 16), in->mode, bfloat)
			       << 16 |
		       half_op((uint16_t)a, (uint16_t)b, in->mode, bfloat);
	}
}

static bool is_float(unsigned type) {
	return type >= PTX_TYPE_F16 && type <= PTX_TYPE_F64;
}

static bool is_signed(unsigned type) {
	return type >= PTX_TYPE_S8 && type <= PTX_TYPE_S64;
}

/* The value that the operation leaves in memory. Operands are narrowed to the type. */
static uint64_t new_value(const struct insn *in, uint64_t old, uint64_t b, uint64_t c) {
	bool less;

	switch (in->mode) {
	case ATOM_ADD:
		return is_float(in->type) ? add_float(in, old, b) : old + b;
	case ATOM_AND:
		return old & b;
	case ATOM_OR:
		return old | b;
	case ATOM_XOR:
		return old ^ b;
	case ATOM_EXCH:
		return b;
	case ATOM_CAS:
		return old == b ? c : old;
	case ATOM_INC:
		return old >= b ? 0 : old + 1;
	case ATOM_DEC:
		return old == 0 || old > b ? b : old - 1;
	default:
		if (is_float(in->type)) {
			return add_float(in, old, b);
		}
		less = is_signed(in->type) ? (int64_t)b < (int64_t)old : b < old;
		return less == (in->mode == ATOM_MIN) ? b : old;
	}
}

#define ATOM_LOOP(T)                                                                               \
	do {                                                                                       \
		T *at = (T *)(void *)p, old = __atomic_load_n(at, __ATOMIC_SEQ_CST);               \
		while (!__atomic_compare_exchange_n(at, &old,                                      \
						    (T)new_value(in, narrow(old, in->type), b, c), \
						    false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {  \
		}                                                                                  \
		return old;                                                                        \
	} while (0)

/* Reads, computes and writes as one step; returns what was there. */
static uint64_t atom_one(const struct insn *in, uint8_t *p, uint64_t b, uint64_t c) {
	b = narrow(b, in->type);
	c = narrow(c, in->type);
	switch (ptx_type_bytes(in->type)) {
	case 2:
		ATOM_LOOP(uint16_t);
	case 4:
		ATOM_LOOP(uint32_t);
	default:
		ATOM_LOOP(uint64_t);
	}
}

enum exec_result mem_atom(struct warp *w, const struct insn *in, uint32_t mask) {
	const uint64_t *base = warp_src(w, in->s[0]), *b = warp_src(w, in->s[1]);
	const uint64_t *c = warp_src(w, in->s[2]);
	enum mem_access access = in->mode == ATOM_EXCH ? MEM_WRITE : MEM_UPDATE;
	unsigned bytes = ptx_type_bytes(in->type);

	w->polls++;
	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint8_t *p =
			mem_address(w, in, i, base[i] + (uint64_t)in->imm, bytes, bytes, access);
		uint64_t old;

		if (!p) {
			return EXEC_FAULT;
		}
		old = atom_one(in, p, b[i], c[i]);
		if (in->d[0] >= 0) {
			warp_dst(w, in->d[0])[i] = old;
		}
	}
	return EXEC_NEXT;
}
