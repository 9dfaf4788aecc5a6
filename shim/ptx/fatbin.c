/*
 * fatbin.c: reads fat binaries. See fatbin.h.
 *
 * The format as nvcc and fatbinary 13.0 write it, little-endian throughout:
 *
 * A container is a header and entries:
 * - u32 magic 0xBA55ED50, u16 version 1, u16 header size 16, u64 size of what follows.
 *
 * An entry is a header and a payload:
 * - u16 kind (1 PTX, 2 ELF, 8 NVVM), u16 version 0x101, u32 header size (64 and more, as names and
 *   compiler options may follow), u64 payload size, padded to 8;
 * - at 16 u32 size of the compressed bytes, 0 if they are not; at 56 u64 size when unpacked;
 * - at 20 u32 offset within the header of where the options for the compiler stand: u32 offset, u32
 *   length; nvcc's -maxrregcount=40 and -Xptxas -dlcm=cg are " -maxrregcount=40 -dlcm=cg ";
 * - at 28 u32 architecture, 75 for sm_75;
 * - at 40 u64 flags: 0x2000 LZ4 (one raw block), 0x8000 zstd (one frame), 0x10000 scrambled,
 *   0x100000 architecture-specific (sm_90a), 0x200000 family-specific (sm_100f).
 *
 * Containers follow each other in a program's section .nv_fatbin, one for each source file, each
 * on a multiple of 8 with zeros between them. Others may lie anywhere among its constants. Compiled
 * programs pass the address of a descriptor, { u32 magic 0x466243b1, u32 version, void *container,
 * void *names }, kept in .nvFatBinSegment.
 */
#include "shim/ptx/fatbin.h"

#include <errno.h>
#include <limits.h>
#include <lz4.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "shim/ptx/elf-file.h"
#include "shim/ptx/header.h"

#define FATBIN_MAGIC		  0xBA55ED50u
#define FATBIN_VERSION		  1
#define FATBIN_HEADER_SIZE	  16
#define FATBIN_ENTRY_HEADER_SIZE  64
#define FATBIN_WRAPPER_MAGIC	  0x466243b1u
#define FATBIN_KIND_PTX		  1
#define FATBIN_KIND_ELF		  2
#define FATBIN_FLAG_LZ4		  0x2000u
#define FATBIN_FLAG_ZSTD	  0x8000u
#define FATBIN_FLAG_SCRAMBLED	  0x10000u
#define FATBIN_FLAG_ARCH_SPECIFIC 0x100000u
#define FATBIN_FLAG_FAMILY	  0x200000u

/* What looks like a container but is none, in one section: it is read in vain each time. */
#define FATBIN_WRONG_MAX 64

/* LZ4 can't do better than this: a byte of a length stands for at most 255 bytes. */
#define FATBIN_LZ4_RATIO_MAX 255

struct wrapper {
	uint32_t magic;
	uint32_t version;
	const void *container;
	const void *names;
};

/* An entry as it is stored. */
struct stored {
	const uint8_t *bytes; /* borrowed from the input */
	size_t size;
	uint64_t flags;
	const uint8_t *header; /* borrowed likewise; NULL: it is in no fat binary */
	size_t header_size;
	uint8_t *unpacked; /* owned; NULL until asked for, or if bytes needs no unpacking */
};

/* What a struct fatbin really is: the public part comes first. */
struct reader {
	struct fatbin pub;
	const uint8_t *input;	      /* borrowed; positions in messages count from here */
	struct fatbin_entry *entries; /* owned; pub.entries */
	struct stored *stored;	      /* owned; one for each entry */
	size_t room;		      /* of both arrays */
	uint64_t unpacked_total;
	char *error;
	size_t error_size;
};

__attribute__((format(printf, 3, 4))) static void say(char *error, size_t size, const char *format,
						      ...) {
	va_list args;

	if (!error || !size) {
		return;
	}
	va_start(args, format);
	vsnprintf(error, size, format, args);
	va_end(args);
}

static uint16_t load16(const uint8_t *p) {
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load32(const uint8_t *p) {
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint64_t load64(const uint8_t *p) {
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

struct fatbin *fatbin_free(struct fatbin *f) {
	struct reader *r = (struct reader *)f;

	if (!r) {
		return NULL;
	}
	for (size_t i = 0; i < r->pub.n_entries; i++) {
		free(r->stored[i].unpacked);
	}
	free(r->stored);
	free(r->entries);
	free(r);
	return NULL;
}

static int reader_add(struct reader *r, const struct fatbin_entry *e, const struct stored *s) {
	size_t n = r->pub.n_entries;

	if (n == r->room) {
		size_t room = r->room ? 2 * r->room : 8;
		void *p;

		if (n >= FATBIN_ENTRIES_MAX) {
			say(r->error, r->error_size, "more than %u entries", FATBIN_ENTRIES_MAX);
			return -E2BIG;
		}
		p = reallocarray(r->entries, room, sizeof(*r->entries));
		if (!p) {
			return -ENOMEM;
		}
		r->entries = p;
		r->pub.entries = p;
		p = reallocarray(r->stored, room, sizeof(*r->stored));
		if (!p) {
			return -ENOMEM;
		}
		r->stored = p;
		r->room = room;
	}
	r->entries[n] = *e;
	r->stored[n] = *s;
	r->pub.n_entries++;
	return 0;
}

/* How much of @size bytes may be looked at for the first lines of a text. */
static size_t text_bound(size_t size) {
	return size < FATBIN_ENTRY_MAX ? size : FATBIN_ENTRY_MAX;
}

static bool text_is_ptx(const void *bytes, size_t size) {
	struct header h;

	return header_read(bytes, (const char *)bytes + text_bound(size), &h);
}

static int read_text(struct reader *r, const uint8_t *bytes, size_t size) {
	struct fatbin_entry e = {.kind = FATBIN_PTX, .image = r->pub.n_images, .size = size};
	struct stored s = {.bytes = bytes, .size = size};
	struct header h = {0};

	if (size > FATBIN_ENTRY_MAX) {
		say(r->error, r->error_size, "a PTX text of %zu MiB, where %u are the limit",
		    size >> 20, FATBIN_ENTRY_MAX >> 20);
		return -E2BIG;
	}
	header_read((const char *)bytes, (const char *)bytes + size, &h);
	e.sm = h.sm;
	e.suffix = h.suffix;
	r->pub.n_images++;
	return reader_add(r, &e, &s);
}

/* Programs that load PTX by themselves carry it as strings among their constants. */
static int read_texts(struct reader *r, const uint8_t *data, size_t size) {
	struct header_scan scan = {(const char *)data, (const char *)data + size};
	const char *text;
	size_t n;
	int rc = 0;

	while (rc == 0 && header_scan_next(&scan, &text, &n)) {
		rc = n > FATBIN_ENTRY_MAX ? 0 : read_text(r, (const uint8_t *)text, n);
	}
	return rc;
}

static int read_cubin(struct reader *r, const struct elf *elf) {
	struct fatbin_entry e = {
		.kind = FATBIN_CUBIN,
		.image = r->pub.n_images,
		.size = elf->size,
		.sm = elf_cuda_sm(elf),
	};
	struct stored s = {.bytes = elf->bytes, .size = elf->size};

	r->pub.n_images++;
	return reader_add(r, &e, &s);
}

/* One entry at @p, of which @left bytes remain. @ret_size: all of it. */
static int read_entry(struct reader *r, const uint8_t *p, size_t left, size_t *ret_size) {
	struct fatbin_entry e = {.kind = FATBIN_OTHER, .image = r->pub.n_images};
	struct stored s = {0};
	size_t at = (size_t)(p - r->input), header, whole;
	uint64_t payload, unpacked;
	uint32_t packed;

	if (left < FATBIN_ENTRY_HEADER_SIZE) {
		say(r->error, r->error_size, "byte %zu: a fat binary entry is cut short", at);
		return -EINVAL;
	}
	header = load32(p + 4);
	payload = load64(p + 8);
	packed = load32(p + 16);
	unpacked = load64(p + 56);
	s.flags = load64(p + 40);
	if (header < FATBIN_ENTRY_HEADER_SIZE || header > left || payload > left - header ||
	    packed > payload) {
		say(r->error, r->error_size,
		    "byte %zu: a fat binary entry of %zu + %llu bytes, %u of them compressed, "
		    "where %zu "
		    "are left",
		    at, header, (unsigned long long)payload, packed, left);
		return -EINVAL;
	}
	whole = header + (size_t)payload;

	if (load16(p) == FATBIN_KIND_PTX) {
		e.kind = FATBIN_PTX;
	} else if (load16(p) == FATBIN_KIND_ELF) {
		e.kind = FATBIN_CUBIN;
	}
	e.sm = load32(p + 28);
	if (s.flags & FATBIN_FLAG_ARCH_SPECIFIC) {
		e.suffix = 'a';
	} else if (s.flags & FATBIN_FLAG_FAMILY) {
		e.suffix = 'f';
	}
	e.compressed = packed != 0;
	s.header = p;
	s.header_size = header;
	s.bytes = p + header;
	s.size = packed ? packed : (size_t)payload;
	e.size = packed ? unpacked : s.size;
	*ret_size = whole;
	return reader_add(r, &e, &s);
}

/* Containers one after the other, zeros between them. */
static int read_containers(struct reader *r, const uint8_t *p, size_t size) {
	const uint8_t *end = p + size;
	bool any = false;
	int rc;

	for (;;) {
		const uint8_t *stop;
		uint64_t body;
		size_t n;

		while (any && p < end && !*p) {
			p++;
		}
		if (any && p == end) {
			return 0;
		}
		if (end - p < FATBIN_HEADER_SIZE || load32(p) != FATBIN_MAGIC) {
			say(r->error, r->error_size, "byte %td: no fat binary starts here",
			    p - r->input);
			return -EINVAL;
		}
		n = load16(p + 6);
		body = load64(p + 8);
		if (load16(p + 4) != FATBIN_VERSION || n < FATBIN_HEADER_SIZE ||
		    n > (size_t)(end - p) || body > (size_t)(end - p) - n) {
			say(r->error, r->error_size,
			    "byte %td: a fat binary of version %u, %zu + %llu bytes, where %td are "
			    "left",
			    p - r->input, load16(p + 4), n, (unsigned long long)body, end - p);
			return -EINVAL;
		}
		stop = p + n + body;
		for (p += n; p < stop; p += n) {
			rc = read_entry(r, p, (size_t)(stop - p), &n);
			if (rc < 0) {
				return rc;
			}
		}
		r->pub.n_images++;
		any = true;
	}
}

/* The whole of the container that seems to begin at @p; 0: it would not end before @left. */
static size_t container_size(const uint8_t *p, size_t left) {
	uint64_t body;

	if (left < FATBIN_HEADER_SIZE || load32(p) != FATBIN_MAGIC ||
	    load16(p + 4) != FATBIN_VERSION || load16(p + 6) != FATBIN_HEADER_SIZE) {
		return 0;
	}
	body = load64(p + 8);
	return body > left - FATBIN_HEADER_SIZE ? 0 : FATBIN_HEADER_SIZE + (size_t)body;
}

/* A container among a program's data, of @size bytes. Return: 1; 0: it only looks like one, and
 * nothing has been read; -E2BIG; -ENOMEM. */
static int read_kept_container(struct reader *r, const uint8_t *p, size_t size) {
	size_t n_entries = r->pub.n_entries;
	unsigned n_images = r->pub.n_images;
	int rc = read_containers(r, p, size);

	if (rc == -EINVAL) {
		r->pub.n_entries = n_entries;
		r->pub.n_images = n_images;
		say(r->error, r->error_size, "%s", "");
		return 0;
	}
	return rc < 0 ? rc : 1;
}

/* Where the next container may begin, or @end. */
static const uint8_t *find_magic(const uint8_t *p, const uint8_t *end) {
	static const uint32_t magic = FATBIN_MAGIC;
	const uint8_t *hit = p < end ? memmem(p, (size_t)(end - p), &magic, sizeof(magic)) : NULL;

	return hit ? hit : end;
}

/* Libraries that link or load kernels by themselves keep whole containers among their constants. A
 * packed text in one of them can begin like a text that is not packed, so they are taken out first.
 */
static int read_data(struct reader *r, const uint8_t *data, size_t size) {
	const uint8_t *from = data, *end = data + size, *at = find_magic(data, end);
	unsigned wrong = 0;

	while (at < end && wrong < FATBIN_WRONG_MAX) {
		size_t n = container_size(at, (size_t)(end - at));
		int rc = n > 0 ? read_kept_container(r, at, n) : 0;

		if (rc > 0) {
			rc = read_texts(r, from, (size_t)(at - from));
			from = at + n;
		} else {
			wrong += n > 0;
			n = 1;
		}
		if (rc < 0) {
			return rc;
		}
		at = find_magic(at + n, end);
	}
	return read_texts(r, from, (size_t)(end - from));
}

/* What a program's section holds. */
static int read_section(struct reader *r, const struct elf_section *section) {
	if (section->size && !strcmp(section->name, ".nv_fatbin")) {
		return read_containers(r, section->data, section->size);
	}
	return section->is_data ? read_data(r, section->data, section->size) : 0;
}

/* All sections of a program. No two of them share bytes in a file that a linker made; where they
 * do, reading every one could take as long as the square of the file's size. */
static int read_sections(struct reader *r, const struct elf *elf) {
	struct elf_section section;
	size_t left = elf->size;
	int rc;

	for (uint64_t i = 0; i < elf->n_sections; i++) {
		rc = elf_section(elf, i, &section);
		if (rc < 0) {
			say(r->error, r->error_size, "ELF section %llu lies outside the file",
			    (unsigned long long)i);
			return rc;
		}
		if (section.size > left) {
			say(r->error, r->error_size,
			    "ELF section %llu overlaps with others: all together are larger than "
			    "the file",
			    (unsigned long long)i);
			return -EINVAL;
		}
		left -= section.size;
		rc = read_section(r, &section);
		if (rc < 0) {
			return rc;
		}
	}
	return 0;
}

/* An ELF file: a cubin, or a program with images in its sections. */
static int read_elf(struct reader *r, const uint8_t *bytes, size_t size, bool programs) {
	const char *why = NULL;
	struct elf elf;
	int rc;

	rc = elf_init(&elf, bytes, size, &why);
	if (rc < 0) {
		say(r->error, r->error_size, "%s", why);
		return rc;
	}
	if (elf.machine == ELF_MACHINE_CUDA) {
		return read_cubin(r, &elf);
	}
	if (!programs) {
		say(r->error, r->error_size, "an ELF file for another machine than a GPU (%u)",
		    elf.machine);
		return -EINVAL;
	}
	rc = read_sections(r, &elf);
	if (rc < 0) {
		return rc;
	}
	if (!r->pub.n_images) {
		say(r->error, r->error_size,
		    "no GPU code in it (neither a section .nv_fatbin nor PTX among its data)");
		return -ENOENT;
	}
	return 0;
}

static int read_any(struct reader *r, const uint8_t *bytes, size_t size, bool programs) {
	if (elf_is(bytes, size)) {
		return read_elf(r, bytes, size, programs);
	}
	if (size >= 4 && load32(bytes) == FATBIN_MAGIC) {
		return read_containers(r, bytes, size);
	}
	if (text_is_ptx(bytes, size)) {
		return read_text(r, bytes, size);
	}
	say(r->error, r->error_size, "neither a fat binary nor an ELF file nor PTX");
	return -EINVAL;
}

static int reader_new(struct fatbin **ret, const void *bytes, size_t size, bool programs,
		      char *error, size_t error_size) {
	struct reader *r;
	int rc;

	r = calloc(1, sizeof(*r));
	if (!r) {
		say(error, error_size, "out of memory");
		return -ENOMEM;
	}
	r->input = bytes;
	r->error = error;
	r->error_size = error_size;
	rc = read_any(r, bytes, size, programs);
	if (rc < 0) {
		if (rc == -ENOMEM) {
			say(error, error_size, "out of memory");
		}
		fatbin_free(&r->pub);
		return rc;
	}
	r->error = NULL;
	r->error_size = 0;
	*ret = &r->pub;
	return 0;
}

int fatbin_new(struct fatbin **ret, const void *image, size_t size, char *error,
	       size_t error_size) {
	return reader_new(ret, image, size, false, error, error_size);
}

int fatbin_new_from_file(struct fatbin **ret, const void *file, size_t size, char *error,
			 size_t error_size) {
	return reader_new(ret, file, size, true, error, error_size);
}

/* zstd calls these two if they are there. Without ours it would call those of a program that has a
 * zstd of its own. */
unsigned long long ZSTD_trace_decompress_begin(const ZSTD_DCtx *dctx);
void ZSTD_trace_decompress_end(unsigned long long begun, const void *trace);

unsigned long long ZSTD_trace_decompress_begin(const ZSTD_DCtx *dctx) {
	return 0; /* not traced */
}

void ZSTD_trace_decompress_end(unsigned long long begun, const void *trace) {
}

/* @dst has room for e->size bytes. */
static int unpack_into(const struct stored *s, uint8_t *dst, size_t size) {
	if (s->flags & FATBIN_FLAG_ZSTD) {
		if (ZSTD_getFrameContentSize(s->bytes, s->size) != size) {
			return -EINVAL;
		}
		return ZSTD_decompress(dst, size, s->bytes, s->size) == size ? 0 : -EINVAL;
	}
	return LZ4_decompress_safe((const char *)s->bytes, (char *)dst, (int)s->size, (int)size) ==
			       (int)size
		       ? 0
		       : -EINVAL;
}

/* Unpacks entry @i, of which nothing is unpacked yet. */
static int unpack_entry(struct reader *r, size_t i, char *error, size_t error_size) {
	const struct fatbin_entry *e = &r->entries[i];
	struct stored *s = &r->stored[i];
	uint8_t *dst;
	int rc;

	if (!(s->flags & (FATBIN_FLAG_ZSTD | FATBIN_FLAG_LZ4)) ||
	    s->flags & FATBIN_FLAG_SCRAMBLED) {
		say(error, error_size, "entry %zu is packed in an unknown way (flags %#llx)", i,
		    (unsigned long long)s->flags);
		return -ENOTSUP;
	}
	if (e->size > FATBIN_ENTRY_MAX || r->unpacked_total + e->size > FATBIN_TOTAL_MAX) {
		say(error, error_size, "entry %zu says it unpacks to %zu bytes, which is too much",
		    i, e->size);
		return -E2BIG;
	}
	if (!(s->flags & FATBIN_FLAG_ZSTD) &&
	    (s->size > INT_MAX || e->size / FATBIN_LZ4_RATIO_MAX > s->size)) {
		say(error, error_size, "entry %zu can't unpack to %zu bytes", i, e->size);
		return -EINVAL;
	}
	dst = malloc(e->size ? e->size : 1);
	if (!dst) {
		say(error, error_size, "out of memory for %zu bytes", e->size);
		return -ENOMEM;
	}
	rc = unpack_into(s, dst, e->size);
	if (rc < 0) {
		say(error, error_size, "entry %zu is damaged: it does not unpack to %zu bytes", i,
		    e->size);
		free(dst);
		return rc;
	}
	s->unpacked = dst;
	r->unpacked_total += e->size;
	return 0;
}

int fatbin_unpack(struct fatbin *f, const struct fatbin_entry *entry, char *error,
		  size_t error_size, const uint8_t **ret_data, size_t *ret_size) {
	struct reader *r = (struct reader *)f;
	size_t i = (size_t)(entry - r->entries), n = entry->size;
	const uint8_t *data;
	int rc;

	if (entry->compressed && !r->stored[i].unpacked) {
		rc = unpack_entry(r, i, error, error_size);
		if (rc < 0) {
			return rc;
		}
	}
	data = entry->compressed ? r->stored[i].unpacked : r->stored[i].bytes;
	if (entry->kind == FATBIN_PTX) {
		while (n && !data[n - 1]) {
			n--;
		}
	}
	*ret_data = data;
	*ret_size = n;
	return 0;
}

static const struct stored *stored_of(const struct fatbin *f, const struct fatbin_entry *entry) {
	const struct reader *r = (const struct reader *)f;

	return &r->stored[entry - r->entries];
}

const uint8_t *fatbin_options(const struct fatbin *f, const struct fatbin_entry *entry,
			      size_t *ret_size) {
	const struct stored *s = stored_of(f, entry);
	size_t at;

	*ret_size = 0;
	if (!s->header || s->header_size == FATBIN_ENTRY_HEADER_SIZE) {
		return NULL;
	}
	at = load32(s->header + 20);
	/* They may be anywhere if they don't stand where they are known to. */
	if (at >= FATBIN_ENTRY_HEADER_SIZE && at + 8 <= s->header_size &&
	    load32(s->header + at + 4) == 0) {
		return NULL;
	}
	*ret_size = s->header_size - FATBIN_ENTRY_HEADER_SIZE;
	return s->header + FATBIN_ENTRY_HEADER_SIZE;
}

static void store32(uint8_t *p, uint32_t v) {
	memcpy(p, &v, sizeof(v));
}

static void store64(uint8_t *p, uint64_t v) {
	memcpy(p, &v, sizeof(v));
}

void *fatbin_with_text(const struct fatbin *f, const struct fatbin_entry *entry, const char *text,
		       size_t size) {
	const struct stored *s = stored_of(f, entry);
	size_t payload = (size / 8 + 1) * 8; /* it is terminated, too */
	size_t body = s->header_size + payload;
	uint8_t *container, *header;

	container = calloc(1, FATBIN_HEADER_SIZE + body);
	if (!container) {
		return NULL;
	}
	header = container + FATBIN_HEADER_SIZE;
	store32(container, FATBIN_MAGIC);
	store32(container + 4, FATBIN_VERSION | FATBIN_HEADER_SIZE << 16);
	store64(container + 8, body);
	memcpy(header, s->header, s->header_size);
	store64(header + 8, payload);
	store32(header + 16, 0); /* not packed */
	store64(header + 40, s->flags & ~(uint64_t)(FATBIN_FLAG_LZ4 | FATBIN_FLAG_ZSTD));
	store64(header + 56, 0);
	memcpy(header + s->header_size, text, size);
	return container;
}

/* May a GPU of @sm be given PTX of this entry? sm_100f runs on 10.x; the exact minor versions of a
 * family are NVIDIA's to say, and the driver has the last word when the twin is loaded. */
static bool entry_suits(const struct fatbin_entry *e, unsigned sm) {
	if (e->kind != FATBIN_PTX) {
		return false;
	}
	if (!sm) {
		return true;
	}
	switch (e->suffix) {
	case 'a':
		return e->sm == sm;
	case 'f':
		return e->sm <= sm && e->sm / 10 == sm / 10;
	default:
		return e->sm <= sm;
	}
}

const struct fatbin_entry *fatbin_best_ptx(const struct fatbin *f, unsigned image, unsigned sm) {
	const struct fatbin_entry *best = NULL;

	for (size_t i = 0; i < f->n_entries; i++) {
		const struct fatbin_entry *e = &f->entries[i];

		if (e->image != image || !entry_suits(e, sm)) {
			continue;
		}
		/* Of two for the same architecture the more specific one. */
		if (!best || e->sm > best->sm ||
		    (e->sm == best->sm && e->suffix && !best->suffix)) {
			best = e;
		}
	}
	return best;
}

const struct fatbin_entry *fatbin_best_cubin(const struct fatbin *f, unsigned image, unsigned sm) {
	const struct fatbin_entry *best = NULL;

	for (size_t i = 0; i < f->n_entries; i++) {
		const struct fatbin_entry *e = &f->entries[i];

		if (e->image != image || e->kind != FATBIN_CUBIN || e->sm > sm ||
		    e->sm / 10 != sm / 10 || (e->suffix == 'a' && e->sm != sm)) {
			continue;
		}
		if (!best || e->sm > best->sm ||
		    (e->sm == best->sm && e->suffix && !best->suffix)) {
			best = e;
		}
	}
	return best;
}

const void *fatbin_unwrap(const void *image) {
	const uint8_t *p = image;
	struct wrapper w;

	/* Byte by byte: text may end before four. */
	for (unsigned i = 0; i < sizeof(w.magic); i++) {
		if (p[i] != (FATBIN_WRAPPER_MAGIC >> 8 * i & 0xFF)) {
			return image;
		}
	}
	memcpy(&w, image, sizeof(w));
	return w.container ? w.container : image;
}

size_t fatbin_image_size(const void *image) {
	const uint8_t *p = image;
	size_t size;

	if (p[0] == 0x7F) {
		return p[1] == 'E' && p[2] == 'L' && p[3] == 'F' ? elf_extent(image) : 0;
	}
	if (p[0] == (FATBIN_MAGIC & 0xFF)) {
		if (p[1] != (FATBIN_MAGIC >> 8 & 0xFF) || load32(p) != FATBIN_MAGIC ||
		    __builtin_add_overflow(load64(p + 8), load16(p + 6), &size) ||
		    size > PTRDIFF_MAX) {
			return 0;
		}
		return size;
	}
	size = strnlen(image, FATBIN_ENTRY_MAX + 1ul);
	if (size > FATBIN_ENTRY_MAX || !text_is_ptx(image, size)) {
		return 0;
	}
	return size;
}
