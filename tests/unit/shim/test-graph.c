/*
 * test-graph.c: variants of graphs that are made ahead, while the program launches, changes and
 * destroys the graph, unloads code, or exits. The driver is the test's: a variant takes as long as
 * the test wants, and nothing that it is made of may go meanwhile.
 */
#include "shim/real.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/enforce/green.h"
#include "shim/graph-copy.h"
#include "shim/graph.h"
#include "shim/place.h"

#define PARTITIONS 12
#define HANDLES	   1024 /* of one test */
#define CONTEXT	   ((CUcontext)(uintptr_t)0x77)
#define PLAIN	   0
#define PRIORITIES CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY

/* Something that must not be seen is waited for so long. */
#define NOT_SEEN_US 50000

/* ---- the driver ---- */

struct partition {
	bool confines;
	unsigned level;
	struct partition *owner;
};

struct CUgraph_st {
	unsigned number;
	bool gone;
};

struct CUgraphExec_st {
	CUgraph graph;
	struct partition *partition;
	pthread_t by;
	bool gone, uploaded;
};

static struct partition parts[PARTITIONS];

static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct partition *held; /* variants for it take until it is not */
	CUgraph inside[PARTITIONS];   /* of which one is being made */
	bool refuses, special;
	unsigned n_copies, n_made, n_there, n_wakes;
	unsigned n_waits;	/* of threads inside graph-work.c */
	void *handles[HANDLES]; /* gone ones too, for they are compared: freed after each test */
	unsigned n_handles;
	struct real table;
} driver = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

const struct real *__wrap_real_get(void);
const struct real *__wrap_real_get(void) {
	return &driver.table;
}

bool __wrap_green_confines(const struct partition *p);
bool __wrap_green_confines(const struct partition *p) {
	return p->confines;
}

unsigned __wrap_green_level(const struct partition *p);
unsigned __wrap_green_level(const struct partition *p) {
	return p->level;
}

struct partition *__wrap_green_owner(struct partition *p);
struct partition *__wrap_green_owner(struct partition *p) {
	return p->owner;
}

/* By several threads. */
static void *new_handle(size_t size) {
	void *handle = calloc(1, size);

	assert_non_null(handle);
	pthread_mutex_lock(&driver.lock);
	assert_true(driver.n_handles < HANDLES);
	driver.handles[driver.n_handles++] = handle;
	pthread_mutex_unlock(&driver.lock);
	return handle;
}

void __wrap_wake_tracker(void);
void __wrap_wake_tracker(void) {
	pthread_mutex_lock(&driver.lock);
	driver.n_wakes++;
	pthread_cond_broadcast(&driver.changed);
	pthread_mutex_unlock(&driver.lock);
}

int __real_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
	if (cond != &driver.changed) {
		pthread_mutex_lock(&driver.lock);
		driver.n_waits++;
		pthread_cond_broadcast(&driver.changed);
		pthread_mutex_unlock(&driver.lock);
	}
	return __real_pthread_cond_wait(cond, mutex);
}

CUgraph __wrap_graph_copy_new(CUgraph graph, unsigned long long flags, bool *ret_plain);
CUgraph __wrap_graph_copy_new(CUgraph graph, unsigned long long flags, bool *ret_plain) {
	CUgraph copy = new_handle(sizeof(*copy));

	(void)flags;
	copy->number = graph->number;
	*ret_plain = !driver.special;
	driver.n_copies++;
	return copy;
}

/* Whether a variant of @copy is being made; NULL: of any. */
static bool is_inside(const struct CUgraph_st *copy) {
	for (unsigned i = 0; i < PARTITIONS; i++) {
		if (driver.inside[i] && (!copy || driver.inside[i] == copy)) {
			return true;
		}
	}
	return false;
}

CUgraph __wrap_graph_copy_free(CUgraph copy);
CUgraph __wrap_graph_copy_free(CUgraph copy) {
	if (copy) {
		assert_false(is_inside(copy));
		assert_false(copy->gone);
		copy->gone = true;
		driver.n_copies--;
	}
	return NULL;
}

CUgraphExec __wrap_graph_copy_instantiate(CUgraph copy, unsigned long long flags,
					  struct partition *p, CUcontext context);
CUgraphExec __wrap_graph_copy_instantiate(CUgraph copy, unsigned long long flags,
					  struct partition *p, CUcontext context) {
	CUgraphExec exec = new_handle(sizeof(*exec));
	CUgraph *inside = &driver.inside[p - parts];

	(void)flags;
	assert_ptr_equal(context, CONTEXT);
	pthread_mutex_lock(&driver.lock);
	assert_null(*inside);
	assert_false(is_inside(copy));
	assert_false(copy->gone);
	*inside = copy;
	pthread_cond_broadcast(&driver.changed);
	while (driver.held == p) {
		pthread_cond_wait(&driver.changed, &driver.lock);
	}
	*inside = NULL;
	driver.n_made++;
	driver.n_there += !driver.refuses;
	*exec = (struct CUgraphExec_st){.graph = copy, .partition = p, .by = pthread_self()};
	pthread_mutex_unlock(&driver.lock);
	return driver.refuses ? NULL : exec;
}

void __wrap_graph_copy_upload(CUgraphExec exec, struct partition *p, CUcontext context);
void __wrap_graph_copy_upload(CUgraphExec exec, struct partition *p, CUcontext context) {
	assert_ptr_equal(context, CONTEXT);
	assert_ptr_equal(p, exec->partition);
	assert_true(pthread_equal(exec->by, pthread_self()));
	exec->uploaded = true;
}

static CUresult exec_destroy(CUgraphExec exec) {
	pthread_mutex_lock(&driver.lock);
	assert_false(exec->gone);
	exec->gone = true;
	driver.n_there--;
	pthread_mutex_unlock(&driver.lock);
	return CUDA_SUCCESS;
}

/* NULL: none. */
static void hold(const struct partition *p) {
	pthread_mutex_lock(&driver.lock);
	driver.held = p;
	pthread_cond_broadcast(&driver.changed);
	pthread_mutex_unlock(&driver.lock);
}

static void wait_inside(void) {
	pthread_mutex_lock(&driver.lock);
	while (!is_inside(NULL)) {
		pthread_cond_wait(&driver.changed, &driver.lock);
	}
	pthread_mutex_unlock(&driver.lock);
}

/* ---- the program ---- */

static struct CUgraph_st graph = {.number = 1}, other_graph = {.number = 2};
static struct CUgraphExec_st execs[2];

/* Launches @exec for @p. Return: what the driver is given. */
static CUgraphExec launch(CUgraphExec exec, struct partition *p, bool last_will_do) {
	struct graph_use use;

	graph_launched(graph_find(exec), CONTEXT);
	use = graph_use_begin(graph_find(exec), p, CONTEXT, last_will_do);
	graph_use_end(&use);
	return use.exec;
}

/* Waits as the tracker does. */
static void prepare(struct partition *p) {
	unsigned before;

	pthread_mutex_lock(&driver.lock);
	before = driver.n_wakes;
	pthread_mutex_unlock(&driver.lock);
	if (graph_prepare(CONTEXT, p)) {
		return;
	}
	pthread_mutex_lock(&driver.lock);
	while (driver.n_wakes == before) {
		pthread_cond_wait(&driver.changed, &driver.lock);
	}
	pthread_mutex_unlock(&driver.lock);
	assert_true(graph_prepare(CONTEXT, p));
}

/* The graph has a variant for the first partition, and is launched there. */
static int setup(void **state) {
	place_activate();
	driver.table.cuGraphExecDestroy = exec_destroy;
	driver.n_made = 0;
	driver.special = driver.refuses = false;
	for (unsigned i = 0; i < PARTITIONS; i++) {
		parts[i] = (struct partition){.confines = true, .owner = &parts[i]};
	}
	graph_instantiated(&execs[0], &graph, PLAIN);
	*state = launch(&execs[0], &parts[0], true);
	assert_non_null(*state);
	assert_int_equal(driver.n_made, 1);
	return 0;
}

static int teardown(void **state) {
	(void)state;
	graph_context_destroying(CONTEXT); /* and what is wanted there */
	graph_exec_destroying(&execs[0]);
	assert_int_equal(driver.n_copies, 0);
	assert_int_equal(driver.n_there, 0);
	while (driver.n_handles > 0) {
		free(driver.handles[--driver.n_handles]);
	}
	return 0;
}

static void launches_dont_wait_for_the_next_variant(void **state) {
	CUgraphExec first = *state, second;

	hold(&parts[1]);
	assert_false(graph_prepare(CONTEXT, &parts[1]));
	wait_inside();
	assert_false(graph_prepare(CONTEXT, &parts[1]));
	assert_ptr_equal(launch(&execs[0], &parts[0], true), first);
	assert_ptr_equal(launch(&execs[0], &parts[1], true), first);
	hold(NULL);
	prepare(&parts[1]);
	second = launch(&execs[0], &parts[1], true);
	assert_ptr_equal(second->partition, &parts[1]);
	assert_false(pthread_equal(second->by, pthread_self()));
	assert_true(second->uploaded);
	assert_int_equal(driver.n_made, 2);
}

static void first_launches_dont_wait_for_other_sets(void **state) {
	CUgraphExec own;

	(void)state;
	hold(&parts[1]);
	assert_false(graph_prepare(CONTEXT, &parts[1]));
	wait_inside();
	graph_instantiated(&execs[1], &other_graph, PLAIN);
	own = launch(&execs[1], &parts[0], true);
	assert_ptr_equal(own->partition, &parts[0]);
	assert_false(own->uploaded);
	hold(NULL);
	graph_exec_destroying(&execs[1]);
	prepare(&parts[1]);
}

static void *launch_other(void *data) {
	(void)data;
	return launch(&execs[1], &parts[1], false);
}

/* A thread of the program wants the set for which another graph's variant is being made. */
static void first_launches_go_before_what_is_made_ahead(void **state) {
	pthread_t thread;
	unsigned before;
	CUgraphExec made;
	void *result;

	(void)state;
	graph_instantiated(&execs[1], &other_graph, PLAIN);
	hold(&parts[1]);
	assert_false(graph_prepare(CONTEXT, &parts[1]));
	wait_inside();
	pthread_mutex_lock(&driver.lock);
	before = driver.n_waits;
	assert_int_equal(pthread_create(&thread, NULL, launch_other, NULL), 0);
	while (driver.n_waits == before) {
		pthread_cond_wait(&driver.changed, &driver.lock);
	}
	pthread_mutex_unlock(&driver.lock);
	hold(NULL);
	pthread_join(thread, &result);
	made = result;
	assert_int_equal(made->graph->number, other_graph.number);
	assert_true(pthread_equal(made->by, thread));
	prepare(&parts[1]);
	graph_exec_destroying(&execs[1]);
}

static void launches_under_grants_get_their_variant(void **state) {
	CUgraphExec second = launch(&execs[0], &parts[1], false);

	(void)state;
	assert_ptr_equal(second->partition, &parts[1]);
	assert_true(pthread_equal(second->by, pthread_self()));
	assert_false(second->uploaded);
}

/* A whole GPU's variant is no substitute for that of a set. */
static void a_set_is_not_left_for_the_whole_gpu(void **state) {
	(void)state;
	parts[2] = (struct partition){.level = 2, .owner = &parts[2]};
	graph_instantiated(&execs[1], &other_graph, PRIORITIES);
	assert_ptr_equal(launch(&execs[1], &parts[2], true)->partition, &parts[2]);
	assert_ptr_equal(launch(&execs[1], &parts[1], true)->partition, &parts[1]);
	graph_exec_destroying(&execs[1]);
}

/* ---- what the program takes away ---- */

static _Atomic bool returned;

static void *destroy(void *data) {
	graph_exec_destroying(data);
	atomic_store(&returned, true);
	return NULL;
}

static void *update(void *data) {
	graph_updated(data, &other_graph);
	atomic_store(&returned, true);
	return NULL;
}

static void *change(void *data) {
	graph_updated(data, NULL);
	atomic_store(&returned, true);
	return NULL;
}

static void *unload(void *data) {
	(void)data;
	graph_code_unloading();
	atomic_store(&returned, true);
	return NULL;
}

static void *destroy_context(void *data) {
	(void)data;
	graph_context_destroying(CONTEXT);
	atomic_store(&returned, true);
	return NULL;
}

static void *leave(void *data) {
	(void)data;
	graph_leave(nsec_now() + NSEC_PER_MSEC); /* in vain, but not for ever */
	graph_leave(nsec_now() + 100 * NSEC_PER_SEC);
	atomic_store(&returned, true);
	return NULL;
}

/* While a variant is being made the program does @what, which returns when the variant is done. */
static void do_meanwhile(void *(*what)(void *)) {
	pthread_t thread;

	hold(&parts[1]);
	assert_false(graph_prepare(CONTEXT, &parts[1]));
	wait_inside();
	atomic_store(&returned, false);
	assert_int_equal(pthread_create(&thread, NULL, what, &execs[0]), 0);
	usleep(NOT_SEEN_US);
	assert_false(atomic_load(&returned));
	hold(NULL);
	pthread_join(thread, NULL);
}

static void destroying_waits(void **state) {
	(void)state;
	do_meanwhile(destroy);
	assert_false(graph_can_move(graph_find(&execs[0])));
	assert_int_equal(driver.n_there, 0);
}

static void an_updated_graph_runs_as_it_is_now(void **state) {
	(void)state;
	do_meanwhile(update);
	assert_int_equal(driver.n_there, 0);
	assert_int_equal(launch(&execs[0], &parts[1], true)->graph->number, other_graph.number);
	prepare(&parts[3]);
	assert_int_equal(launch(&execs[0], &parts[3], true)->graph->number, other_graph.number);
}

static void a_graph_that_is_changed_in_place_cant_move(void **state) {
	(void)state;
	do_meanwhile(change);
	assert_false(graph_can_move(graph_find(&execs[0])));
	assert_int_equal(driver.n_there, 0);
	assert_null(launch(&execs[0], &parts[1], true));
}

static void code_is_not_touched_when_it_is_unloaded(void **state) {
	(void)state;
	do_meanwhile(unload);
	driver.n_made = 0;
	/* The graph may name what is gone, until the program launches it. */
	assert_true(graph_prepare(CONTEXT, &parts[3]));
	assert_int_equal(driver.n_made, 0);
	launch(&execs[0], &parts[1], true);
	assert_false(graph_prepare(CONTEXT, &parts[3]));
	prepare(&parts[3]);
	assert_int_equal(driver.n_made, 1);
}

static void nothing_is_made_for_a_context_that_goes(void **state) {
	(void)state;
	do_meanwhile(destroy_context);
	assert_int_equal(driver.n_there, 0);
	assert_true(graph_can_move(graph_find(&execs[0])));
	assert_non_null(launch(&execs[0], &parts[1], true));
}

/* ---- what is not made ahead ---- */

static void what_may_be_gone_is_left_alone(void **state) {
	(void)state;
	driver.special = true; /* it names events, say */
	graph_instantiated(&execs[1], &other_graph, PLAIN);
	graph_launched(graph_find(&execs[1]), CONTEXT);
	driver.n_made = 0;
	prepare(&parts[1]);
	assert_int_equal(driver.n_made, 1); /* that of the first graph */
	assert_int_equal(launch(&execs[1], &parts[1], true)->graph->number, other_graph.number);
	graph_exec_destroying(&execs[1]);
}

static void graphs_that_were_never_launched_are_left_alone(void **state) {
	(void)state;
	graph_instantiated(&execs[1], &other_graph, PLAIN);
	driver.n_made = 0;
	prepare(&parts[1]);
	assert_int_equal(driver.n_made, 1);
	graph_exec_destroying(&execs[1]);
}

static void what_cant_be_had_is_not_waited_for(void **state) {
	(void)state;
	driver.refuses = true;
	prepare(&parts[1]);
	assert_false(graph_can_move(graph_find(&execs[0])));
	assert_true(graph_prepare(CONTEXT, &parts[2]));
	assert_int_equal(driver.n_made, 2);
}

/* ---- how many there are ---- */

static void few_variants_are_kept(void **state) {
	CUgraphExec first = *state;
	struct graph_use use = graph_use_begin(graph_find(&execs[0]), &parts[0], CONTEXT, true);

	for (unsigned i = 1; i < PARTITIONS; i++) {
		prepare(&parts[i]);
		launch(&execs[0], &parts[i], true);
	}
	assert_false(first->gone); /* it is being launched */
	assert_true(driver.n_there <= 6);
	graph_use_end(&use);
	prepare(&parts[1]);
	assert_true(first->gone);
	assert_true(driver.n_there <= 5);
}

static void a_graph_that_rests_keeps_its_last_variant(void **state) {
	CUgraphExec first = *state, second = launch(&execs[0], &parts[1], false);

	graph_instantiated(&execs[1], &other_graph, PLAIN);
	for (unsigned i = 0; i < 2000; i++) {
		launch(&execs[1], &parts[1], true);
	}
	prepare(&parts[2]); /* of the one that is launched */
	assert_true(first->gone);
	assert_false(second->gone);
	assert_ptr_equal(launch(&execs[0], &parts[2], true), second);
	graph_exec_destroying(&execs[1]);
	prepare(&parts[2]);
}

/* The last test: then nothing is made ahead any more. */
static void the_end_waits_for_what_is_being_made(void **state) {
	(void)state;
	do_meanwhile(leave);
	assert_false(is_inside(NULL));
	assert_int_equal(driver.n_made, 2);
	assert_false(graph_prepare(CONTEXT, &parts[2]));
	usleep(NOT_SEEN_US);
	assert_int_equal(driver.n_made, 2);
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(launches_dont_wait_for_the_next_variant),
		CASE(first_launches_dont_wait_for_other_sets),
		CASE(first_launches_go_before_what_is_made_ahead),
		CASE(launches_under_grants_get_their_variant),
		CASE(a_set_is_not_left_for_the_whole_gpu),
		CASE(destroying_waits),
		CASE(an_updated_graph_runs_as_it_is_now),
		CASE(a_graph_that_is_changed_in_place_cant_move),
		CASE(code_is_not_touched_when_it_is_unloaded),
		CASE(nothing_is_made_for_a_context_that_goes),
		CASE(what_may_be_gone_is_left_alone),
		CASE(graphs_that_were_never_launched_are_left_alone),
		CASE(what_cant_be_had_is_not_waited_for),
		CASE(few_variants_are_kept),
		CASE(a_graph_that_rests_keeps_its_last_variant),
		CASE(the_end_waits_for_what_is_being_made),
	};

	return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
