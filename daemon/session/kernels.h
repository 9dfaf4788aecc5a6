/*
 * kernels.h: the kernels that a program has declared, and how often it launched them.
 *
 * Of any id it is known whether it was declared. Names and counts are kept of the first
 * KERNELS_KEPT, as far as the user's quota of bytes allows. Owns and charges what it keeps.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/limits.h"
#include "sbeet.pb-c.h"

struct quota_user;

/* Large frameworks launch some hundred different ones. */
#define KERNELS_KEPT 1024

/* Of a name and of a refusal; longer ones are cut. */
#define KERNELS_TEXT_MAX 255

/* A name that may outlive its session: operations that name it are told later. */
struct kernel_name {
	unsigned refs;
	char text[];
};

struct kernel_name *kernel_name_ref(struct kernel_name *name);	 /* takes NULL */
struct kernel_name *kernel_name_unref(struct kernel_name *name); /* takes NULL, returns NULL */

struct kernel_info {
	uint32_t id;
	uint32_t enforcement_mask;
	bool dependent;		   /* its launches are dependent ones */
	uint32_t block_threads;	   /* in the largest block; 0: not known */
	uint64_t launches, blocks; /* in jobs, since the program started */
	struct kernel_name *name;  /* reference */
	char *refusal;		   /* owned; NULL: its code can be kept to SMs */
};

/* All zero, but for the user: nothing is declared. */
struct kernels {
	struct quota_user *user; /* borrowed, outlives us */
	uint8_t *declared;	 /* owned, charged: bit mask of ids */
	size_t declared_bytes;
	uint32_t n, n_confinable;
	struct kernel_info *list; /* owned, charged; by id */
	size_t n_list, room;
	size_t charged; /* for the list and its texts */
};

#define KERNELS_E_QUOTA	    1
#define KERNELS_E_DUPLICATE 2

void kernels_deinit(struct kernels *k);

/* @mask: what the session can be held by. A kernel that is declared but not kept is no error.
 * Return: 0, KERNELS_E_* or -ENOMEM: it is not declared. */
int kernels_declare(struct kernels *k, const Sbeet__KernelDef *def, uint32_t mask);

/* As told by the program; what it says of a kernel that is not kept is forgotten. Never counts
 * back. */
void kernels_count(struct kernels *k, const Sbeet__KernelCount *count);

/* NULL: it is not kept. */
const struct kernel_info *kernels_find(const struct kernels *k, uint32_t id);

/* The first one kept whose id is above @id; NULL: there is none. */
const struct kernel_info *kernels_next(const struct kernels *k, uint32_t id);

/* How many are declared but not kept. */
uint32_t kernels_left_out(const struct kernels *k);

/* What an earlier daemon knew: the bit mask, and the numbers. Before anything is declared; then
 * kernels_restore() for each one kept. Return: 0, KERNELS_E_QUOTA, -ENOMEM. */
int kernels_restore_declared(struct kernels *k, const uint8_t *mask, size_t bytes, uint32_t n,
			     uint32_t n_confinable);
void kernels_restore(struct kernels *k, const Sbeet__KernelDef *def,
		     const Sbeet__KernelCount *count);
