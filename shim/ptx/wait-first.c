/*
 * wait-first.c: see wait-first.h.
 */
#include "shim/ptx/wait-first.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>

#include "shim/ptx/ptx.h"
#include "shim/ptx/text.h"

/* What griddepcontrol takes. */
#define VERSION_MAJOR 7
#define VERSION_MINOR 8

struct rewrite {
	const struct ptx_module *m;
	struct text out;
	uint32_t at; /* in the text: what is copied so far */
};

static const struct ptx_token *token(const struct ptx_module *m, uint32_t i) {
	return &m->tokens.list[i];
}

static void copy_until(struct rewrite *r, uint32_t offset) {
	text_add(&r->out, r->m->tokens.text + r->at, offset - r->at);
	r->at = offset;
}

/* @at: a token. */
static void insert(struct rewrite *r, uint32_t at, const char *what) {
	copy_until(r, token(r->m, at)->offset);
	text_adds(&r->out, what);
}

static bool item_is(const struct ptx_module *m, const struct ptx_item *item, const char *what) {
	return item->kind == PTX_ITEM_DIRECTIVE &&
	       ptx_token_is(&m->tokens, token(m, item->first), what);
}

static bool is_older(const struct ptx_module *m, unsigned major, unsigned minor) {
	return m->version_major < major || (m->version_major == major && m->version_minor < minor);
}

static bool is_kernel(const struct ptx_func *f) {
	return f->is_entry && f->has_body;
}

static bool has_kernel(const struct ptx_module *m) {
	for (size_t i = 0; i < m->n_funcs; i++) {
		if (is_kernel(&m->funcs[i])) {
			return true;
		}
	}
	return false;
}

#define CONSTANTS "its kernels read constants, which may not wait"

/* Why an instruction keeps its module as it is, or NULL. ptxas moves no load, atomic or copy in
 * front of a wait, but what it takes for read-only as long as a kernel runs: texture fetches always
 * (TEX, TLD), constants at a known address at times. */
static const char *refuses(struct ptx_name opcode) {
	static const struct {
		const char *opcode, *why;
	} all[] = {
		{"griddepcontrol", "its kernels use griddepcontrol themselves"},
		{"tex", "its kernels fetch textures, which may not wait"},
		{"tld4", "its kernels fetch textures, which may not wait"},
	};
	struct ptx_name first = ptx_opcode_part(opcode, 0);

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (ptx_name_is(first, all[i].opcode)) {
			return all[i].why;
		}
	}
	return ptx_opcode_has(opcode, "const") ? CONSTANTS : NULL;
}

static const char *refused_code(const struct ptx_module *m) {
	const char *why = NULL;

	for (size_t i = 0; i < m->n_vars && !why; i++) {
		why = m->vars[i].space == PTX_SPACE_CONST ? CONSTANTS : NULL;
	}
	for (size_t i = 0; i < m->n_stmts && !why; i++) {
		why = m->stmts[i].kind == PTX_STMT_INSN ? refuses(m->stmts[i].opcode) : NULL;
	}
	return why;
}

/* `.target sm_90`, not `.target sm_90, debug`. */
static bool has_plain_target(const struct ptx_module *m) {
	unsigned n = 0;
	bool plain = true;

	for (size_t i = 0; i < m->n_items; i++) {
		if (item_is(m, &m->items[i], ".target")) {
			plain &= m->items[i].end - m->items[i].first == 2;
			n++;
		}
	}
	return plain && n == 1;
}

/* Why the kernels have to stay as they are, or NULL. */
static const char *refusal(const struct ptx_module *m) {
	if (is_older(m, VERSION_MAJOR, VERSION_MINOR) || m->target_sm < WAIT_FIRST_SM_MIN) {
		return "it is PTX of a version before 7.8, or for an architecture before sm_90";
	}
	if (!has_plain_target(m)) {
		return "its .target has options";
	}
	if (m->address_size != 64) {
		return "its addresses have not 64 bits";
	}
	return has_kernel(m) ? refused_code(m) : "it has no kernels";
}

static void rewrite_item(struct rewrite *r, const struct ptx_item *item) {
	const struct ptx_module *m = r->m;

	if (item->kind == PTX_ITEM_FUNC && is_kernel(&m->funcs[item->index])) {
		insert(r, m->funcs[item->index].body_first + 1, "griddepcontrol.wait;\n\t");
	}
}

static int rewrite(const struct ptx_module *m, char **ret) {
	struct rewrite r = {.m = m};
	size_t n;

	for (size_t i = 0; i < m->n_items; i++) {
		rewrite_item(&r, &m->items[i]);
	}
	copy_until(&r, token(m, (uint32_t)m->tokens.n - 1)->offset);
	*ret = text_take(&r.out, &n);
	text_deinit(&r.out);
	return *ret ? 0 : -ENOMEM;
}

int wait_first_text(char **ret, const char *text, size_t size, char *error, size_t error_size) {
	struct ptx_module *m;
	const char *why;
	int r;

	r = ptx_module_new(&m, text, size, error, error_size);
	if (r < 0) {
		return r;
	}
	why = refusal(m);
	if (!why) {
		r = rewrite(m, ret);
	} else {
		r = -ENOTSUP;
		if (error) {
			snprintf(error, error_size, "%s", why);
		}
	}
	ptx_module_free(m);
	return r;
}
