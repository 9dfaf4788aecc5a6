/*
 * bind.c: see bind.h.
 */
#include "shim/bind.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "shim/base/early.h"
#include "shim/base/log.h"
#include "shim/fronts.h"
#include "shim/lookup.h"
#include "shim/object.h"
#include "shim/state.h"

static const struct real_dl *ours; /* NULL: we are not preloaded */
static unsigned n_started;	   /* objects that were there at start: the global scope */

/* Written with the linker's list of objects locked, see bind_object(). */
static struct object driver;		    /* never unloaded */
static unsigned n_bound;		    /* objects before this one are bound, */
static unsigned long long n_bound_unloaded; /* if none has been unloaded since */

static _Atomic unsigned long long seen_loaded, seen_unloaded;
static atomic_bool expected;
static _Atomic unsigned expected_deep = UINT_MAX;

static bool has_fronts; /* they are known */

EARLY bool bind_has_started(void) {
	return ours != NULL;
}

void *bind_ours(const void *address) {
	const struct real_dl *libc = real_dl_get();

	if (!ours || !address) {
		return NULL;
	}
	return address == (void *)libc->sym	? (void *)ours->sym
	       : address == (void *)libc->vsym	? (void *)ours->vsym
	       : address == (void *)libc->open	? (void *)ours->open
	       : address == (void *)libc->mopen ? (void *)ours->mopen
						: NULL;
}

/* ---- what the linker will find for a name that is not bound yet ---- */

struct search {
	const struct object *from;
	const char *name;
	const void *wanted;
	const void *at_start; /* the first definition in an object that was there at start, */
	unsigned where;	      /* and which object that is */
	bool is_later;	      /* a later object has the wanted one, */
	bool is_other;	      /* or another one */
};

static bool note_definition(const struct object *o, void *data) {
	struct search *s = data;
	const void *found = o->base == s->from->base ? NULL : object_symbol(o, s->name, NULL);

	if (found && o->index < n_started) {
		s->where = s->at_start ? s->where : o->index;
		s->at_start = s->at_start ? s->at_start : found;
	} else if (found) {
		s->is_later |= found == s->wanted;
		s->is_other |= found != s->wanted;
	}
	return false;
}

/*
 * Whether it will be @wanted, which the driver has. Objects that were there at start come first, in
 * their order, but for RTLD_DEEPBIND; then the object itself, if it has a definition. Which of the
 * others are looked at is not known; the driver is if @o was linked with it.
 */
static bool will_be_found(const struct object *o, const struct object_slot *slot,
			  const void *wanted, bool deep) {
	struct search s = {.from = o, .name = slot->name, .wanted = wanted};
	bool is_linked = object_needs(o, REAL_DRIVER);

	object_each(note_definition, &s);
	if (slot->is_own) {
		return !deep && s.at_start == wanted && s.where < o->index;
	}
	if (s.at_start && !(deep && is_linked)) {
		return s.at_start == wanted;
	}
	return is_linked || (s.is_later && !s.is_other);
}

/* ---- slots ---- */

struct pass {
	unsigned begin, end; /* the objects */
	unsigned deep_from;
	struct object_changes changes;
	bool has_driver;
	bool done;
};

/* The C library's function of that name that we stand in for. NULL: we do not. */
static void *of_libc(const char *name) {
	const struct real_dl *libc = real_dl_get();

	if (name[0] != 'd' || name[1] != 'l') {
		return NULL;
	}
	return strcmp(name, "dlsym") == 0     ? (void *)libc->sym
	       : strcmp(name, "dlvsym") == 0  ? (void *)libc->vsym
	       : strcmp(name, "dlopen") == 0  ? (void *)libc->open
	       : strcmp(name, "dlmopen") == 0 ? (void *)libc->mopen
					      : NULL;
}

/* What the slot is to hold. NULL: what it holds. */
static void *replacement(const struct object *o, const struct object_slot *s,
			 const struct pass *p) {
	const bool deep = o->index >= p->deep_from;
	void *held = deep ? of_libc(s->name) : NULL, *wrapper;

	if (held) {
		return s->is_lazy || *s->at == held ? bind_ours(held) : NULL;
	}
	if (!p->has_driver || !lookup_is_of_driver(s->name)) {
		return NULL;
	}
	held = s->is_lazy ? object_symbol(&driver, s->name, NULL) : *s->at;
	wrapper = lookup_replace(held);
	if (wrapper == held || (s->is_lazy && !will_be_found(o, s, held, deep))) {
		return NULL;
	}
	return wrapper;
}

static void bind_slot(const struct object *o, const struct object_slot *s, void *data) {
	void *to = replacement(o, s, data);

	if (to && !object_slot_set(o, s, to)) {
		log_once(LOG_LEVEL_WARN,
			 "What '%s' calls of the driver is not managed: its pages can't be written",
			 o->name);
	}
}

/* ---- libraries that stand in for the driver ---- */

static bool stands_in(const struct object *o) {
	static const char *const names[] = {
#define OP(name, params, args, kind, bytes, stream, traits) #name,
#define HOOK(name, params, args)			    #name,
#include "shim/hooks.def"
	};

	for (unsigned i = 0; i < sizeof(names) / sizeof(*names); i++) {
		bool is_function;

		if (object_symbol(o, names[i], &is_function) && is_function) {
			return true;
		}
	}
	return false;
}

/* ---- all objects ---- */

static bool find_driver(const struct object *o, void *data) {
	(void)data;
	if (!object_is(o, REAL_DRIVER)) {
		return false;
	}
	driver = *o;
	return true;
}

/* Return: false, to be called with the next one. */
static bool bind_object(const struct object *o, void *data) {
	struct pass *p = data;

	if (o->changes.unloaded != p->changes.unloaded || o->index >= p->end) {
		return true; /* what is loaded now is not what p->end counts */
	}
	if (o->index == 0) {
		p->begin = !p->has_driver			     ? p->deep_from
			   : n_bound_unloaded != p->changes.unloaded ? 0
								     : n_bound;
	}
	if (o->index >= p->begin && !object_holds(o, &ours) &&
	    !(driver.dynamic && o->base == driver.base)) {
		/* Those behind the driver are not met. */
		if (p->has_driver && !has_fronts && o->index < n_started &&
		    o->index < driver.index && stands_in(o)) {
			fronts_add(o);
		}
		object_each_slot(o, bind_slot, p);
	}
	if (o->index + 1 < p->end) {
		return false;
	}
	if (p->has_driver) {
		has_fronts = true;
		n_bound = p->end;
		n_bound_unloaded = p->changes.unloaded;
	}
	p->done = true;
	return true;
}

/* An object that another thread is loading is in the list before its slots are filled in. Such a
 * thread holds the lock that dladdr() takes, so what was in the list before that is complete. */
static void bind_new(unsigned deep_from) {
	unsigned deep_expected = atomic_load(&expected_deep);
	struct pass p = {.deep_from = deep_expected < deep_from ? deep_expected : deep_from};
	const struct real *real;
	Dl_info info;

	if (!driver.dynamic) {
		object_each(find_driver, NULL);
	}
	/* The environment is not read here: the program may change it before its first call. */
	if ((!driver.dynamic && p.deep_from == UINT_MAX) ||
	    atomic_load_explicit(&state_mode, memory_order_relaxed) == STATE_MODE_OFF) {
		return;
	}
	real = driver.dynamic ? real_get_loaded() : NULL;
	p.has_driver = real != NULL;
	if (real) {
		lookup_replace((void *)real->cuInit); /* makes what it needs */
	}
	for (unsigned tries = 3; !p.done && tries > 0; tries--) {
		p.changes = object_changes(&p.end);
		dladdr(&ours, &info);
		object_each(bind_object, &p);
	}
	if (p.done) {
		atomic_compare_exchange_strong(&expected_deep, &deep_expected, UINT_MAX);
		atomic_store(&seen_loaded, p.changes.loaded);
		atomic_store(&seen_unloaded, p.changes.unloaded);
	}
}

void bind_start(const struct real_dl *stand_ins) {
	object_changes(&n_started);
	ours = stand_ins;
	bind_new(UINT_MAX);
}

void bind_opened(unsigned deep_from) {
	int saved = errno;

	bind_new(deep_from);
	errno = saved;
}

void bind_expect(unsigned deep_from) {
	if (deep_from < atomic_load(&expected_deep)) {
		atomic_store(&expected_deep, deep_from);
	}
	atomic_store(&expected, true);
}

EARLY void bind_expected(void) {
	int saved = errno;

	if (atomic_load_explicit(&expected, memory_order_relaxed)) {
		struct object_changes now = object_changes(NULL);

		if (now.loaded != atomic_load(&seen_loaded) ||
		    now.unloaded != atomic_load(&seen_unloaded)) {
			bind_new(UINT_MAX);
		}
	}
	errno = saved;
}
