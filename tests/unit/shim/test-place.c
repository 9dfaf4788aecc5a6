/*
 * test-place.c: that no order which CUDA promises is lost when work moves between a stream and
 * those that back it in partitions. Nothing runs here: a driver of sets tells for each stream which
 * operations are done before its next one begins, by what was handed to it, by events, and by the
 * legacy stream's rules among the program's own streams. Random programs are checked operation by
 * operation against what their streams promise.
 */
#include "shim/real.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/capture.h"
#include "shim/enforce/green.h"
#include "shim/place.h"
#include "shim/worker.h"

#define OPS 512

/* Operations, by number. */
struct set {
	uint64_t words[OPS / 64];
};

static void set_join(struct set *to, const struct set *from) {
	for (size_t i = 0; i < OPS / 64; i++) {
		to->words[i] |= from->words[i];
	}
}

static void set_add(struct set *s, unsigned op) {
	s->words[op / 64] |= 1ull << op % 64;
}

static bool set_within(const struct set *part, const struct set *whole) {
	for (size_t i = 0; i < OPS / 64; i++) {
		if (part->words[i] & ~whole->words[i]) {
			return false;
		}
	}
	return true;
}

/* ---- the driver ---- */

enum kind { FREE_ORDER, BLOCKING, LEGACY };

/* What the driver has: a stream of the program, or one of a partition. */
struct stream {
	enum kind kind;
	bool gone, captured, backs; /* backs: of a partition */
	int attribute;		    /* what each of them is */
	struct set done;	    /* before its next operation begins, as far as it was told */
	struct stream *next;
};

static struct {
	struct stream *streams; /* also those that are gone: their work goes on */
	struct stream *legacy, *own;
	struct set host; /* done: it was waited for */
	struct set events[64];
	unsigned n_events;
	bool refuses; /* to record events */
	bool spoiled; /* a capture, by the use of the legacy stream */
	bool held_up; /* threads that want a lock of ours, until work is done */
	struct real table;
} driver;

static struct stream *stream_of(CUstream s) {
	return s == CU_STREAM_LEGACY || !s ? driver.legacy
	       : s == CU_STREAM_PER_THREAD ? driver.own
					   : (struct stream *)s;
}

static struct stream *stream_new(enum kind kind) {
	struct stream *s = calloc(1, sizeof(*s));

	assert_non_null(s);
	s->kind = kind;
	s->next = driver.streams;
	driver.streams = s;
	return s;
}

/* Whether using @s would make the legacy stream wait for a stream that is captured. */
static bool spoils_capture(const struct stream *s) {
	const struct stream *o = driver.streams;

	while (o && !(o->captured && o->kind == BLOCKING)) {
		o = o->next;
	}
	return o && s->kind == LEGACY;
}

/* An operation of @s begins: the legacy stream and the blocking ones wait for each other. */
static struct set *begin(struct stream *s) {
	assert_false(s->gone);
	assert_false(s->captured);
	set_join(&s->done, &driver.host);
	for (struct stream *o = driver.streams; o; o = o->next) {
		if ((s->kind == LEGACY && o->kind == BLOCKING) ||
		    (s->kind == BLOCKING && o->kind == LEGACY)) {
			set_join(&s->done, &o->done);
		}
	}
	return &s->done;
}

static CUresult event_create(CUevent *ret, unsigned flags) {
	(void)flags;
	assert_true(driver.n_events < sizeof(driver.events) / sizeof(driver.events[0]));
	*ret = (CUevent)(uintptr_t)++driver.n_events;
	return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent e) {
	(void)e;
	return CUDA_SUCCESS;
}

static CUresult event_record(CUevent e, CUstream s) {
	if (driver.refuses) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (spoils_capture(stream_of(s))) {
		driver.spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	driver.events[(uintptr_t)e - 1] = *begin(stream_of(s));
	return CUDA_SUCCESS;
}

/* The driver takes this for a use of the stream. */
static CUresult stream_get_attribute(CUstream s, CUstreamAttrID id, CUstreamAttrValue *ret) {
	(void)id;
	if (spoils_capture(stream_of(s))) {
		driver.spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	ret->priority = stream_of(s)->attribute;
	return CUDA_SUCCESS;
}

static CUresult stream_set_attribute(CUstream s, CUstreamAttrID id,
				     const CUstreamAttrValue *value) {
	(void)id;
	stream_of(s)->attribute = value->priority;
	return CUDA_SUCCESS;
}

static CUresult stream_wait_event(CUstream s, CUevent e, unsigned flags) {
	(void)flags;
	if (spoils_capture(stream_of(s))) {
		driver.spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	set_join(begin(stream_of(s)), &driver.events[(uintptr_t)e - 1]);
	return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream s) {
	stream_of(s)->gone = true;
	return CUDA_SUCCESS;
}

static CUresult stream_create(CUstream *ret, unsigned flags) {
	(void)flags;
	*ret = (CUstream)stream_new(FREE_ORDER);
	stream_of(*ret)->backs = true;
	return CUDA_SUCCESS;
}

static unsigned n_locks; /* of ours, that are held */

static CUresult stream_synchronize(CUstream s) {
	/* What runs may wait for a thread that wants a lock of ours. */
	driver.held_up |= n_locks > 0 && !set_within(&stream_of(s)->done, &driver.host);
	if (stream_of(s)->captured || spoils_capture(stream_of(s))) {
		driver.spoiled = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	set_join(&driver.host, begin(stream_of(s)));
	return CUDA_SUCCESS;
}

static CUresult context_synchronize(void) {
	for (const struct stream *s = driver.streams; s; s = s->next) {
		driver.spoiled |= s->captured;
		set_join(&driver.host, &s->done);
	}
	return driver.spoiled ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

static CUresult stream_get_flags(CUstream s, unsigned *ret) {
	*ret = stream_of(s)->kind == BLOCKING ? CU_STREAM_DEFAULT : CU_STREAM_NON_BLOCKING;
	return CUDA_SUCCESS;
}

static CUresult stream_is_capturing(CUstream s, CUstreamCaptureStatus *ret) {
	if (spoils_capture(stream_of(s))) {
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	*ret = stream_of(s)->captured ? CU_STREAM_CAPTURE_STATUS_ACTIVE
				      : CU_STREAM_CAPTURE_STATUS_NONE;
	return CUDA_SUCCESS;
}

/* Set: what another thread does as soon as the driver is entered, on stream `beside`. */
static void (*meanwhile)(unsigned s);
static unsigned beside;

static CUresult get_current(CUcontext *ret) {
	void (*act)(unsigned s) = meanwhile;

	meanwhile = NULL;
	if (act) {
		act(beside);
	}
	*ret = (CUcontext)0x1000;
	return CUDA_SUCCESS;
}

static CUresult push_current(CUcontext c) {
	(void)c;
	return CUDA_SUCCESS;
}

static CUresult pop_current(CUcontext *ret) {
	return get_current(ret);
}

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
	n_locks++;
	return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
	n_locks--;
	return __real_pthread_mutex_unlock(mutex);
}

const struct real *__wrap_real_get(void);
struct green *__wrap_green_get(CUcontext context);
CUstream __wrap_green_stream_new(struct partition *p, int priority);

const struct real *__wrap_real_get(void) {
	return &driver.table;
}

struct green *__wrap_green_get(CUcontext context) {
	return (struct green *)context; /* there is one; nothing looks inside */
}

CUstream __wrap_green_stream_new(struct partition *p, int priority) {
	CUstream s;

	(void)p, (void)priority;
	stream_create(&s, 0);
	return s;
}

/* ---- the program ---- */

/* The default streams come first. */
enum { S_LEGACY, S_OWN, S_BLOCKING_A, S_BLOCKING_B, S_FREE, STREAMS };

static struct {
	uint64_t random;
	unsigned n_ops;
	CUstream streams[STREAMS];
	struct set promised[STREAMS]; /* done before the next operation begins, without the rules */
	struct set gone;	      /* of destroyed blocking streams */
	struct set event;
	CUevent recorded; /* the program's own */
} program;

static unsigned below(unsigned n) {
	program.random = program.random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(program.random >> 33) % n;
}

static bool is_blocking(unsigned s) {
	return s == S_OWN || s == S_BLOCKING_A || s == S_BLOCKING_B;
}

static struct set promised_before(unsigned s) {
	struct set p = program.promised[s];

	for (unsigned t = 0; t < STREAMS; t++) {
		if ((s == S_LEGACY && is_blocking(t)) || (is_blocking(s) && t == S_LEGACY)) {
			set_join(&p, &program.promised[t]);
		}
	}
	if (s == S_LEGACY) {
		set_join(&p, &program.gone);
	}
	return p;
}

/* The driver is handed the next operation, at @use->at: all that was @promised comes first, and
 * from now on the operation is part of it. */
static void launch(const struct place_use *use, struct set *promised) {
	struct set *done = begin(stream_of(use->at));

	assert_true(set_within(promised, done));
	set_add(done, program.n_ops);
	set_add(promised, program.n_ops++);
}

static void hand(struct place_use *use, unsigned s) {
	struct set promised = promised_before(s);

	launch(use, &promised);
	program.promised[s] = promised;
	place_leave(use);
}

static struct place_use use_of(unsigned s) {
	return (struct place_use){.stream = program.streams[s]};
}

static struct partition *any_partition(void) {
	static struct partition *const parts[] = {NULL, (struct partition *)0x10,
						  (struct partition *)0x20};

	return parts[below(3)];
}

static void enter(struct place_use *use, struct partition *to) {
	struct stream_id id =
		worker_stream(worker_get(), (CUcontext)0x1000, use->stream, use->per_thread);

	use->place = place_find(&id);
	place_enter(use, to);
}

/* Whether the program may use @s: not what is captured, nor the legacy stream beside that. */
static bool may_use(unsigned s) {
	const struct stream *stream = stream_of(program.streams[s]);

	return !stream->captured && !spoils_capture(stream);
}

static void run_kernel_in(unsigned s, struct partition *to) {
	struct place_use use = use_of(s);

	enter(&use, to);
	hand(&use, s);
}

static void run_kernel(unsigned s) {
	run_kernel_in(s, any_partition());
}

/* Two threads launch into one stream: the second moves it before the first has handed its kernel
 * over to where it was. */
static void overlap(unsigned s) {
	struct place_use first = use_of(s), second = use_of(s);

	enter(&first, any_partition());
	enter(&second, any_partition());
	hand(&first, s);
	hand(&second, s);
}

/* As overlap(), and before the first thread's call returns a third one uses a stream that is
 * ordered against that one. What comes after all that waits for the first one's kernel all the
 * same. */
static void overlap_beside(unsigned s) {
	struct place_use first = use_of(s), second = use_of(s);
	struct set promised = promised_before(s);

	enter(&first, any_partition());
	enter(&second, any_partition());
	hand(&second, s);
	launch(&first, &promised);
	beside = s == S_LEGACY ? S_BLOCKING_A : S_LEGACY;
	meanwhile = may_use(beside) ? run_kernel : NULL;
	place_leave(&first);
	meanwhile = NULL;
	set_join(&program.promised[s], &promised);
}

static void follow(unsigned s) {
	struct place_use use = use_of(s);

	place_follow(&use);
	hand(&use, s);
}

static void record(unsigned s) {
	struct place_use use = use_of(s);

	place_follow(&use);
	event_record(program.recorded, use.at);
	hand(&use, s);
	program.event = program.promised[s];
	set_add(&driver.events[(uintptr_t)program.recorded - 1], program.n_ops - 1);
}

static void wait_event(unsigned s) {
	struct place_use use = use_of(s);

	place_follow(&use);
	stream_wait_event(use.at, program.recorded, 0);
	hand(&use, s);
	set_join(&program.promised[s], &program.event);
}

/* A copy that names no stream. */
static void copy(unsigned s) {
	struct place_use use = use_of(S_LEGACY);

	(void)s;
	if (!may_use(S_LEGACY)) {
		return;
	}
	enter(&use, NULL);
	assert_true(stream_of(use.at) == driver.legacy);
	hand(&use, S_LEGACY);
}

/* A copy between contexts: the driver puts it behind all that is in the program's streams, and all
 * that comes there later behind it. */
static void copy_peer(unsigned s) {
	struct set promised = program.gone, done = driver.host;

	(void)s;
	if (!may_use(S_LEGACY)) {
		return;
	}
	place_settle();
	for (unsigned t = 0; t < STREAMS; t++) {
		set_join(&promised, &program.promised[t]);
	}
	for (struct stream *o = driver.streams; o; o = o->next) {
		if (!o->backs) {
			set_join(&done, &o->done);
		}
	}
	assert_true(set_within(&promised, &done));
	set_add(&done, program.n_ops);
	set_add(&promised, program.n_ops++);
	for (struct stream *o = driver.streams; o; o = o->next) {
		if (!o->backs) {
			o->done = done;
		}
	}
	place_settle();
	for (unsigned t = 0; t < STREAMS; t++) {
		program.promised[t] = promised;
	}
}

/* As a launch on several GPUs: what names streams in a way that we don't look at. */
static void launch_unseen(unsigned s) {
	struct place_use use = use_of(s);
	struct set promised = promised_before(s);

	place_settle();
	use.at = use.stream;
	launch(&use, &promised);
	place_settle();
	program.promised[s] = promised;
}

static void give_back(unsigned s) {
	place_return(program.streams[s], false);
}

static void replace(unsigned s) {
	if (s <= S_OWN) {
		return;
	}
	place_stream_destroying(program.streams[s]);
	stream_destroy(program.streams[s]);
	if (is_blocking(s)) {
		set_join(&program.gone, &program.promised[s]);
	}
	program.streams[s] = (CUstream)stream_new(is_blocking(s) ? BLOCKING : FREE_ORDER);
	memset(&program.promised[s], 0, sizeof(program.promised[s]));
}

static uint64_t key_of(unsigned s) {
	return worker_stream_key(worker_get(), NULL, program.streams[s], false);
}

static void capture(unsigned s) {
	if (s == S_LEGACY) {
		return;
	}
	capture_begin(key_of(s), NULL, NULL);
	place_capturing(program.streams[s], false);
	assert_ptr_equal(place_where(program.streams[s], false), program.streams[s]);
	stream_of(program.streams[s])->captured = true;
}

static void end_captures(void) {
	for (unsigned s = 0; s < STREAMS; s++) {
		if (stream_of(program.streams[s])->captured) {
			stream_of(program.streams[s])->captured = false;
			capture_end(key_of(s));
		}
	}
}

static void begin_program(uint64_t seed) {
	memset(&program, 0, sizeof(program));
	program.random = seed;
	driver.spoiled = false;
	driver.held_up = false;
	driver.legacy = stream_new(LEGACY);
	driver.own = stream_new(BLOCKING);
	program.streams[S_LEGACY] = CU_STREAM_LEGACY;
	program.streams[S_OWN] = CU_STREAM_PER_THREAD;
	for (unsigned s = S_BLOCKING_A; s < STREAMS; s++) {
		program.streams[s] = (CUstream)stream_new(is_blocking(s) ? BLOCKING : FREE_ORDER);
	}
	event_create(&program.recorded, 0);
}

static void end_program(void) {
	assert_false(driver.spoiled);
	end_captures();
	place_context_destroying((CUcontext)0x1000);
	while (driver.streams) {
		struct stream *next = driver.streams->next;

		free(driver.streams);
		driver.streams = next;
	}
	assert_false(driver.held_up);
	driver.n_events = 0;
	memset(&driver.host, 0, sizeof(driver.host));
}

static void run_program(uint64_t seed) {
	static void (*const acts[])(unsigned s) = {
		run_kernel, run_kernel, run_kernel, run_kernel,	   overlap,
		follow,	    record,	wait_event, copy,	   give_back,
		replace,    capture,	copy_peer,  launch_unseen, overlap_beside};

	begin_program(seed);
	for (unsigned i = 0; i < 200; i++) {
		unsigned s = below(STREAMS);

		if (may_use(s)) {
			acts[below(sizeof(acts) / sizeof(acts[0]))](s);
		}
		if (below(8) == 0) {
			end_captures();
		}
	}
	end_program();
}

static void place_keeps_what_streams_promise(void **state) {
	(void)state;
	for (uint64_t seed = 1; seed <= 300; seed++) {
		run_program(seed);
	}
}

static struct partition *const somewhere = (struct partition *)0x10;

static void place_waits_for_the_end_of_a_context_without_a_lock(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_FREE, somewhere);
	end_program();
}

/* The capture is of another stream, which the driver lets the copy go beside. */
static void place_settles_beside_a_capture(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_BLOCKING_A, somewhere);
	run_kernel_in(S_LEGACY, somewhere);
	capture(S_FREE);
	copy_peer(0);
	assert_true(stream_of(program.streams[S_FREE])->captured);
	assert_false(driver.spoiled);
	end_captures();
	run_kernel_in(S_BLOCKING_A, somewhere);
	end_program();
}

/* Where the legacy stream may not be named, nor its work of a partition be waited for there. */
static void place_settles_beside_a_capture_that_the_legacy_stream_would_spoil(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_LEGACY, somewhere);
	run_kernel_in(S_FREE, somewhere);
	capture(S_BLOCKING_A);
	launch_unseen(S_FREE);
	assert_false(driver.spoiled);
	run_kernel_in(S_FREE, somewhere);
	end_captures();
	copy(S_LEGACY);
	end_program();
}

/* What a stream in a partition has to wait for in the legacy stream is known before the capture
 * begins, and made then. */
static void place_does_not_name_the_legacy_stream_beside_a_capture(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_BLOCKING_A, somewhere);
	copy(S_LEGACY);
	capture(S_BLOCKING_B);
	run_kernel_in(S_BLOCKING_A, somewhere);
	end_captures();
	copy(S_LEGACY);
	end_program();
}

/* The same, and the thread that launches has seen before that there is something to wait for. */
static void place_looks_again_after_another_thread_began_a_capture(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_BLOCKING_A, somewhere);
	copy(S_LEGACY);
	beside = S_BLOCKING_B;
	meanwhile = capture;
	run_kernel_in(S_BLOCKING_A, somewhere);
	assert_true(stream_of(program.streams[S_BLOCKING_B])->captured);
	end_program();
}

/* From here that name means this thread's own. The other thread sees to it, and names no legacy
 * stream by that. */
static void place_leaves_default_streams_to_their_threads(void **state) {
	const struct stream_id id = worker_stream((const struct worker *)0x40, (CUcontext)0x1000,
						  CU_STREAM_PER_THREAD, true);
	struct place_use use = {.stream = CU_STREAM_PER_THREAD};
	struct stream *mine;

	(void)state;
	begin_program(1);
	use.place = place_find(&id);
	run_kernel_in(S_LEGACY, somewhere);
	capture(S_BLOCKING_A);
	mine = driver.own;
	driver.own = stream_new(BLOCKING); /* the other thread goes on */
	place_enter(&use, NULL);
	launch(&use, &program.promised[S_LEGACY]);
	place_leave(&use);
	driver.own = mine;
	end_program();
}

/* Not beside it, when the stream may join it. */
static void place_orders_the_threads_own_stream_before_a_capture(void **state) {
	const struct stream_id id =
		worker_stream(worker_get(), (CUcontext)0x1000, CU_STREAM_PER_THREAD, true);

	(void)state;
	begin_program(1);
	run_kernel_in(S_OWN, NULL);
	run_kernel_in(S_LEGACY, somewhere);
	assert_false(place_is_ready(place_find(&id), NULL, NULL));
	capture(S_BLOCKING_A);
	assert_true(place_is_ready(place_find(&id), NULL, NULL));
	end_program();
}

/* By another thread, as the tracker does. Afterwards there is a stream in each partition again. */
static void place_makes_no_streams_ahead_beside_a_capture(void **state) {
	struct partition *elsewhere = (struct partition *)0x5000;

	(void)state;
	begin_program(1);
	run_kernel_in(S_LEGACY, somewhere);
	capture(S_BLOCKING_A);
	place_make_ahead((CUcontext)0x1000, elsewhere);
	assert_false(driver.spoiled);
	end_captures();
	place_make_ahead((CUcontext)0x1000, elsewhere);
	run_kernel_in(S_LEGACY, elsewhere);
	end_program();
}

static void *make_ahead(void *data) {
	struct partition *elsewhere = data;

	place_make_ahead((CUcontext)0x1000, elsewhere);
	return NULL;
}

/* By the tracker, from which the name of a thread's default stream means the tracker's own. */
static void place_gives_streams_made_ahead_the_attributes_of_their_threads(void **state) {
	struct partition *elsewhere = (struct partition *)0x5000;
	struct place_use use = {.stream = CU_STREAM_PER_THREAD};
	struct stream *mine;
	pthread_t tracker;

	(void)state;
	begin_program(1);
	run_kernel_in(S_OWN, NULL);
	mine = driver.own;
	mine->attribute = 7;
	driver.own = stream_new(BLOCKING);
	assert_int_equal(pthread_create(&tracker, NULL, make_ahead, elsewhere), 0);
	assert_int_equal(pthread_join(tracker, NULL), 0);
	driver.own = mine;
	enter(&use, elsewhere);
	assert_int_equal(stream_of(use.at)->attribute, 7);
	hand(&use, S_OWN);
	stream_of(use.at)->attribute = 8;
	run_kernel_in(S_OWN, NULL);
	run_kernel_in(S_OWN, elsewhere); /* it has them already */
	assert_int_equal(stream_of(use.at)->attribute, 8);
	end_program();
}

static void refuse(unsigned s, struct partition *to) {
	struct place_use use = use_of(s);

	driver.refuses = true;
	enter(&use, to);
	driver.refuses = false;
}

static void place_tries_again_when_the_driver_has_refused(void **state) {
	(void)state;
	begin_program(1);
	run_kernel_in(S_BLOCKING_A, somewhere);
	copy(S_LEGACY);
	refuse(S_BLOCKING_A, somewhere);
	run_kernel_in(S_BLOCKING_A, somewhere);
	refuse(S_LEGACY, NULL);
	copy(S_LEGACY);
	end_program();
}

static int setup(void **state) {
	(void)state;
	driver.table.cuCtxGetCurrent = get_current;
	driver.table.cuCtxPushCurrent_v2 = push_current;
	driver.table.cuCtxPopCurrent_v2 = pop_current;
	driver.table.cuEventCreate = event_create;
	driver.table.cuEventDestroy_v2 = event_destroy;
	driver.table.cuEventRecord = event_record;
	driver.table.cuStreamGetAttribute = stream_get_attribute;
	driver.table.cuStreamSetAttribute = stream_set_attribute;
	driver.table.cuStreamWaitEvent = stream_wait_event;
	driver.table.cuStreamDestroy_v2 = stream_destroy;
	driver.table.cuStreamGetFlags = stream_get_flags;
	driver.table.cuStreamIsCapturing = stream_is_capturing;
	driver.table.cuStreamCreate = stream_create;
	driver.table.cuStreamSynchronize = stream_synchronize;
	driver.table.cuCtxSynchronize = context_synchronize;
	place_activate();
	return 0;
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(place_keeps_what_streams_promise),
		cmocka_unit_test(place_waits_for_the_end_of_a_context_without_a_lock),
		cmocka_unit_test(place_settles_beside_a_capture),
		cmocka_unit_test(place_settles_beside_a_capture_that_the_legacy_stream_would_spoil),
		cmocka_unit_test(place_does_not_name_the_legacy_stream_beside_a_capture),
		cmocka_unit_test(place_looks_again_after_another_thread_began_a_capture),
		cmocka_unit_test(place_leaves_default_streams_to_their_threads),
		cmocka_unit_test(place_orders_the_threads_own_stream_before_a_capture),
		cmocka_unit_test(place_makes_no_streams_ahead_beside_a_capture),
		cmocka_unit_test(place_gives_streams_made_ahead_the_attributes_of_their_threads),
		cmocka_unit_test(place_tries_again_when_the_driver_has_refused),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
