/*
 * image.c: see image.h.
 *
 * Answers are shared by what they are made from: the PTX text and what stands before it in a fat
 * binary, options for the compiler, known by two hashes and their length.
 * Texts are not kept, so two that agree in all three would be taken for one: 2^-128 for different
 * texts of one program, which can hurt nobody but itself.
 */
#include "shim/enforce/image.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/base/env.h"
#include "shim/ptx/fatbin.h"
#include "shim/ptx/taken.h"

#define IMAGE_TEXT_MAX 512

struct shared {
	struct image pub; /* first, so that it can be cast back */
	uint64_t hash[2];
	size_t size;
	unsigned n_refs;	     /* under the lock */
	struct transform *transform; /* owned; NULL: refused */
	void *wrapped;		     /* owned; NULL: no options stand beside the text */
	char refusal[IMAGE_TEXT_MAX];
	struct shared *next; /* in `list`; those without a text are not in it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct shared *list; /* under the lock */

static struct shared *shared_new(void) {
	struct shared *s = calloc(1, sizeof(*s));

	if (s) {
		s->n_refs = 1;
	}
	return s;
}

/* An answer that is of no use, with the reason. */
__attribute__((format(printf, 1, 2))) static const struct image *refuse(const char *format, ...) {
	struct shared *s = shared_new();
	va_list args;

	if (!s) {
		return NULL;
	}
	va_start(args, format);
	vsnprintf(s->refusal, sizeof(s->refusal), format, args);
	va_end(args);
	s->pub.refusal = s->refusal;
	return &s->pub;
}

static uint64_t hash_text(const uint8_t *p, size_t n, uint64_t seed) {
	uint64_t h = seed;

	/* FNV-1a */
	for (size_t i = 0; i < n; i++) {
		h = (h ^ p[i]) * 0x100000001B3ull;
	}
	return h;
}

/* Under the lock. */
static struct shared *shared_find(const struct shared *like) {
	for (struct shared *s = list; s; s = s->next) {
		if (s->size == like->size && s->hash[0] == like->hash[0] &&
		    s->hash[1] == like->hash[1]) {
			s->n_refs++;
			return s;
		}
	}
	return NULL;
}

static struct shared *shared_free(struct shared *s) {
	if (s) {
		transform_free(s->transform);
		free(s->wrapped);
		free(s);
	}
	return NULL;
}

/* Transforms @text, that of @entry. Return: false without memory. */
static bool shared_make(struct shared *s, const struct fatbin *f, const struct fatbin_entry *entry,
			const uint8_t *text, size_t size) {
	char error[IMAGE_TEXT_MAX / 2] = "";
	size_t n;
	int r = transform_new(&s->transform, (const char *)text, size, error, sizeof(error));

	if (r == -ENOMEM) {
		return false;
	}
	if (r < 0) {
		snprintf(s->refusal, sizeof(s->refusal), "its PTX can't be read: %s", error);
		s->pub.refusal = s->refusal;
		return true;
	}
	s->pub.transform = s->transform;
	s->pub.code = s->transform->ptx;
	if (s->transform->ptx && fatbin_options(f, entry, &n)) {
		s->pub.code = s->wrapped =
			fatbin_with_text(f, entry, s->transform->ptx, s->transform->ptx_size);
	}
	return s->pub.code || !s->transform->ptx;
}

/* Of @text, that of @entry. */
static const struct image *image_of_text(const struct fatbin *f, const struct fatbin_entry *entry,
					 const uint8_t *text, size_t size) {
	struct shared *s = shared_new(), *known;
	const uint8_t *header;
	size_t n;

	if (!s) {
		return NULL;
	}
	header = fatbin_options(f, entry, &n);
	s->size = size + n;
	s->hash[0] = hash_text(text, size, hash_text(header, n, 0xCBF29CE484222325ull));
	s->hash[1] = hash_text(text, size, hash_text(header, n, 0x6C62272E07BB0142ull));
	pthread_mutex_lock(&lock);
	known = shared_find(s);
	pthread_mutex_unlock(&lock);
	if (known) {
		shared_free(s);
		return &known->pub;
	}
	if (!shared_make(s, f, entry, text, size)) {
		shared_free(s);
		return NULL;
	}
	pthread_mutex_lock(&lock);
	known = shared_find(s); /* another thread may have been faster */
	if (!known) {
		s->next = list;
		list = s;
	}
	pthread_mutex_unlock(&lock);
	if (known) {
		shared_free(s);
		return &known->pub;
	}
	return &s->pub;
}

/*
 * The PTX that the driver would compile. Where it would run machine code instead, the PTX has to be
 * for the same architecture: code that is compiled for another one may be different code (nvcc's
 * __CUDA_ARCH__), with other results and even another block size in mind.
 */
static const struct image *image_of_fatbin(struct fatbin *f, unsigned sm) {
	const struct fatbin_entry *ptx = fatbin_best_ptx(f, 0, sm), *cubin;
	char error[IMAGE_TEXT_MAX / 2] = "";
	const uint8_t *text;
	size_t size;
	int r;

	if (!ptx) {
		return refuse("the program carries no PTX of it for compute capability %u.%u",
			      sm / 10, sm % 10);
	}
	cubin = env_get()->force_jit ? NULL : fatbin_best_cubin(f, 0, sm);
	if (cubin && (cubin->sm != ptx->sm || cubin->suffix != ptx->suffix)) {
		return refuse(
			"the program carries machine code of it for sm_%u, but PTX only for "
			"sm_%u, which may be different code",
			cubin->sm, ptx->sm);
	}
	r = fatbin_unpack(f, ptx, error, sizeof(error), &text, &size);
	if (r < 0) {
		return r == -ENOMEM ? NULL : refuse("its fat binary can't be read: %s", error);
	}
	return image_of_text(f, ptx, text, size);
}

static const struct image *image_of_bytes(const void *bytes, size_t size, unsigned sm) {
	const struct image *i;
	struct fatbin *f = NULL;
	char error[IMAGE_TEXT_MAX / 2] = "";
	int r;

	r = fatbin_new(&f, bytes, size, error, sizeof(error));
	if (r < 0) {
		return r == -ENOMEM ? NULL : refuse("its image can't be read: %s", error);
	}
	i = image_of_fatbin(f, sm);
	fatbin_free(f);
	return i;
}

/* An image in memory: the program's, or a file's. */
struct bytes {
	const void *at;
	size_t size;
	void *mapped; /* owned; NULL: the program's */
};

static bool open_file(struct bytes *ret, const char *path, char *why, size_t why_size) {
	struct stat st;
	void *p;
	int fd;

	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		snprintf(why, why_size, "its file '%s' can't be opened: %m", path);
		return false;
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size) {
		close(fd);
		snprintf(why, why_size, "'%s' is no regular file with something in it", path);
		return false;
	}
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED) {
		snprintf(why, why_size, "its file '%s' can't be read: %m", path);
		return false;
	}
	*ret = (struct bytes){.at = p, .size = (size_t)st.st_size, .mapped = p};
	return true;
}

/* @image, @path as in image_get(). False: @why not. */
static bool bytes_open(struct bytes *ret, const void *image, const char *path, char *why,
		       size_t why_size) {
	if (!image && path) {
		return open_file(ret, path, why, why_size);
	}
	*ret = (struct bytes){.at = image ? fatbin_unwrap(image) : NULL};
	ret->size = ret->at ? fatbin_image_size(ret->at) : 0;
	if (!ret->size) {
		snprintf(why, why_size, "%s",
			 image ? "its image is of an unknown kind" : "there is no image");
	}
	return ret->size > 0;
}

static void bytes_close(struct bytes *b) {
	if (b->mapped) {
		munmap(b->mapped, b->size);
	}
}

const struct image *image_get(const void *image, const char *path, unsigned sm) {
	char why[IMAGE_TEXT_MAX];
	const struct image *i;
	struct bytes b;

	if (!bytes_open(&b, image, path, why, sizeof(why))) {
		return refuse("%s", why);
	}
	i = image_of_bytes(b.at, b.size, sm);
	bytes_close(&b);
	return i;
}

/* The one entry that the driver takes for each of the GPUs; NULL: not the same for all, or
 * something that we don't know, or PTX of which it makes different code. */
static const struct fatbin_entry *taken_by_all(const struct fatbin *f, const unsigned *sms,
					       unsigned n_sms) {
	const struct fatbin_entry *ret = NULL;

	for (unsigned i = 0; i < n_sms; i++) {
		const struct fatbin_entry *e =
			taken_entry(f, 0, sms[i], env_get()->force_jit, NULL, 0);

		if (!e || (ret && e != ret) || (e->kind == FATBIN_PTX && sms[i] != sms[0])) {
			return NULL;
		}
		ret = e;
	}
	return ret;
}

static void *wait_first_of_fatbin(struct fatbin *f, const unsigned *sms, unsigned n_sms) {
	const struct fatbin_entry *e = taken_by_all(f, sms, n_sms);
	void *ret = NULL;

	return e && taken_wait_first(&ret, f, e, NULL, 0) == 0 ? ret : NULL;
}

void *image_wait_first(const void *image, const char *path, const unsigned *sms, unsigned n_sms) {
	char why[IMAGE_TEXT_MAX];
	struct fatbin *f = NULL;
	void *ret = NULL;
	struct bytes b;

	if (!bytes_open(&b, image, path, why, sizeof(why))) {
		return NULL;
	}
	if (fatbin_new(&f, b.at, b.size, NULL, 0) == 0) {
		ret = wait_first_of_fatbin(f, sms, n_sms);
		fatbin_free(f);
	}
	bytes_close(&b);
	return ret;
}

const struct image *image_put(const struct image *i) {
	struct shared *s = (struct shared *)i, **at;
	unsigned left;

	if (!s) {
		return NULL;
	}
	pthread_mutex_lock(&lock);
	left = --s->n_refs;
	for (at = &list; !left && *at; at = &(*at)->next) {
		if (*at == s) {
			*at = s->next;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	if (!left) {
		shared_free(s);
	}
	return NULL;
}

void image_after_fork(void) {
	pthread_mutex_init(&lock, NULL);
	list = NULL;
}
