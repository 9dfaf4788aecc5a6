/*
 * object.h: the program's loaded objects, as the dynamic linker has them in memory: what they
 * define, and the slots through which they reach what others define.
 *
 * Nothing here calls the dynamic linker but object_each() (dl_iterate_phdr), which keeps objects
 * from being unloaded during a call. dlerror() says afterwards what it said before.
 */
#pragma once

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct object_slots {
	const ElfW(Rela) * list;
	size_t n;
};

/* How many objects were ever loaded and unloaded, in the process. */
struct object_changes {
	unsigned long long loaded, unloaded;
};

/* One loaded object. Valid during the call of object_each() that showed it. */
struct object {
	struct object_changes changes; /* as of this call */
	unsigned index;		       /* in the linker's list, where new objects come last */
	const char *name;	       /* its path; empty: the program */
	const char *soname;	       /* NULL: none */
	uintptr_t base;		       /* what addresses in the file are relative to */
	uintptr_t low, high;	       /* where its segments are */
	bool has_runpath, has_rpath;
	const ElfW(Dyn) * dynamic;
	const ElfW(Sym) * symbols;
	const char *strings;
	const uint16_t *versions; /* of symbols; NULL: they have none */
	const uint32_t *gnu_hash, *hash; /* NULL: it has none */
	struct object_slots slots[2];
	uintptr_t guarded, guarded_end; /* read-only once it is relocated */
};

/* Calls @f for each object of the main namespace, in the linker's order, until it returns true.
 * @f may call object_each(). Return: what @f returned last. */
bool object_each(bool (*f)(const struct object *o, void *data), void *data);

/* @ret_n, which may be NULL: how many objects there are. */
struct object_changes object_changes(unsigned *ret_n);

/* Whether it is the library @soname, by its own name or its file's. */
bool object_is(const struct object *o, const char *soname);

static inline bool object_holds(const struct object *o, const void *address) {
	return (uintptr_t)address >= o->low && (uintptr_t)address < o->high;
}

/* Whether it asks for the library @soname. */
bool object_needs(const struct object *o, const char *soname);

/* Where @o defines the function or variable @name, in its default version. NULL: it does not. @is_function may be NULL. */
void *object_symbol(const struct object *o, const char *name, bool *is_function);

/* The same of the first library with one of @sonames, which end with NULL: of the C library's own,
 * which are there from the start and stay. Makes no call at all. */
void *object_early_symbol(const char *const *sonames, const char *name);

/* A pointer in @o that the linker fills in with the address of @name. */
struct object_slot {
	const char *name;
	void **at;
	bool is_lazy; /* it has not been resolved yet, but will be at the first call; or it holds
		       * the object's own function */
	bool is_own;  /* the object has a definition itself, which others may come before */
};

/* Calls @f for each slot of @o that is bound by a symbol. */
void object_each_slot(const struct object *o,
		      void (*f)(const struct object *o, const struct object_slot *s, void *data),
		      void *data);

/* Return: false where its page can't be written. */
bool object_slot_set(const struct object *o, const struct object_slot *s, void *value);
