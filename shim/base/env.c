/*
 * env.c: SBEET_* of the program's environment. See env.h.
 */
#include "shim/base/env.h"
#include "shim/base/hot.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/validate.h"
#include "shim/base/injection.h"
#include "shim/base/log.h"

/* How long SBEET_REQUIRE=1 waits for a daemon before it fails: longer than a restart takes. */
#define REQUIRE_DEFAULT_NS (10 * NSEC_PER_SEC)

/* SBEET_WAIT, which is longer than a restart takes, too, with NVML to be initialised. */
#define WAIT_DEFAULT_NS (3 * NSEC_PER_SEC)

/* SBEET_TIMEOUT. As sbeetctl's, and as long as sbeetd waits for a program's answer: a loaded
 * machine may delay one by seconds. Longer than a planned restart takes, in which the connection
 * stays open and nobody reads. */
#define TIMEOUT_DEFAULT_NS (5 * NSEC_PER_SEC)

static HOT_DATA struct env env;
static HOT_DATA _Atomic bool is_read;

static const char *find(const char *name) {
	const char *text = getenv(name);

	return text && *text ? text : NULL;
}

/* Kept for good: programs that set their title write over the environment. */
static const char *keep(const char *text) {
	return text ? strdup(text) : NULL;
}

static void complain(const char *name, const char *text, const char *expected) {
	log_line(LOG_LEVEL_WARN, "%s='%s' is not %s, ignoring", name, text, expected);
}

static bool read_flag(const char *name) {
	const char *text = find(name);

	if (text && strcmp(text, "0") != 0 && strcmp(text, "1") != 0) {
		complain(name, text, "0 or 1");
		return false;
	}
	return text && *text == '1';
}

/* The driver takes anything else for 0. */
static bool read_force_jit(void) {
	const char *text = find("CUDA_FORCE_PTX_JIT");

	return text && strcmp(text, "1") == 0;
}

static void read_require(void) {
	const char *text = find("SBEET_REQUIRE");

	if (!text || strcmp(text, "0") == 0) {
		return;
	}
	env.require = true;
	env.require_ns = REQUIRE_DEFAULT_NS;
	if (strcmp(text, "1") != 0 && units_parse_nsec(text, &env.require_ns) < 0) {
		complain("SBEET_REQUIRE", text, "1 or how long to wait for sbeetd; waiting 10s");
	}
}

static void read_wait(void) {
	const char *text = find("SBEET_WAIT");

	env.wait_ns = WAIT_DEFAULT_NS;
	if (text && units_parse_nsec(text, &env.wait_ns) < 0) {
		complain("SBEET_WAIT", text, "a duration such as 500ms; waiting 3s");
	}
}

static void read_timeout(void) {
	const char *text = find("SBEET_TIMEOUT");

	env.timeout_ns = TIMEOUT_DEFAULT_NS;
	if (text && (units_parse_nsec(text, &env.timeout_ns) < 0 || env.timeout_ns == 0)) {
		env.timeout_ns = TIMEOUT_DEFAULT_NS;
		complain("SBEET_TIMEOUT", text, "a time above 0 such as 2s; waiting 5s");
	}
}

static void read_run(void) {
	const char *text = find("SBEET_RUN");

	if (text && validate_name(text) < 0) {
		complain("SBEET_RUN", text, "a name");
		return;
	}
	env.run = keep(text);
}

/* A program can't be kept from starting, so what is wrong is left out. */
static void read_vars(void) {
	struct taskvar_source from[_TASK_FIELD_N];
	enum task_field wrong;
	char why[512];

	for (enum task_field field = 0; field < _TASK_FIELD_N; field++) {
		from[field].name = task_fields[field].variable;
		from[field].text = from[field].name ? find(from[field].name) : NULL;
	}
	while (taskvars_read(&env.task, from, &wrong, why, sizeof(why)) < 0) {
		log_line(LOG_LEVEL_WARN, "A setting is wrong, ignoring it: %s", why);
		from[wrong].text = NULL;
	}
}

/* Where marks make jobs, but never come, nothing is managed: so without ranges jobs are made as
 * ever. */
static void read_mark(void) {
	static struct range_name mark;
	const char *text = find("SBEET_MARK"), *other = injection_other();

	if (!text) {
		return;
	}
	if (range_name_read(text, &mark) < 0) {
		complain("SBEET_MARK", text, RANGE_NAME_EXPECTED);
		return;
	}
	if (other) {
		log_line(LOG_LEVEL_WARN,
			 "NVTX ranges go to another tool, which NVTX_INJECTION64_PATH names (%s): "
			 "ignoring "
			 "SBEET_MARK='%s'",
			 other, text);
		return;
	}
	env.mark = &mark;
	env.mark_text = keep(text);
	if (!find("SBEET_JOB")) {
		env.task.made_by = TASK_JOBS_MARKS;
	}
}

static void read_all(void) {
	env.disable = read_flag("SBEET_DISABLE");
	if (env.disable) {
		return;
	}
	env.whole = read_flag("SBEET_WHOLE");
	env.force_jit = read_force_jit();
	env.any_gpu = read_flag("SBEET_ANY_GPU");
	env.measure = read_flag("SBEET_MEASURE");
	read_require();
	read_wait();
	read_timeout();
	env.socket = keep(find("SBEET_SOCKET"));
	read_run();
	read_vars();
	read_mark();
	atomic_store_explicit(&is_read, true, memory_order_release);
}

HOT_CODE const struct env *env_get(void) {
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	if (!HOT_EXPECT(atomic_load_explicit(&is_read, memory_order_acquire))) {
		pthread_once(&once, read_all);
	}
	return &env;
}
