/*
 * fatbin.h: what is inside a fat binary, a cubin, a PTX text or a program that carries them.
 *
 * Reads only; every offset that comes from the input is checked. The layout is not documented by
 * NVIDIA; what is known of it was measured (see the file's comments).
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fatbin_kind {
	FATBIN_PTX,   /* text, not terminated */
	FATBIN_CUBIN, /* ELF */
	_FATBIN_KIND_N,
};

struct fatbin_entry {
	enum fatbin_kind kind;
	unsigned sm;	     /* 75 for sm_75; 0: not known */
	const uint8_t *data; /* uncompressed; borrowed from the input or owned by the struct fatbin */
	size_t size;
};

struct fatbin {
	struct fatbin_entry *entries;
	size_t n_entries;
};

/* Above this a decompressed entry is refused: a bomb, not a program. */
#define FATBIN_ENTRY_MAX (512u * 1024 * 1024)

/*
 * Reads an image of any kind that cuModuleLoadData takes: fat binary (also one wrapped as
 * __fatBinC_Wrapper_t's target), ELF cubin, PTX text. @image stays the caller's and must outlive
 * the result. @size: bytes that may be read; when the caller does not know (the driver's functions
 * pass no size) fatbin_image_size() finds it first.
 * Return: 0; -EINVAL with @error telling what was wrong where; -ENOTSUP for a compression that is
 * not known; -E2BIG; -ENOMEM.
 */
int fatbin_new(struct fatbin **ret, const void *image, size_t size, char *error, size_t error_size);
struct fatbin *fatbin_free(struct fatbin *f);

/*
 * How long an image of unknown length is, from its own header (PTX: its terminating NUL). Reads no
 * byte beyond what the headers announce. Return: bytes; 0 when it is none of the known kinds.
 */
size_t fatbin_image_size(const void *image);

/*
 * Every image in a program or library file (ELF sections .nv_fatbin and .nvFatBinSegment), or the
 * file itself if it is an image. Merges all entries. Errors as fatbin_new(); -ENOENT: an ELF file
 * without any image.
 */
int fatbin_new_from_file(struct fatbin **ret, const void *file, size_t size, char *error,
			 size_t error_size);

/* The PTX entry that a GPU of compute capability @sm would be given: the highest not above it (0:
 * the highest of all). NULL if there is none. */
const struct fatbin_entry *fatbin_best_ptx(const struct fatbin *f, unsigned sm);
