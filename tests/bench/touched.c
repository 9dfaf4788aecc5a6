/*
 * touched.c: see touched.h.
 */
#include "touched.h"

#include <string.h>
#include <sys/user.h>

void touched_add(struct touched *t, uintptr_t at) {
	at -= at % TOUCHED_LINE;
	for (unsigned i = 0; i < t->n; i++) {
		if (t->lines[i] == at) {
			return;
		}
	}
	if (t->n < TOUCHED_MAX) {
		t->lines[t->n++] = at;
	}
}

unsigned touched_pages(const struct touched *t) {
	unsigned n = 0;

	for (unsigned i = 0; i < t->n; i++) {
		bool is_new = true;

		for (unsigned k = 0; is_new && k < i; k++) {
			is_new = t->lines[k] / TOUCHED_PAGE != t->lines[i] / TOUCHED_PAGE;
		}
		n += is_new;
	}
	return n;
}

enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

/* What comes before the operands. */
struct opcode {
	const unsigned char *next; /* behind the opcode */
	unsigned char byte, rex;   /* rex: as in that prefix, whatever the encoding */
	enum map map;
	bool vex, small; /* small: 16-bit operands */
	uint64_t segment;
};

static struct opcode read_vex(struct opcode o, const unsigned char *i) {
	static const enum map maps[] = {MAP_0F, MAP_0F, MAP_0F38, MAP_0F3A};

	o.vex = true;
	if (*i == 0xC5) {
		o.rex = i[1] & 0x80 ? 0 : 4;
		o.map = MAP_0F;
		i += 2;
	} else {
		o.rex = (unsigned char)(~i[1] >> 5 & 7);
		o.map = maps[i[1] & 3];
		i += 3;
	}
	o.byte = *i;
	o.next = i + 1;
	return o;
}

static struct opcode read_opcode(const unsigned char *i, const struct user_regs_struct *regs) {
	struct opcode o = {.map = MAP_ONE};

	for (;; i++) {
		if (*i == 0x64) {
			o.segment = regs->fs_base;
		} else if (*i == 0x66) {
			o.small = true;
		} else if (*i != 0xF2 && *i != 0xF3 && *i != 0xF0 && *i != 0x3E && *i != 0x2E) {
			break;
		}
	}
	if ((*i & 0xF0) == 0x40) {
		o.rex = *i++ & 0x0F;
	}
	if (*i == 0xC4 || *i == 0xC5) {
		return read_vex(o, i);
	}
	if (*i == 0x0F) {
		i++;
		o.map = *i == 0x38 ? MAP_0F38 : *i == 0x3A ? MAP_0F3A : MAP_0F;
		i += o.map != MAP_0F;
	}
	o.byte = *i;
	o.next = i + 1;
	return o;
}

static bool has_operand(const struct opcode *o) {
	unsigned char b = o->byte;

	switch (o->map) {
	case MAP_ONE:
		return (b < 0x40 && (b & 7) < 4) || b == 0x63 || b == 0x69 || b == 0x6B ||
		       (b >= 0x80 && b < 0x8D) || b == 0x8F || b == 0xC0 || b == 0xC1 ||
		       b == 0xC6 || b == 0xC7 || (b >= 0xD0 && b < 0xD4) ||
		       (b >= 0xD8 && b < 0xE0) || b == 0xF6 || b == 0xF7 || b >= 0xFE;
	case MAP_0F:
		return (b >= 0x10 && b < 0x18) || (b >= 0x28 && b < 0x30) ||
		       (b >= 0x40 && b < 0x77) || (b >= 0x78 && b < 0x80) ||
		       (b >= 0x90 && b < 0xA0) || (b >= 0xA3 && b < 0xA6) ||
		       (b >= 0xAB && b < 0xC8) || b >= 0xD0;
	case MAP_0F38:
	case MAP_0F3A:
		return true;
	}
	return false;
}

/* Bytes behind the operand, which addresses relative to the next instruction count from. */
static unsigned immediate(const struct opcode *o, unsigned char modrm) {
	unsigned char b = o->byte, word = o->small ? 2 : 4;

	if (o->map != MAP_ONE) {
		return o->map == MAP_0F3A || (o->map == MAP_0F && (b == 0xBA || b == 0xC6));
	}
	switch (b) {
	case 0x6B:
	case 0x80:
	case 0x83:
	case 0xC0:
	case 0xC1:
	case 0xC6:
		return 1;
	case 0x69:
	case 0x81:
	case 0xC7:
		return word;
	case 0xF6:
		return (modrm >> 3 & 7) < 2;
	case 0xF7:
		return (modrm >> 3 & 7) < 2 ? word : 0;
	default:
		return 0;
	}
}

static uint64_t reg(const struct user_regs_struct *r, unsigned n) {
	const uint64_t all[] = {r->rax, r->rcx, r->rdx, r->rbx, r->rsp, r->rbp, r->rsi, r->rdi,
				r->r8,	r->r9,	r->r10, r->r11, r->r12, r->r13, r->r14, r->r15};

	return all[n & 15];
}

static int32_t int32_at(const unsigned char *i) {
	int32_t n;

	memcpy(&n, i, sizeof(n));
	return n;
}

/* Of the operand that begins at o->next and is in memory. */
static uintptr_t address(const struct opcode *o, const struct user_regs_struct *r) {
	const unsigned char *i = o->next;
	unsigned modrm = *i++, mod = modrm >> 6, rm = modrm & 7, base = rm;
	uint64_t at = o->segment;
	bool has_base = true;

	if (rm == 4) {
		unsigned sib = *i++, index = (sib >> 3 & 7) | (o->rex & 2u) << 2;

		base = sib & 7;
		at += index == 4 ? 0 : reg(r, index) << (sib >> 6);
		has_base = mod != 0 || base != 5;
	} else if (mod == 0 && rm == 5) {
		return at + (uintptr_t)(i + 4 + immediate(o, (unsigned char)modrm)) +
		       (uint64_t)(int64_t)int32_at(i);
	}
	at += has_base ? reg(r, base | (o->rex & 1u) << 3) : 0;
	if (mod == 1) {
		at += (uint64_t)(int64_t)(int8_t)*i;
	} else if (mod == 2 || !has_base) {
		at += (uint64_t)(int64_t)int32_at(i);
	}
	return at;
}

/* Push, pop, call and return: of the stack; strings: of rdi and rsi. Return: how many. */
static unsigned implied(const struct opcode *o, const struct user_regs_struct *r, uintptr_t *ret) {
	unsigned char b = o->byte, kind = *o->next >> 3 & 7;

	if (o->map != MAP_ONE) {
		return 0;
	}
	if (b == 0xA4 || b == 0xA5 || b == 0xAA || b == 0xAB) {
		ret[0] = r->rdi;
		ret[1] = r->rsi;
		return b < 0xAA ? 2 : 1;
	}
	if (b == 0xC3 || (b >= 0x58 && b < 0x60) || b == 0xC9) {
		ret[0] = r->rsp;
		return 1;
	}
	if ((b >= 0x50 && b < 0x58) || b == 0x68 || b == 0x6A || b == 0xE8 ||
	    (b == 0xFF && (kind == 2 || kind == 6))) {
		ret[0] = r->rsp - 8;
		return 1;
	}
	return 0;
}

unsigned touched_by(const unsigned char *code, const struct user_regs_struct *regs,
		    uintptr_t ret[static 2]) {
	struct opcode o = read_opcode(code, regs);
	unsigned n = implied(&o, regs, ret);

	if (n < 2 && (o.vex ? o.byte != 0x77 : has_operand(&o)) && *o.next >> 6 != 3) {
		ret[n++] = address(&o, regs);
	}
	return n;
}
