/*
 * interp-builtin.c: functions that the device runtime defines: vprintf and __assertfail.
 */
#include "tests/simgpu/interp-internal.h"

#include <stdio.h>

/* Longest text of one conversion, and longest string that is read from the device. */
#define PRINT_CONVERSION_MAX 512u
#define PRINT_STRING_MAX     4096u

/* Argument @n of the call: arguments of builtins are numbers and addresses. */
static uint64_t argument(struct warp *w, const struct insn *in, unsigned lane, unsigned n) {
	const struct call *c = &w->block->module->calls[in->target];
	const struct call_arg *a = &w->block->module->call_args[c->args + n];
	uint64_t v = 0;

	if (n >= c->n_args || a->size > sizeof(v)) {
		return 0;
	}
	if (a->in_register) {
		memcpy(&v, &warp_src(w, a->actual)[lane], a->size);
	} else {
		memcpy(&v,
		       w->local + (size_t)lane * w->local_stride + warp_src(w, SLOT_LOCAL)[lane] +
			       a->actual,
		       a->size);
	}
	return v;
}

static void set_result(struct warp *w, const struct insn *in, unsigned lane, uint32_t value) {
	const struct call *c = &w->block->module->calls[in->target];
	const struct call_arg *a = &w->block->module->call_args[c->args + c->n_args];

	if (c->n_rets != 1 || a->size != sizeof(value)) {
		return;
	}
	if (a->in_register) {
		warp_dst(w, a->actual)[lane] = value;
	} else {
		memcpy(w->local + (size_t)lane * w->local_stride + warp_src(w, SLOT_LOCAL)[lane] +
			       a->actual,
		       &value, sizeof(value));
	}
}

/* A string of device memory, cut at @size - 1. Returns false if it can't be read. */
static bool read_string(struct warp *w, unsigned lane, uint64_t addr, char *text, size_t size) {
	for (size_t i = 0; i + 1 < size; i++) {
		const uint8_t *p = mem_try(w, lane, addr + i, 1);

		if (!p) {
			return false;
		}
		text[i] = (char)*p;
		if (!*p) {
			return true;
		}
	}
	text[size - 1] = '\0';
	return true;
}

struct printer {
	struct warp *w;
	unsigned lane;
	uint64_t args; /* where the next argument stands */
};

/* The next argument: @size bytes, aligned to their size. */
static uint64_t next_argument(struct printer *p, unsigned size) {
	const uint8_t *at;
	uint64_t v = 0;

	p->args = (p->args + size - 1) & ~(uint64_t)(size - 1);
	at = mem_try(p->w, p->lane, p->args, size);
	p->args += size;
	if (at) {
		memcpy(&v, at, size);
	}
	return v;
}

static void print_out(struct printer *p, const char *text, size_t n) {
	const struct interp_machine *m = &p->w->block->machine;

	if (m->print && n > 0) {
		m->print(m->userdata, text, n);
	}
}

/* The format is one conversion that print_conversion() has checked and written itself. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
static int print_value(struct printer *p, const char *spec, char conversion, bool wide,
		       char *text) {
	char string[PRINT_STRING_MAX];
	double f;
	uint64_t v;

	switch (conversion) {
	case 'd':
	case 'i':
		v = next_argument(p, wide ? 8 : 4);
		return snprintf(text, PRINT_CONVERSION_MAX, spec,
				wide ? (long long)v : (long long)(int32_t)v);
	case 'u':
	case 'o':
	case 'x':
	case 'X':
		v = next_argument(p, wide ? 8 : 4);
		return snprintf(text, PRINT_CONVERSION_MAX, spec, (unsigned long long)v);
	case 'c':
		return snprintf(text, PRINT_CONVERSION_MAX, spec, (int)next_argument(p, 4));
	case 's':
		if (!read_string(p->w, p->lane, next_argument(p, 8), string, sizeof(string))) {
			strcpy(string, "(null)");
		}
		return snprintf(text, PRINT_CONVERSION_MAX, spec, string);
	case 'p':
		return snprintf(text, PRINT_CONVERSION_MAX, spec,
				(void *)(uintptr_t)next_argument(p, 8));
	default:
		v = next_argument(p, 8);
		memcpy(&f, &v, sizeof(f));
		return snprintf(text, PRINT_CONVERSION_MAX, spec, f);
	}
}
#pragma GCC diagnostic pop

/* One conversion at @f, behind its '%'. Returns how many characters of the format it took. */
static size_t print_conversion(struct printer *p, const char *f, int *n_done) {
	char spec[64] = "%", text[PRINT_CONVERSION_MAX];
	size_t i = 0, at = 1;
	bool wide = false;
	int n;

	while (f[i] && strchr("-+ #0123456789.*", f[i])) {
		if (f[i] == '*') {
			at += (size_t)snprintf(spec + at, sizeof(spec) - at, "%d",
					       (int)next_argument(p, 4));
		} else {
			spec[at++] = f[i];
		}
		i++;
		if (at > 32) {
			return i;
		}
	}
	for (; f[i] && strchr("hljzt", f[i]); i++) {
		wide |= f[i] != 'h';
	}
	if (!f[i] || !strchr("diuoxXcspeEfFgGaA", f[i])) {
		return i;
	}
	if (strchr("diuoxX", f[i])) {
		spec[at++] = 'l';
		spec[at++] = 'l';
	}
	spec[at++] = f[i];
	spec[at] = '\0';
	n = print_value(p, spec, f[i], wide, text);
	if (n > 0) {
		print_out(p, text, (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
	}
	++*n_done;
	return i + 1;
}

static int print_all(struct printer *p, const char *format) {
	int n_done = 0;

	while (*format) {
		size_t plain = strcspn(format, "%");

		print_out(p, format, plain);
		format += plain;
		if (!*format) {
			break;
		}
		format++;
		if (*format == '%') {
			print_out(p, "%", 1);
			format++;
		} else {
			format += print_conversion(p, format, &n_done);
		}
	}
	return n_done;
}

/* vprintf(format, arguments): returns the number of arguments, -1 without a format. */
static enum exec_result builtin_vprintf(struct warp *w, const struct insn *in, uint32_t mask) {
	char format[PRINT_STRING_MAX];

	for (uint32_t left = mask; left; left &= left - 1) {
		unsigned i = (unsigned)__builtin_ctz(left);
		struct printer p = {w, i, argument(w, in, i, 1)};
		int n = -1;

		if (read_string(w, i, argument(w, in, i, 0), format, sizeof(format))) {
			n = print_all(&p, format);
		}
		set_result(w, in, i, (uint32_t)n);
	}
	return EXEC_NEXT;
}

/* __assertfail(message, file, line, function, size of a character) */
static enum exec_result builtin_assert(struct warp *w, const struct insn *in, uint32_t mask) {
	unsigned i = (unsigned)__builtin_ctz(mask);
	char message[160] = "?", file[160] = "?", function[160] = "?";

	read_string(w, i, argument(w, in, i, 0), message, sizeof(message));
	read_string(w, i, argument(w, in, i, 1), file, sizeof(file));
	read_string(w, i, argument(w, in, i, 3), function, sizeof(function));
	return warp_fault(w, in, i, INTERP_FAULT_ASSERT, "%s:%u: %s: assertion '%s' failed", file,
			  (uint32_t)argument(w, in, i, 2), function, message);
}

exec_fn builtin_find(struct ptx_name name) {
	if (ptx_name_is(name, "vprintf")) {
		return builtin_vprintf;
	}
	if (ptx_name_is(name, "__assertfail")) {
		return builtin_assert;
	}
	return NULL;
}
