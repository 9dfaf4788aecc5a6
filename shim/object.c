/*
 * object.c: see object.h.
 */
#include "shim/object.h"

#include <sys/mman.h>
#include <unistd.h>

#include "shim/base/early.h"

#ifdef __x86_64__
#define SLOT_DATA R_X86_64_GLOB_DAT
#define SLOT_CALL R_X86_64_JUMP_SLOT
#define SLOT_WORD R_X86_64_64
#else
#define SLOT_DATA R_AARCH64_GLOB_DAT
#define SLOT_CALL R_AARCH64_JUMP_SLOT
#define SLOT_WORD R_AARCH64_ABS64
#endif

/* The linker turns most of these into addresses, but not where the section is read-only. */
EARLY static uintptr_t address_of(const struct object *o, uintptr_t value) {
	return value < o->base ? o->base + value : value;
}

EARLY static void read_segments(struct object *o, const struct dl_phdr_info *info) {
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);

	o->low = UINTPTR_MAX;
	for (unsigned i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t begin = o->base + p->p_vaddr, end = begin + p->p_memsz;

		switch (p->p_type) {
		case PT_LOAD:
			o->low = begin < o->low ? begin : o->low;
			o->high = end > o->high ? end : o->high;
			break;
		case PT_DYNAMIC:
			o->dynamic = (const ElfW(Dyn) *)begin;
			break;
		case PT_GNU_RELRO: /* the linker protects whole pages only */
			o->guarded = begin & ~(page - 1);
			o->guarded_end = end & ~(page - 1);
			break;
		}
	}
}

EARLY static void read_dynamic(struct object *o) {
	uintptr_t soname = 0, calls_size = 0, size = 0;

	for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
		uintptr_t value = d->d_un.d_val, at = address_of(o, value);

		switch (d->d_tag) {
		case DT_SYMTAB:
			o->symbols = (const ElfW(Sym) *)at;
			break;
		case DT_STRTAB:
			o->strings = (const char *)at;
			break;
		case DT_GNU_HASH:
			o->gnu_hash = (const uint32_t *)at;
			break;
		case DT_VERSYM:
			o->versions = (const uint16_t *)at;
			break;
		case DT_HASH:
			o->hash = (const uint32_t *)at;
			break;
		case DT_RELA:
			o->slots[0].list = (const ElfW(Rela) *)at;
			break;
		case DT_RELASZ:
			size = value;
			break;
		case DT_JMPREL:
			o->slots[1].list = (const ElfW(Rela) *)at;
			break;
		case DT_PLTRELSZ:
			calls_size = value;
			break;
		case DT_SONAME:
			soname = value;
			break;
		case DT_RUNPATH:
			o->has_runpath = true;
			break;
		case DT_RPATH:
			o->has_rpath = true;
			break;
		}
	}
	o->slots[0].n = o->slots[0].list ? size / sizeof(ElfW(Rela)) : 0;
	o->slots[1].n = o->slots[1].list ? calls_size / sizeof(ElfW(Rela)) : 0;
	o->soname = soname && o->strings ? o->strings + soname : NULL;
	if (!o->symbols || !o->strings) {
		o->gnu_hash = o->hash = NULL;
		o->slots[0].n = o->slots[1].n = 0;
	}
}

struct walk {
	bool (*f)(const struct object *o, void *data);
	void *data;
	unsigned n;
};

EARLY static int show(struct dl_phdr_info *info, size_t size, void *data) {
	struct walk *walk = data;
	struct object o = {.index = walk->n++, .name = info->dlpi_name, .base = info->dlpi_addr};

	(void)size;
	o.changes = (struct object_changes){info->dlpi_adds, info->dlpi_subs};
	read_segments(&o, info);
	read_dynamic(&o);
	return walk->f(&o, walk->data);
}

EARLY bool object_each(bool (*f)(const struct object *o, void *data), void *data) {
	struct walk walk = {.f = f, .data = data};

	return dl_iterate_phdr(show, &walk) != 0;
}

EARLY void *object_early_symbol(const char *const *sonames, const char *name) {
	void *found = NULL;

	for (const struct link_map *l = _r_debug.r_map; l && !found; l = l->l_next) {
		struct object o = {.name = l->l_name, .base = l->l_addr, .dynamic = l->l_ld};

		read_dynamic(&o);
		for (unsigned i = 0; sonames[i] && o.soname && o.symbols && !found; i++) {
			found = early_same(o.soname, sonames[i]) ? object_symbol(&o, name, NULL)
								 : NULL;
		}
	}
	return found;
}

struct tally {
	struct object_changes changes;
	unsigned n;
	bool all;
};

EARLY static int tally(struct dl_phdr_info *info, size_t size, void *data) {
	struct tally *t = data;

	(void)size;
	t->changes = (struct object_changes){info->dlpi_adds, info->dlpi_subs};
	t->n++;
	return !t->all;
}

EARLY struct object_changes object_changes(unsigned *ret_n) {
	struct tally t = {.all = ret_n};

	dl_iterate_phdr(tally, &t);
	if (ret_n) {
		*ret_n = t.n;
	}
	return t.changes;
}

EARLY bool object_is(const struct object *o, const char *soname) {
	const char *file = o->name;

	for (const char *c = o->name; *c; c++) {
		file = *c == '/' ? c + 1 : file;
	}
	return early_same(file, soname) || (o->soname && early_same(o->soname, soname));
}

EARLY bool object_needs(const struct object *o, const char *soname) {
	for (const ElfW(Dyn) *d = o->dynamic; d && d->d_tag != DT_NULL; d++) {
		if (d->d_tag == DT_NEEDED && o->strings &&
		    early_same(o->strings + d->d_un.d_val, soname)) {
			return true;
		}
	}
	return false;
}

/* ---- what it defines ---- */

/* One for programs that were linked long ago. */
EARLY static bool is_old_version(const struct object *o, uint32_t i) {
	return o->versions && o->versions[i] & 0x8000;
}

EARLY static const ElfW(Sym) * find_by_gnu_hash(const struct object *o, const char *name) {
	const uint32_t n_buckets = o->gnu_hash[0], first = o->gnu_hash[1], n_words = o->gnu_hash[2];
	const ElfW(Addr) *words = (const ElfW(Addr) *)&o->gnu_hash[4];
	const uint32_t *buckets = (const uint32_t *)&words[n_words];
	const uint32_t *chains = &buckets[n_buckets];
	const unsigned bits = 8 * sizeof(*words);
	ElfW(Addr) word;
	uint32_t h = 5381, i;

	for (const char *c = name; *c; c++) {
		h = h * 33 + (unsigned char)*c;
	}
	if (n_buckets == 0 || n_words == 0) {
		return NULL;
	}
	word = words[h / bits % n_words];
	if (!(word >> h % bits & 1) || !(word >> (h >> o->gnu_hash[3]) % bits & 1)) {
		return NULL;
	}
	i = buckets[h % n_buckets];
	if (i < first) {
		return NULL;
	}
	for (;; i++) {
		uint32_t other = chains[i - first];

		if ((other | 1) == (h | 1) &&
		    early_same(o->strings + o->symbols[i].st_name, name)) {
			return &o->symbols[i];
		}
		if (other & 1) {
			return NULL;
		}
	}
}

EARLY static const ElfW(Sym) * find_by_hash(const struct object *o, const char *name) {
	const uint32_t n_buckets = o->hash[0], *buckets = &o->hash[2], *next = &buckets[n_buckets];
	uint32_t h = 0;

	for (const char *c = name; *c; c++) {
		h = (h << 4) + (unsigned char)*c;
		h = (h ^ (h & 0xf0000000) >> 24) & 0x0fffffff;
	}
	for (uint32_t i = n_buckets ? buckets[h % n_buckets] : 0; i; i = next[i]) {
		if (!is_old_version(o, i) && early_same(o->strings + o->symbols[i].st_name, name)) {
			return &o->symbols[i];
		}
	}
	return NULL;
}

EARLY void *object_symbol(const struct object *o, const char *name, bool *is_function) {
	const ElfW(Sym) *s = o->gnu_hash ? find_by_gnu_hash(o, name)
			     : o->hash	 ? find_by_hash(o, name)
					 : NULL;

	if (!s || s->st_shndx == SHN_UNDEF) {
		return NULL;
	}
	if (is_function) {
		*is_function = ELF64_ST_TYPE(s->st_info) == STT_FUNC ||
			       ELF64_ST_TYPE(s->st_info) == STT_GNU_IFUNC;
	}
	return (void *)(o->base + s->st_value);
}

/* ---- what it reaches of others ---- */

EARLY static void show_slot(const struct object *o, const ElfW(Rela) * r,
			    void (*f)(const struct object *o, const struct object_slot *s,
				      void *data),
			    void *data) {
	const unsigned type = ELF64_R_TYPE(r->r_info);
	const ElfW(Sym) *symbol = &o->symbols[ELF64_R_SYM(r->r_info)];
	struct object_slot s = {
		.name = o->strings + symbol->st_name,
		.at = (void **)(o->base + r->r_offset),
		.is_own = symbol->st_shndx != SHN_UNDEF,
	};

	s.is_lazy = type == SLOT_CALL && object_holds(o, *s.at);
	f(o, &s, data);
}

EARLY void object_each_slot(const struct object *o,
			    void (*f)(const struct object *o, const struct object_slot *s,
				      void *data),
			    void *data) {
	for (unsigned i = 0; i < 2; i++) {
		for (size_t j = 0; j < o->slots[i].n; j++) {
			const ElfW(Rela) *r = &o->slots[i].list[j];
			const unsigned type = ELF64_R_TYPE(r->r_info);

			if (type == SLOT_DATA || type == SLOT_CALL ||
			    (type == SLOT_WORD && r->r_addend == 0)) {
				show_slot(o, r, f, data);
			}
		}
	}
}

EARLY bool object_slot_set(const struct object *o, const struct object_slot *s, void *value) {
	const uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)s->at;
	bool is_guarded = at >= o->guarded && at < o->guarded_end;
	void *page = (void *)(at & ~(size - 1));

	if (is_guarded && mprotect(page, size, PROT_READ | PROT_WRITE) < 0) {
		return false;
	}
	__atomic_store_n(s->at, value, __ATOMIC_RELEASE); /* others may be calling through it */
	if (is_guarded) {
		mprotect(page, size, PROT_READ);
	}
	return true;
}
