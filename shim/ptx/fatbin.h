/*
 * fatbin.h: what is inside a fat binary, a cubin, a PTX text or a program that carries them.
 *
 * Reads only; every offset that comes from the input is checked. The layout is not documented by
 * NVIDIA; what is known of it was measured (see fatbin.c). Reading an image is cheap whatever its
 * size: entries are listed as they are stored, and only those that are asked for are unpacked.
 *
 * A program holds one image for each of its source files, and each image has the same kernels for
 * several architectures; the driver picks one entry of each image.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fatbin_kind {
	FATBIN_PTX,   /* text */
	FATBIN_CUBIN, /* ELF */
	FATBIN_OTHER, /* NVVM for link-time optimisation and what else there may be */
	_FATBIN_KIND_N,
};

struct fatbin_entry {
	enum fatbin_kind kind;
	unsigned sm;	/* 75 for sm_75; 0: not known */
	char suffix;	/* 'a': runs on exactly this architecture (sm_90a); 'f': on its family
			 * (sm_100f); 0: PTX runs on all newer ones too */
	unsigned image; /* which image of the file it belongs to, from 0 */
	size_t size;	/* unpacked; PTX: an upper bound, as padding is not counted out yet */
	bool compressed;
};

/* One reader at a time: fatbin_unpack() keeps what it unpacked. */
struct fatbin {
	const struct fatbin_entry *entries; /* in the order of the input */
	size_t n_entries;
	unsigned n_images;
};

/* Above this an unpacked entry is refused: a bomb, not a program. */
#define FATBIN_ENTRY_MAX (512u * 1024 * 1024)

/* All that one struct fatbin unpacks, for the same reason. */
#define FATBIN_TOTAL_MAX (2048ull * 1024 * 1024)

/* Entries of one input: the largest libraries have a few thousand. */
#define FATBIN_ENTRIES_MAX (256u * 1024)

/*
 * Reads an image of any kind that cuModuleLoadData takes: fat binary, ELF cubin, PTX text. @image
 * stays the caller's and must outlive the result. @size: bytes that may be read; when the caller
 * does not know (the driver's functions pass no size) fatbin_image_size() finds it first.
 * Return: 0; -EINVAL with @error telling what was wrong where; -E2BIG; -ENOMEM.
 */
int fatbin_new(struct fatbin **ret, const void *image, size_t size, char *error, size_t error_size);
struct fatbin *fatbin_free(struct fatbin *f);

/*
 * Every image in a program or library file (ELF section .nv_fatbin, and PTX texts among constants
 * and variables, each an image of its own), or the file itself if it is an image. Errors as
 * fatbin_new(); -ENOENT: an ELF file without any image.
 */
int fatbin_new_from_file(struct fatbin **ret, const void *file, size_t size, char *error,
			 size_t error_size);

/*
 * The entry's bytes, unpacked, without padding; not terminated. They belong to @f or to the image
 * that it reads. @entry must be one of @f's.
 * Return: 0; -EINVAL: damaged; -ENOTSUP: a packing that is not known; -E2BIG; -ENOMEM; all with
 * @error. *ret_data and *ret_size are untouched then.
 */
int fatbin_unpack(struct fatbin *f, const struct fatbin_entry *entry, char *error,
		  size_t error_size, const uint8_t **ret_data, size_t *ret_size);

/* Where in @f's input the compiler's options for @entry stand, PTX: how many registers a thread may
 * take, how loads are cached. NULL: it has none. They are known to be there, or can't be excluded.
 */
const uint8_t *fatbin_options(const struct fatbin *f, const struct fatbin_entry *entry,
			      size_t *ret_size);

/* A fat binary of one entry, which is @entry, one with options, with @text of @size bytes in
 * it: all else of it is as it is stored, options included. To be freed; NULL: no memory. */
void *fatbin_with_text(const struct fatbin *f, const struct fatbin_entry *entry, const char *text,
		       size_t size);

/* The PTX entry of image @image that a GPU of compute capability @sm would be given: the highest
 * not above it (0: the highest of all). NULL if there is none. */
const struct fatbin_entry *fatbin_best_ptx(const struct fatbin *f, unsigned image, unsigned sm);

/* The machine code of image @image that a GPU of compute capability @sm would run, without looking
 * at its PTX: that for the same major number with the highest minor one not above it. NULL if there
 * is none; then the driver compiles the PTX. */
const struct fatbin_entry *fatbin_best_cubin(const struct fatbin *f, unsigned image, unsigned sm);

/*
 * For images in the program's own memory, as it passes them to the driver.
 *
 * fatbin_unwrap(): the fat binary behind the small descriptor that compiled programs pass
 * (__fatBinC_Wrapper_t); anything else is returned as it is. The only function here that follows a
 * pointer in its input, so never for bytes from a file.
 *
 * fatbin_image_size(): how long an image of unknown length is, from its own headers (PTX: up to its
 * terminating NUL). Reads no byte beyond what the headers announce. 0: none of the known kinds.
 */
const void *fatbin_unwrap(const void *image);
size_t fatbin_image_size(const void *image);
