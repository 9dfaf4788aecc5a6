/*
 * common.c: see common.h.
 */
#include "common.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LANES_MAX 64

/* What one run shares among its lanes. */
struct run {
	const struct app *app;
	struct app_options options;
	uint64_t start_ns;
};

struct lane_thread {
	const struct run *run;
	struct app_lane lane;
	pthread_t thread;
};

uint64_t app_now_ns(void) {
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct timespec to_timespec(uint64_t ns) {
	return (struct timespec){
		.tv_sec = (time_t)(ns / 1000000000u),
		.tv_nsec = (long)(ns % 1000000000u),
	};
}

void app_pause_ns(uint64_t ns) {
	struct timespec t = to_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR) {
		/* goes on with what remains */
	}
}

static void sleep_until_ns(uint64_t when_ns) {
	struct timespec t = to_timespec(when_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
		/* the time is absolute: just again */
	}
}

void *app_alloc(size_t n, size_t element_size) {
	void *p = calloc(n > 0 ? n : 1, element_size);

	if (!p) {
		fprintf(stderr, "out of memory (%zu elements of %zu bytes)\n", n, element_size);
		exit(1);
	}
	return p;
}

static uint64_t random_u64(struct app_random *r) {
	uint64_t z = r->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

uint32_t app_random_u32(struct app_random *r) {
	return (uint32_t)(random_u64(r) >> 32);
}

float app_random_unit(struct app_random *r) {
	return (float)(app_random_u32(r) >> 8) * 0x1p-24f;
}

void app_random_floats(struct app_random *r, float *values, size_t n) {
	for (size_t i = 0; i < n; i++) {
		values[i] = app_random_unit(r);
	}
}

void app_random_bytes(struct app_random *r, unsigned char *values, size_t n) {
	for (size_t i = 0; i < n; i++) {
		values[i] = (unsigned char)(app_random_u32(r) >> 24);
	}
}

void app_compare(struct app_lane *lane, const char *what, const void *want, const void *got,
		 size_t n, size_t element_size) {
	const unsigned char *w = want;
	const unsigned char *g = got;
	uint64_t wrong = 0;
	size_t first = 0;

	if (memcmp(w, g, n * element_size) == 0) {
		return;
	}
	for (size_t i = 0; i < n; i++) {
		if (memcmp(w + i * element_size, g + i * element_size, element_size) != 0) {
			first = wrong == 0 ? i : first;
			wrong++;
		}
	}
	fprintf(stderr,
		"lane %u, frame %u: %s: %" PRIu64
		" of %zu elements differ, the first is number %zu\n",
		lane->index, lane->frame, what, wrong, n, first);
	lane->wrong += wrong;
}

static bool same_sms(const struct app_sms *a, const struct app_sms *b) {
	for (unsigned i = 0; i < APP_SMS_MAX; i++) {
		if ((a->blocks[i] > 0) != (b->blocks[i] > 0)) {
			return false;
		}
	}
	return true;
}

void app_count_sms(struct app_lane *lane, const struct app_sms *sms) {
	unsigned k = 0;

	while (k < lane->n_sets && !same_sms(&lane->sets[k].sms, sms)) {
		k++;
	}
	if (k == APP_SETS_MAX) {
		k--;
	} else if (k == lane->n_sets) {
		lane->n_sets++;
	}
	lane->sets[k].frames++;
	for (unsigned i = 0; i < APP_SMS_MAX; i++) {
		lane->sets[k].sms.blocks[i] += sms->blocks[i];
	}
}

/* As ranges: "0-3,8". */
static void print_sms(FILE *f, const struct app_sms *sms) {
	const char *comma = "";

	for (unsigned i = 0; i < APP_SMS_MAX; i++) {
		unsigned last = i;

		if (sms->blocks[i] == 0) {
			continue;
		}
		while (last + 1 < APP_SMS_MAX && sms->blocks[last + 1] > 0) {
			last++;
		}
		fprintf(f, last > i ? "%s%u-%u" : "%s%u", comma, i, last);
		comma = ",";
		i = last;
	}
}

static void print_usage(const struct app *app, FILE *f) {
	fprintf(f, "usage: %s [OPTIONS]\n%s\n\n", app->name, app->summary);
	fprintf(f, "  --frames N    how often (20)\n");
	fprintf(f, "  --size N      %s, %u to %u (%u)\n", app->size_meaning, app->size_min,
		app->size_max, app->size_default);
	if (app->lanes_default > 0) {
		fprintf(f, "  --lanes N     threads, each with a stream (%u)\n",
			app->lanes_default);
	}
	if (app->launches_default > 0) {
		fprintf(f, "  --launches N  launches a frame (%u)\n", app->launches_default);
	}
	if (app->rounds_default > 0) {
		fprintf(f, "  --rounds N    arithmetic a thread (%u)\n", app->rounds_default);
	}
	fprintf(f,
		"  --period T    a frame each T, such as 500us, 33ms, 1s (at once)\n"
		"  --align       at whole multiples of T since the machine's start: programs with\n"
		"                the same T begin their frames together\n"
		"  --gpu N       which GPU (0)\n"
		"  --seed N      of the random input (1)\n"
		"  --json        the summary as one JSON object\n"
		"  --verbose     a line a frame on stderr\n");
}

/* A decimal number with one of the units, or without any if @units is NULL. */
static bool parse_number(const char *text, const char *const *units, const uint64_t *factors,
			 uint64_t min, uint64_t max, uint64_t *ret) {
	uint64_t v = 0;
	uint64_t factor = 1;
	const char *s = text;

	for (; *s >= '0' && *s <= '9'; s++) {
		if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*s - '0'), &v)) {
			return false;
		}
	}
	if (s == text) {
		return false;
	}
	if (units) {
		unsigned i = 0;

		while (units[i] && strcmp(units[i], s) != 0) {
			i++;
		}
		if (!units[i]) {
			return false;
		}
		factor = factors[i];
	} else if (*s) {
		return false;
	}
	if (__builtin_mul_overflow(v, factor, &v) || v < min || v > max) {
		return false;
	}
	*ret = v;
	return true;
}

enum app_option {
	OPTION_FRAMES = 1,
	OPTION_SIZE,
	OPTION_LANES,
	OPTION_LAUNCHES,
	OPTION_ROUNDS,
	OPTION_PERIOD,
	OPTION_ALIGN,
	OPTION_GPU,
	OPTION_SEED,
	OPTION_JSON,
	OPTION_VERBOSE,
	OPTION_HELP,
};

static const struct option option_table[] = {
	{"frames", required_argument, NULL, OPTION_FRAMES},
	{"size", required_argument, NULL, OPTION_SIZE},
	{"lanes", required_argument, NULL, OPTION_LANES},
	{"launches", required_argument, NULL, OPTION_LAUNCHES},
	{"rounds", required_argument, NULL, OPTION_ROUNDS},
	{"period", required_argument, NULL, OPTION_PERIOD},
	{"align", no_argument, NULL, OPTION_ALIGN},
	{"gpu", required_argument, NULL, OPTION_GPU},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"json", no_argument, NULL, OPTION_JSON},
	{"verbose", no_argument, NULL, OPTION_VERBOSE},
	{"help", no_argument, NULL, OPTION_HELP},
	{NULL, 0, NULL, 0},
};

/* Sets what option @which says. Return: whether it could. */
static bool set_option(const struct app *app, struct app_options *o, int which, const char *text) {
	static const char *const time_units[] = {"us", "ms", "s", NULL};
	static const uint64_t time_factors[] = {1000u, 1000000u, 1000000000u};
	uint64_t v = 0;

	switch (which) {
	case OPTION_FRAMES:
		return parse_number(text, NULL, NULL, 1, 100000000, &v) &&
		       (o->frames = (unsigned)v, true);
	case OPTION_SIZE:
		return parse_number(text, NULL, NULL, app->size_min, app->size_max, &v) &&
		       (o->size = (unsigned)v, true);
	case OPTION_LANES:
		return app->lanes_default > 0 && parse_number(text, NULL, NULL, 1, LANES_MAX, &v) &&
		       (o->lanes = (unsigned)v, true);
	case OPTION_LAUNCHES:
		return app->launches_default > 0 &&
		       parse_number(text, NULL, NULL, 1, 10000000, &v) &&
		       (o->launches = (unsigned)v, true);
	case OPTION_ROUNDS:
		return app->rounds_default > 0 && parse_number(text, NULL, NULL, 0, 1u << 30, &v) &&
		       (o->rounds = (unsigned)v, true);
	case OPTION_PERIOD:
		return parse_number(text, time_units, time_factors, 1000, 3600000000000u,
				    &o->period_ns);
	case OPTION_ALIGN:
		return o->align = true;
	case OPTION_GPU:
		return parse_number(text, NULL, NULL, 0, 63, &v) && (o->gpu = (unsigned)v, true);
	case OPTION_SEED:
		return parse_number(text, NULL, NULL, 0, UINT64_MAX, &o->seed);
	case OPTION_JSON:
		return o->json = true;
	case OPTION_VERBOSE:
		return o->verbose = true;
	default:
		return false;
	}
}

/* Return: -1 to go on, else the exit code. */
static int parse_options(const struct app *app, int argc, char **argv, struct app_options *o) {
	int which;

	*o = (struct app_options){
		.frames = 20,
		.size = app->size_default,
		.lanes = app->lanes_default > 0 ? app->lanes_default : 1,
		.launches = app->launches_default > 0 ? app->launches_default : 1,
		.rounds = app->rounds_default,
		.seed = 1,
	};
	opterr = 0;
	while ((which = getopt_long(argc, argv, "", option_table, NULL)) != -1) {
		if (which == OPTION_HELP) {
			print_usage(app, stdout);
			return 0;
		}
		if (!set_option(app, o, which, optarg)) {
			fprintf(stderr,
				"%s: '%s' is no option here, or its value is out of range (see "
				"--help)\n",
				app->name, argv[optind - 1]);
			return 2;
		}
	}
	if (optind < argc) {
		fprintf(stderr, "%s: '%s': there are only options (see --help)\n", app->name,
			argv[optind]);
		return 2;
	}
	return -1;
}

static uint64_t max_u64(uint64_t a, uint64_t b) {
	return a > b ? a : b;
}

static void *lane_main(void *arg) {
	struct lane_thread *t = arg;
	const struct app *app = t->run->app;
	struct app_lane *lane = &t->lane;
	const struct app_options *o = lane->options;

	if (app->begin) {
		app->begin(lane);
	}
	for (lane->frame = 0; lane->frame < o->frames; lane->frame++) {
		uint64_t due_ns = t->run->start_ns + lane->frame * o->period_ns;
		/* No two frames and lanes have the same input: results left over from another
		 * one would be seen to be wrong. */
		uint64_t seed = (o->seed * LANES_MAX + lane->index) << 32 | lane->frame;
		uint64_t began_ns;

		if (o->period_ns > 0) {
			lane->late += app_now_ns() > due_ns + o->period_ns;
			sleep_until_ns(due_ns);
		}
		began_ns = app_now_ns();
		app->frame(lane, seed);
		lane->longest_ns = max_u64(lane->longest_ns, app_now_ns() - began_ns);
		lane->frames++;
		if (o->verbose) {
			fprintf(stderr, "%s: lane %u, frame %u of %u, %" PRIu64 " wrong\n",
				app->name, lane->index, lane->frame + 1, o->frames, lane->wrong);
		}
	}
	if (app->end) {
		app->end(lane);
	}
	return NULL;
}

static void run_lanes(struct lane_thread *threads, unsigned n) {
	if (n == 1) {
		lane_main(&threads[0]);
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		int e = pthread_create(&threads[i].thread, NULL, lane_main, &threads[i]);

		if (e) {
			fprintf(stderr, "cannot start thread %u: %s\n", i, strerror(e));
			exit(1);
		}
	}
	for (unsigned i = 0; i < n; i++) {
		pthread_join(threads[i].thread, NULL);
	}
}

static void print_lane_json(const struct app_lane *lane) {
	printf("{\"lane\":%u,\"frames\":%" PRIu64 ",\"launches\":%" PRIu64 ",\"blocks\":%" PRIu64
	       ",\"gpu_ns\":%" PRIu64 ",\"wrong\":%" PRIu64 ",\"sets\":[",
	       lane->index, lane->frames, lane->launches, lane->blocks, lane->gpu_ns, lane->wrong);
	for (unsigned k = 0; k < lane->n_sets; k++) {
		printf("%s{\"sms\":\"", k > 0 ? "," : "");
		print_sms(stdout, &lane->sets[k].sms);
		printf("\",\"frames\":%" PRIu64 "}", lane->sets[k].frames);
	}
	printf("]}");
}

struct sums {
	uint64_t frames, launches, late, wrong;
	uint64_t longest_ns; /* of all lanes */
	bool looked_at_sms;
};

static struct sums add_up(const struct lane_thread *threads, unsigned n) {
	struct sums sum = {0};

	for (unsigned i = 0; i < n; i++) {
		sum.frames += threads[i].lane.frames;
		sum.launches += threads[i].lane.launches;
		sum.late += threads[i].lane.late;
		sum.wrong += threads[i].lane.wrong;
		sum.longest_ns = max_u64(sum.longest_ns, threads[i].lane.longest_ns);
		sum.looked_at_sms = sum.looked_at_sms || threads[i].lane.n_sets > 0;
	}
	return sum;
}

static void print_summary(const struct run *run, const struct lane_thread *threads, struct sums sum,
			  uint64_t elapsed_ns) {
	const struct app_options *o = &run->options;

	if (!o->json) {
		printf("%s: %" PRIu64 " frames, %" PRIu64 " launches, %" PRIu64
		       " late, %.3f s, results %s\n",
		       run->app->name, sum.frames, sum.launches, sum.late,
		       (double)elapsed_ns * 1e-9, sum.wrong == 0 ? "ok" : "WRONG");
		return;
	}
	printf("{\"program\":\"%s\",\"frames\":%" PRIu64 ",\"launches\":%" PRIu64
	       ",\"late\":%" PRIu64 ",\"elapsed_ns\":%" PRIu64 ",\"longest_frame_ns\":%" PRIu64
	       ",\"wrong\":%" PRIu64 ",\"ok\":%s",
	       run->app->name, sum.frames, sum.launches, sum.late, elapsed_ns, sum.longest_ns,
	       sum.wrong, sum.wrong == 0 ? "true" : "false");
	if (sum.looked_at_sms) {
		printf(",\"lanes\":[");
		for (unsigned i = 0; i < o->lanes; i++) {
			printf("%s", i > 0 ? "," : "");
			print_lane_json(&threads[i].lane);
		}
		printf("]");
	}
	printf("}\n");
}

int app_main(const struct app *app, int argc, char **argv) {
	struct run run = {.app = app};
	struct lane_thread *threads;
	uint64_t elapsed_ns;
	struct sums sum;
	int r;

	r = parse_options(app, argc, argv, &run.options);
	if (r >= 0) {
		return r;
	}
	threads = app_alloc(run.options.lanes, sizeof(*threads));
	for (unsigned i = 0; i < run.options.lanes; i++) {
		threads[i].run = &run;
		threads[i].lane.options = &run.options;
		threads[i].lane.index = i;
	}
	app->open(&run.options);
	run.start_ns = app_now_ns();
	if (run.options.align && run.options.period_ns > 0) {
		run.start_ns += run.options.period_ns - run.start_ns % run.options.period_ns;
	}
	run_lanes(threads, run.options.lanes);
	elapsed_ns = app_now_ns() - run.start_ns;
	sum = add_up(threads, run.options.lanes);
	if (app->check) {
		sum.wrong += app->check();
	}
	app->close();
	print_summary(&run, threads, sum, elapsed_ns);
	free(threads);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "%s: cannot write the summary: %s\n", app->name, strerror(errno));
		return 1;
	}
	return sum.wrong > 0 ? 1 : 0;
}
