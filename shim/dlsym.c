/*
 * dlsym.c: the interposed dlsym(), dlvsym(), dlopen() and dlmopen(). By themselves, so that tests
 * which link the shim instead of preloading it can leave them out.
 *
 * The C library looks at who calls: at the caller's place in the list of objects for RTLD_NEXT, at
 * its scope for RTLD_DEFAULT, at its RUNPATH in dlopen(). So these functions end in a jump to the C
 * library's, which then sees the program and not us, and fails as it does without us. A look-up
 * returns our wrapper instead, if it is known that the C library's would find the driver's
 * function.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stddef.h>
#include <string.h>

#include "shim/base/early.h"
#include "shim/base/log.h"
#include "shim/bind.h"
#include "shim/fronts.h"
#include "shim/lookup.h"
#include "shim/marks.h"
#include "shim/object.h"
#include "shim/place.h"
#include "shim/real.h"
#include "shim/state.h"

#ifdef __clang__
#define TAIL_CALLS
#define TAIL_RETURN __attribute__((musttail)) return
#else
#define TAIL_CALLS  __attribute__((optimize("O2")))
#define TAIL_RETURN return
#endif

/* ---- look-ups ---- */

/* A caller, and the first object behind it that defines the name; none of ours. */
struct place_of {
	const void *caller;
	const char *name;
	bool is_found, has_next;
	struct object object, next;
};

static bool find_place(const struct object *o, void *data) {
	static const char here;
	struct place_of *p = data;

	if (!p->is_found) {
		p->is_found = object_holds(o, p->caller);
		p->object = *o;
		return false;
	}
	p->has_next = !object_holds(o, &here) && object_symbol(o, p->name, NULL);
	p->next = *o;
	return p->has_next;
}

/* A question to the C library that leaves no trace. */
static void *ask(void *handle, const char *name, const char *version) {
	const struct real_dl *dl = real_dl_get();
	void *found = version ? dl->vsym(handle, name, version) : dl->sym(handle, name);

	if (!found) {
		dl->error();
	}
	return found;
}

/* In the scope that the caller's own object brought along. */
static void *ask_in_object(const struct place_of *p, const char *name, const char *version) {
	const struct real_dl *dl = real_dl_get();
	void *handle = p->is_found && *p->object.name
			       ? dl->open(p->object.name, RTLD_LAZY | RTLD_NOLOAD)
			       : NULL;
	void *found = handle ? ask(handle, name, version) : NULL;

	if (handle) {
		dl->close(handle);
	} else {
		dl->error();
	}
	return found;
}

static void *ask_default(const void *caller, const char *name, const char *version) {
	struct place_of p = {.caller = caller, .name = name};
	void *found = ask(RTLD_DEFAULT, name, version);

	if (!found) {
		object_each(find_place, &p);
		found = ask_in_object(&p, name, version);
	}
	return found;
}

/* Whether the driver is anywhere in the caller's scope, by functions that other libraries hardly
 * stand in for. */
static bool reaches_driver(const struct place_of *p) {
	static const char *const names[] = {
#define CALL(name) #name,
#include "shim/real.def"
	};
	const struct real *real = real_get_loaded();

	for (unsigned i = 0; real && i < sizeof(names) / sizeof(*names); i++) {
		void *there = object_symbol(&p->next, names[i], NULL);

		if (there && (ask(RTLD_DEFAULT, names[i], NULL) == there ||
			      ask_in_object(p, names[i], NULL) == there)) {
			return true;
		}
	}
	return false;
}

static void *ask_next(const void *caller, const char *name, const char *version) {
	struct place_of p = {.caller = caller, .name = name};
	void *found;

	if (!object_each(find_place, &p) || !p.is_found || !p.has_next) {
		return NULL;
	}
	found = object_symbol(&p.next, name, NULL);
	if (object_is(&p.next, REAL_DRIVER)) {
		return reaches_driver(&p) ? found : NULL;
	}
	return bind_ours(found) ? ask(RTLD_NEXT, name, version) : NULL;
}

EARLY static bool is_of_libc(const char *name) {
	return name[0] == 'd' && name[1] == 'l' &&
	       (early_same(name, "dlsym") || early_same(name, "dlvsym") ||
		early_same(name, "dlopen") || early_same(name, "dlmopen"));
}

/* Ours instead of what the caller would find. NULL: that is something else, or nothing. */
static __attribute__((noinline)) void *find_ours(void *handle, const char *name,
						 const char *version, const void *caller) {
	int saved = errno;
	void *found, *wrapper;

	bind_expected();
	found = handle == RTLD_NEXT	 ? ask_next(caller, name, version)
		: handle == RTLD_DEFAULT ? ask_default(caller, name, version)
					 : ask(handle, name, version);
	if (is_of_libc(name)) {
		wrapper = bind_ours(found);
	} else {
		wrapper = lookup_replace(found);
		wrapper = wrapper == found ? NULL : wrapper;
	}
	if (wrapper) {
		fronts_serve(caller);
		place_reconsider();
	}
	errno = saved;
	return wrapper;
}

EARLY static bool is_concerned(const char *name) {
	return lookup_is_of_driver(name) ? !state_bypass() : bind_has_started() && is_of_libc(name);
}

SBEET_EXPORT TAIL_CALLS EARLY void *dlsym(void *restrict handle, const char *restrict name) {
	const struct real_dl *dl = real_dl_get();
	void *found;

	if (!dl->sym) {
		return NULL;
	}
	if (is_concerned(name)) {
		found = find_ours(handle, name, NULL, __builtin_return_address(0));
		if (found) {
			return found;
		}
	} else {
		bind_expected();
	}
	TAIL_RETURN dl->sym(handle, name);
}

SBEET_EXPORT TAIL_CALLS EARLY void *dlvsym(void *restrict handle, const char *restrict name,
					   const char *restrict version) {
	const struct real_dl *dl = real_dl_get();
	void *found;

	if (!dl->vsym) {
		return NULL;
	}
	if (is_concerned(name)) {
		found = find_ours(handle, name, version, __builtin_return_address(0));
		if (found) {
			return found;
		}
	} else {
		bind_expected();
	}
	TAIL_RETURN dl->vsym(handle, name, version);
}

/* ---- libraries that are opened ---- */

struct loader {
	const void *caller;
	bool is_found, has_path;
};

/* An RPATH counts for what its object has loaded, too. */
static bool note_path(const struct object *o, void *data) {
	struct loader *l = data;
	bool holds = object_holds(o, l->caller);

	l->is_found |= holds;
	l->has_path |= (holds && o->has_runpath) || (o->has_rpath && !o->has_runpath);
	return false;
}

/* Whether it is the same file whoever opens it. */
static bool is_same_for_all(const char *file, const void *caller) {
	struct loader l = {.caller = caller};

	if (strchr(file, '$')) {
		return false;
	}
	if (strchr(file, '/')) {
		return true;
	}
	object_each(note_path, &l);
	return l.is_found && !l.has_path;
}

static unsigned deep_from(int mode) {
	unsigned n = UINT_MAX;

	if (mode & RTLD_DEEPBIND) {
		object_changes(&n);
	}
	return n;
}

static __attribute__((noinline)) void *open_and_bind(const char *file, int mode) {
	const unsigned from = deep_from(mode);
	void *handle = real_dl_get()->open(file, mode);

	if (handle) {
		bind_opened(from);
	}
	return handle;
}

SBEET_EXPORT TAIL_CALLS void *dlopen(const char *file, int mode) {
	const struct real_dl *dl = real_dl_get();

	if (file && *file && !(mode & RTLD_NOLOAD)) {
		if (is_same_for_all(file, __builtin_return_address(0))) {
			return open_and_bind(file, mode);
		}
		bind_expect(deep_from(mode));
	}
	TAIL_RETURN dl->open(file, mode);
}

SBEET_EXPORT TAIL_CALLS void *dlmopen(Lmid_t lmid, const char *file, int mode) {
	const struct real_dl *dl = real_dl_get();

	if (lmid == LM_ID_BASE) {
		bind_expect(deep_from(mode));
	} else {
		log_once(LOG_LEVEL_INFO,
			 "'%s' is loaded into a namespace of its own (dlmopen): what it does on a "
			 "GPU is not managed",
			 file ? file : "The program");
	}
	TAIL_RETURN dl->mopen(lmid, file, mode);
}

__attribute__((constructor)) static void start(void) {
	static const struct real_dl ours = {
		.open = dlopen, .mopen = dlmopen, .sym = dlsym, .vsym = dlvsym};

	if (marks_are_found()) {
		bind_start(&ours);
	}
}
