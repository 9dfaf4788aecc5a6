/*
 * interp-half.c: f16 and bf16, single and in pairs.
 *
 * Values go through double: every sum and product that is formed here is either exact there or
 * rounded to odd, so that the one rounding to 11 or 8 bits that follows is right.
 */
#include "tests/simgpu/interp-internal.h"

#include <math.h>

/* A small binary format: bits of fraction, exponent bias, canonical NaN. */
struct small_format {
	unsigned fraction;
	int bias;
	uint16_t nan, infinity, largest;
};
static const struct small_format half_format = {10, 15, 0x7fff, 0x7c00, 0x7bff};
static const struct small_format bfloat_format = {7, 127, 0x7fff, 0x7f80, 0x7f7f};

static double small_to_double(uint16_t bits, const struct small_format *f) {
	int exponent = (bits & 0x7fff) >> f->fraction;
	int fraction = bits & ((1 << f->fraction) - 1);
	double v;

	if ((bits & 0x7fff) >= f->infinity) {
		v = fraction ? NAN : INFINITY;
	} else if (exponent == 0) {
		v = ldexp(fraction, 1 - f->bias - (int)f->fraction);
	} else {
		v = ldexp(fraction + (1 << f->fraction), exponent - f->bias - (int)f->fraction);
	}
	return bits & 0x8000 ? -v : v;
}

static bool round_up(double rest, bool odd, bool negative, enum insn_round round) {
	switch (round) {
	case ROUND_RZ:
		return false;
	case ROUND_RM:
		return negative && rest > 0;
	case ROUND_RP:
		return !negative && rest > 0;
	case ROUND_RNA:
		return rest >= 0.5;
	default:
		return rest > 0.5 || (rest == 0.5 && odd);
	}
}

static uint16_t small_from_double(double value, enum insn_round round,
				  const struct small_format *f) {
	bool negative = signbit(value);
	uint16_t sign = negative ? 0x8000 : 0;
	double m = fabs(value), scaled;
	int exponent, least = 1 - f->bias - (int)f->fraction;
	uint32_t n;

	if (value != value) {
		return f->nan;
	}
	if (isinf(value)) {
		return sign | f->infinity;
	}
	if (m == 0) {
		return sign;
	}
	frexp(m, &exponent); /* m = x * 2^exponent, x in [0.5, 1) */
	/* The weight of the last place, not below that of denormals. */
	exponent = exponent - 1 - (int)f->fraction;
	if (exponent < least) {
		exponent = least;
	}
	if (exponent > f->bias) {
		scaled = 0; /* far too large */
		n = UINT16_MAX;
	} else {
		scaled = ldexp(m, -exponent);
		n = (uint32_t)scaled;
		n += round_up(scaled - n, n & 1, negative, round);
		/* n has fraction + 1 bits, or one fewer if denormal: adding carries over rightly.
		 */
		n += (uint32_t)(exponent - least) << f->fraction;
	}
	if (n >= f->infinity) {
		bool clamp = round == ROUND_RZ || (round == ROUND_RM && !negative) ||
			     (round == ROUND_RP && negative);

		n = clamp ? f->largest : f->infinity;
	}
	return sign | (uint16_t)n;
}

double half_to_double(uint16_t bits) {
	return small_to_double(bits, &half_format);
}

double bfloat_to_double(uint16_t bits) {
	return small_to_double(bits, &bfloat_format);
}

uint16_t half_from_double(double value, enum insn_round round) {
	return small_from_double(value, round, &half_format);
}

uint16_t bfloat_from_double(double value, enum insn_round round) {
	return small_from_double(value, round, &bfloat_format);
}

/* a + b, rounded to odd: keeps enough for one more rounding to a shorter format. */
double half_sum_to_odd(double a, double b) {
	double s = a + b, bb = s - a, error = (a - (s - bb)) + (b - bb);
	uint64_t bits;

	if (error == 0 || !isfinite(s)) {
		return s;
	}
	memcpy(&bits, &s, sizeof(bits));
	if (!(bits & 1)) {
		/* Towards the exact value, whose neighbour in that direction is odd. */
		s = nextafter(s, error > 0 ? INFINITY : -INFINITY);
	}
	return s;
}

enum half_op {
	HALF_ADD,
	HALF_SUB,
	HALF_MUL,
	HALF_FMA,
	HALF_MIN,
	HALF_MAX,
	HALF_ABS,
	HALF_NEG,
	HALF_EX2,
	HALF_TANH,
};

static double half_choose(double a, double b, bool nan, bool max) {
	if (a != a || b != b) {
		return nan ? NAN : a != a ? b : a;
	}
	if (a == b) {
		return signbit(a) == max ? b : a;
	}
	return (a < b) == max ? b : a;
}

static double half_compute(enum half_op op, double a, double b, double c, bool nan) {
	switch (op) {
	case HALF_ADD:
		return half_sum_to_odd(a, b);
	case HALF_SUB:
		return half_sum_to_odd(a, -b);
	case HALF_MUL:
		return a * b;
	case HALF_FMA:
		return half_sum_to_odd(a * b, c);
	case HALF_MIN:
	case HALF_MAX:
		return half_choose(a, b, nan, op == HALF_MAX);
	case HALF_EX2:
		return exp2(a);
	default:
		return tanh(a);
	}
}

static uint16_t half_flush(uint16_t bits, const struct small_format *f, uint16_t flags) {
	bool denormal = !((bits & 0x7fff) >> f->fraction);

	return flags & INSN_FTZ && denormal ? bits & 0x8000 : bits;
}

static uint16_t half_lane(const struct insn *in, enum half_op op, const struct small_format *f,
			  uint16_t a, uint16_t b, uint16_t c) {
	double v;

	a = half_flush(a, f, in->flags);
	if (op == HALF_ABS || op == HALF_NEG) {
		return op == HALF_ABS ? a & 0x7fff : a ^ 0x8000;
	}
	b = half_flush(b, f, in->flags);
	c = half_flush(c, f, in->flags);
	v = half_compute(op, small_to_double(a, f), small_to_double(b, f), small_to_double(c, f),
			 in->flags & INSN_NAN);
	if (in->flags & INSN_RELU) {
		v = v < 0 ? 0 : v;
	}
	if (in->flags & INSN_SAT) {
		v = v > 0 ? (v < 1 ? v : 1) : 0;
	}
	return half_flush(small_from_double(v, ROUND_RN, f), f, in->flags);
}

static enum exec_result half_exec(struct warp *w, const struct insn *in, uint32_t mask,
				  enum half_op op) {
	uint64_t *d = warp_dst(w, in->d[0]);
	const uint64_t *pa = warp_src(w, in->s[0]), *pb = warp_src(w, in->s[1]);
	const uint64_t *pc = warp_src(w, in->s[2]);
	bool bfloat = in->type == PTX_TYPE_BF16 || in->type == PTX_TYPE_BF16X2;
	const struct small_format *f = bfloat ? &bfloat_format : &half_format;
	bool pair = in->type == PTX_TYPE_F16X2 || in->type == PTX_TYPE_BF16X2;

	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		uint32_t v =
			half_lane(in, op, f, (uint16_t)pa[i], (uint16_t)pb[i], (uint16_t)pc[i]);

		if (pair) {
			v |= (uint32_t)half_lane(in, op, f, (uint16_t)(pa[i] >> 16),
						 (uint16_t)(pb[i] >> 16), (uint16_t)(pc[i] >> 16))
			     << 16;
		}
		d[i] = v;
	}
	return EXEC_NEXT;
}

#define HALF_HANDLER(name, op)                                                               \
	static enum exec_result name(struct warp *w, const struct insn *in, uint32_t mask) { \
		return half_exec(w, in, mask, op);                                           \
	}
HALF_HANDLER(half_add, HALF_ADD)
HALF_HANDLER(half_sub, HALF_SUB)
HALF_HANDLER(half_mul, HALF_MUL)
HALF_HANDLER(half_fma, HALF_FMA)
HALF_HANDLER(half_min, HALF_MIN)
HALF_HANDLER(half_max, HALF_MAX)
HALF_HANDLER(half_abs, HALF_ABS)
HALF_HANDLER(half_neg, HALF_NEG)
HALF_HANDLER(half_ex2, HALF_EX2)
HALF_HANDLER(half_tanh, HALF_TANH)

#define HALVES(op, operands, handler)                                                   \
	{op, PTX_TYPE_F16, operands, handler}, {op, PTX_TYPE_F16X2, operands, handler}, \
		{op, PTX_TYPE_BF16, operands, handler}, {                               \
		op, PTX_TYPE_BF16X2, operands, handler                                  \
	}

const struct alu_entry alu_half_table[] = {
	HALVES("add", "rrr", half_add),
	HALVES("sub", "rrr", half_sub),
	HALVES("mul", "rrr", half_mul),
	HALVES("fma", "rrrr", half_fma),
	HALVES("min", "rrr", half_min),
	HALVES("max", "rrr", half_max),
	HALVES("abs", "rr", half_abs),
	HALVES("neg", "rr", half_neg),
	HALVES("ex2", "rr", half_ex2),
	HALVES("tanh", "rr", half_tanh),
	{NULL},
};
