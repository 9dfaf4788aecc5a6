/*
 * kernels.c: see kernels.h.
 */
#include "daemon/session/kernels.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/quota.h"
#include "daemon/base/util.h"
#include "proto/enforcement.h"
#include "proto/text.h"

struct kernel_name *kernel_name_ref(struct kernel_name *name) {
	if (name) {
		name->refs++;
	}
	return name;
}

struct kernel_name *kernel_name_unref(struct kernel_name *name) {
	if (name && --name->refs == 0) {
		free(name);
	}
	return NULL;
}

void kernels_deinit(struct kernels *k) {
	for (size_t i = 0; i < k->n_list; i++) {
		kernel_name_unref(k->list[i].name);
		free(k->list[i].refusal);
	}
	if (k->user) {
		quota_release(k->user, QUOTA_BYTES, k->declared_bytes + k->charged);
	}
	free(k->list);
	free(k->declared);
	*k = (struct kernels){.user = k->user};
}

/* Room for the bit of kernel @id. Return: 0, -ENOMEM, KERNELS_E_QUOTA. */
static int reserve_bit(struct kernels *k, uint32_t id) {
	size_t bytes = k->declared_bytes ? k->declared_bytes : 64, more;
	uint8_t *mask;

	while (bytes <= id / 8) {
		bytes *= 2;
	}
	more = bytes - k->declared_bytes;
	if (more == 0) {
		return 0;
	}
	if (quota_charge(k->user, QUOTA_BYTES, more)) {
		return KERNELS_E_QUOTA;
	}
	mask = realloc(k->declared, bytes);
	if (!mask) {
		quota_release(k->user, QUOTA_BYTES, more);
		return -ENOMEM;
	}
	memset(mask + k->declared_bytes, 0, more);
	k->declared = mask;
	k->declared_bytes = bytes;
	return 0;
}

static bool charge(struct kernels *k, size_t bytes) {
	if (quota_charge(k->user, QUOTA_BYTES, bytes)) {
		return false;
	}
	k->charged += bytes;
	return true;
}

static void discharge(struct kernels *k, size_t bytes) {
	quota_release(k->user, QUOTA_BYTES, bytes);
	k->charged -= bytes;
}

/* Room for one more in the list. */
static bool reserve_entry(struct kernels *k) {
	size_t room = k->room ? k->room * 2 : 16, more = (room - k->room) * sizeof(*k->list);
	struct kernel_info *list;

	if (k->n_list < k->room) {
		return true;
	}
	if (k->n_list == KERNELS_KEPT || !charge(k, more)) {
		return false;
	}
	list = reallocarray(k->list, room, sizeof(*list));
	if (!list) {
		discharge(k, more);
		return false;
	}
	k->list = list;
	k->room = room;
	return true;
}

/* How much of @text is kept: whole characters. */
static size_t kept_bytes(const char *text) {
	size_t n = 0;

	while (text[n]) {
		size_t step = text_printable(text + n);

		if (step == 0 || n + step > KERNELS_TEXT_MAX) {
			break;
		}
		n += step;
	}
	return n;
}

static struct kernel_name *make_name(const char *text, size_t n) {
	struct kernel_name *name = malloc(sizeof(*name) + n + 1);

	if (name) {
		name->refs = 1;
		memcpy(name->text, text, n);
		name->text[n] = '\0';
	}
	return name;
}

/* The index of @id in the list, or where it belongs. */
static size_t find(const struct kernels *k, uint32_t id) {
	size_t low = 0, high = k->n_list;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (k->list[middle].id < id) {
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return low;
}

/* Keeps what @def says, if there is room. */
static void keep(struct kernels *k, const Sbeet__KernelDef *def) {
	size_t n_name = kept_bytes(def->name), n_refusal = kept_bytes(def->refusal);
	size_t bytes = sizeof(struct kernel_name) + n_name + 1 + n_refusal + 1;
	size_t at = find(k, def->id);
	struct kernel_info info = {.id = def->id,
				   .enforcement_mask = def->enforcement_mask,
				   .dependent = def->dependent};

	if (!reserve_entry(k) || !charge(k, bytes)) {
		return;
	}
	info.name = make_name(def->name, n_name);
	info.refusal = n_refusal ? strndup(def->refusal, n_refusal) : NULL;
	if (!info.name || (n_refusal && !info.refusal)) {
		kernel_name_unref(info.name);
		free(info.refusal);
		discharge(k, bytes);
		return;
	}
	memmove(&k->list[at + 1], &k->list[at], (k->n_list - at) * sizeof(info));
	k->list[at] = info;
	k->n_list++;
}

int kernels_declare(struct kernels *k, const Sbeet__KernelDef *def, uint32_t mask) {
	uint8_t bit = (uint8_t)BIT(def->id % 8);
	int r = reserve_bit(k, def->id);

	if (r) {
		return r;
	}
	if (k->declared[def->id / 8] & bit) {
		return KERNELS_E_DUPLICATE;
	}
	k->declared[def->id / 8] |= bit;
	k->n++;
	k->n_confinable +=
		(def->enforcement_mask & mask & ENFORCEMENT_WITH(ENFORCEMENT_CONFINES)) != 0;
	keep(k, def);
	return 0;
}

static struct kernel_info *find_kept(const struct kernels *k, uint32_t id) {
	size_t at = find(k, id);

	return at < k->n_list && k->list[at].id == id ? &k->list[at] : NULL;
}

void kernels_count(struct kernels *k, const Sbeet__KernelCount *count) {
	struct kernel_info *info = find_kept(k, count->kernel);

	if (info && count->launches > info->launches) {
		info->launches = count->launches;
		info->blocks = count->blocks > info->blocks ? count->blocks : info->blocks;
		info->block_threads = count->block_threads > info->block_threads
					      ? count->block_threads
					      : info->block_threads;
	}
}

const struct kernel_info *kernels_find(const struct kernels *k, uint32_t id) {
	return find_kept(k, id);
}

const struct kernel_info *kernels_next(const struct kernels *k, uint32_t id) {
	size_t at = id < UINT32_MAX ? find(k, id + 1) : k->n_list;

	return at < k->n_list ? &k->list[at] : NULL;
}

uint32_t kernels_left_out(const struct kernels *k) {
	return k->n > k->n_list ? k->n - (uint32_t)k->n_list : 0;
}

int kernels_restore_declared(struct kernels *k, const uint8_t *mask, size_t bytes, uint32_t n,
			     uint32_t n_confinable) {
	if (bytes == 0) {
		return 0;
	}
	if (bytes > PROTO_KERNELS_MAX / 8 * 2 || quota_charge(k->user, QUOTA_BYTES, bytes)) {
		return KERNELS_E_QUOTA;
	}
	k->declared = malloc(bytes);
	if (!k->declared) {
		quota_release(k->user, QUOTA_BYTES, bytes);
		return -ENOMEM;
	}
	memcpy(k->declared, mask, bytes);
	k->declared_bytes = bytes;
	k->n = n;
	k->n_confinable = n_confinable;
	return 0;
}

void kernels_restore(struct kernels *k, const Sbeet__KernelDef *def,
		     const Sbeet__KernelCount *count) {
	if (!find_kept(k, def->id)) {
		keep(k, def);
	}
	kernels_count(k, count);
}
