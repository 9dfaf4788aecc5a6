/*
 * verb-top.c: `sbeetctl top`: the live view on a full screen.
 *
 * Everything is drawn anew from one snapshot; tables and letters are those of `status`. Colours
 * help to find a task, letters and words carry the meaning. The terminal is given back on every way
 * out.
 */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/control.h"
#include "client/objects.h"
#include "client/options.h"
#include "client/stop.h"
#include "client/verb.h"
#include "client/watch.h"

#define DEFAULT_NS NSEC_PER_SEC

/* Colour pairs: of tasks from 1 on. */
#define N_COLOURS 6

struct top_options {
	nsec_t interval; /* 0: DEFAULT_NS */
};

static const struct option top_options[] = {
	{"interval", 'i', OPTION_REQUIRED, "SEC", "look every SEC seconds (default: 1)",
	 option_watch, offsetof(struct top_options, interval), OPTION_WATCH_EXPECTED},
	{0},
};

struct top {
	struct control *control; /* owned; NULL: sbeetd is away */
	struct snapshot s;	 /* owned; the last one there was */
	char error[512];	 /* why there is no newer one; empty: there is */
	char filter[PROTO_NAME_MAX + 1];
	unsigned sort;
	bool paused, help, typing, colour;
};

/* Orders of tasks, for the key 's'; all but the name largest first. */
static const struct {
	const char *name;
	size_t offset; /* of a uint64_t in struct snapshot_task */
} orders[] = {
	{"name", 0},
	{"jobs", offsetof(struct snapshot_task, jobs)},
	{"misses", offsetof(struct snapshot_task, misses)},
	{"response", offsetof(struct snapshot_task, max_response)},
};

#define N_ORDERS (sizeof(orders) / sizeof(orders[0]))

static unsigned order; /* of the comparison that qsort() makes now */

static int compare_tasks(const void *left, const void *right) {
	const struct snapshot_task *a = left, *b = right;
	uint64_t x = 0, y = 0;

	if (order > 0) {
		memcpy(&x, (const char *)a + orders[order].offset, sizeof(x));
		memcpy(&y, (const char *)b + orders[order].offset, sizeof(y));
	}
	return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

/* A task keeps its colour whatever the order. */
static attr_t attributes(const struct top *t, const char *task) {
	unsigned hash = 0;

	for (const char *c = task; *c; c++) {
		hash = hash * 31 + (unsigned char)*c;
	}
	return t->colour ? (attr_t)COLOR_PAIR(1 + hash % N_COLOURS) : A_NORMAL;
}

/* Text from (y, x) on, cut at the edge. */
static void put(int y, int x, attr_t attr, const char *text) {
	if (y >= 0 && y < LINES && x < COLS) {
		attrset(attr);
		mvaddnstr(y, x, text, (int)terminal_text_cut(text, (size_t)(COLS - x)));
		attrset(A_NORMAL);
	}
}

static void bar(int y, const char *text) {
	attrset(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put(y, 1, A_REVERSE, text);
}

static void draw_title(const struct top *t) {
	const Sbeet__Control__Service *s = t->s.service;
	uint64_t misses = 0;
	char text[256], age[48];

	for (size_t i = 0; i < t->s.n_tasks; i++) {
		misses += t->s.tasks[i].misses;
	}
	object_print_age(s->uptime_ns, age, sizeof(age));
	snprintf(text, sizeof(text), "sbeet top  policy %s  up %s  %llu jobs done  %llu missed%s",
		 s->policy, age, (unsigned long long)s->jobs_done, (unsigned long long)misses,
		 t->paused ? "  PAUSED" : "");
	terminal_clean(text);
	bar(0, text);
}

/* The map of one GPU, a cell an SM. Return: the line below. */
static int draw_gpu(const struct top *t, const Sbeet__Control__Gpu *g, int y) {
	int per_line = COLS > 12 ? COLS - 4 : 8;
	char text[256], power[32] = "";
	struct smset busy = SMSET_EMPTY;

	smset_from_bytes(g->sms_busy.data, g->sms_busy.len, &busy);
	if (g->power_mw) {
		snprintf(power, sizeof(power), "  %llu.%llu W",
			 (unsigned long long)g->power_mw / 1000,
			 (unsigned long long)g->power_mw / 100 % 10);
	}
	snprintf(text, sizeof(text), "GPU %u  %s  %s  %u of %u SMs busy%s%s", g->index, g->name,
		 g->sharing, smset_count(&busy), g->sms, power, g->drained ? "  DRAINED" : "");
	terminal_clean(text);
	put(y++, 0, A_BOLD, text);
	for (unsigned sm = 0; sm < g->sms; sm++) {
		size_t running = 0;
		const Sbeet__Control__Job *job = map_holder(&t->s, g->index, sm, 1, &running);
		char cell[2] = {job ? map_letter(running, job) : '.', '\0'};
		attr_t attr = job ? attributes(t, job->task) | A_REVERSE : A_DIM;

		put(y + (int)sm / per_line, 2 + (int)sm % per_line, attr, cell);
	}
	return y + ((int)g->sms + per_line - 1) / per_line;
}

static bool is_shown(const struct top *t, const char *task) {
	return strstr(task, t->filter) != NULL;
}

/* The objects of one kind whose task is looked for, from line @y to @end. Return: the line below.
 */
static int draw_table(const struct top *t, const struct object *o, int y, int end,
		      const char *(*task_of)(const struct snapshot *s, size_t i)) {
	struct table_style style = {.width = (unsigned)COLS};
	struct table *table;
	char *text = NULL, *line, *rest = NULL;
	size_t size, n = o->count(&t->s);
	attr_t attrs[256] = {A_BOLD};
	size_t rows = 0;
	FILE *out;

	if (y >= end || table_new(&table, o->columns, o->n_columns) < 0) {
		return y;
	}
	for (size_t i = 0; i < n && rows + 1 < (size_t)(end - y) && rows + 1 < 256; i++) {
		if (is_shown(t, task_of(&t->s, i))) {
			o->add(table, &t->s, i);
			attrs[++rows] = attributes(t, task_of(&t->s, i));
		}
	}
	out = open_memstream(&text, &size);
	if (out && table_print(table, &style, out) == 0 && fflush(out) == 0) {
		rows = 0;
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			put(y++, 0, attrs[rows++], line);
		}
	}
	if (out) {
		fclose(out);
	}
	free(text);
	table_free(table);
	return y;
}

static const char *task_of_task(const struct snapshot *s, size_t i) {
	return s->tasks[i].name;
}

static const char *task_of_job(const struct snapshot *s, size_t i) {
	return s->jobs[i]->task;
}

static void draw_help(void) {
	static const char *const lines[] = {
		"q        leave",
		"p space  pause, go on",
		"s        order of tasks: name, jobs, misses, response",
		"/        show only tasks whose name has this text; empty: all",
		"h ?      this help; any key goes back",
		"",
		"The map has a letter for each SM: that of the job in the table below.",
		"A capital: the job runs on these very SMs. A small one: only their",
		"number holds, the hardware picks which. '.' is free.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		put(2 + (int)i, 2, A_NORMAL, lines[i]);
	}
}

static void draw(const struct top *t) {
	char text[640];
	int y = 2, half;

	erase();
	draw_title(t);
	if (t->help) {
		draw_help();
	}
	for (size_t i = 0; i < t->s.n_gpus && !t->help && y < LINES - 4; i++) {
		y = draw_gpu(t, t->s.gpus[i], y) + 1;
	}
	if (!t->help) {
		half = y + (LINES - 1 - y) / 2;
		y = draw_table(t, &object_task, y, half, task_of_task);
		draw_table(t, &object_job, y + 1, LINES - 1, task_of_job);
	}
	if (t->typing) {
		snprintf(text, sizeof(text), "tasks with: %s_", t->filter);
	} else if (*t->error) {
		snprintf(text, sizeof(text), "%s", t->error);
	} else {
		snprintf(text, sizeof(text), "q quit  p pause  s order: %s  / filter%s%s  h help",
			 orders[t->sort].name, *t->filter ? ": " : "", t->filter);
	}
	bar(LINES - 1, text);
	refresh();
}

/* Looks anew; without sbeetd what was last seen stays, with the reason below it. */
static int look(struct top *t) {
	struct snapshot s;
	int r = 0;

	if (!t->control) {
		r = control_open(&t->control, t->error, sizeof(t->error));
	}
	if (r == 0) {
		r = snapshot_init(&s, t->control, t->error, sizeof(t->error));
		if (r != 0) {
			t->control = control_close(t->control);
		}
	}
	if (r == 0) {
		snapshot_deinit(&t->s);
		t->s = s;
		t->error[0] = '\0';
	}
	order = t->sort;
	qsort(t->s.tasks, t->s.n_tasks, sizeof(*t->s.tasks), compare_tasks);
	return r;
}

static void type_filter(struct top *t, int key) {
	size_t n = strlen(t->filter);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		t->typing = false;
	} else if (key == 27) {
		t->typing = false;
		t->filter[0] = '\0';
	} else if ((key == KEY_BACKSPACE || key == 127 || key == 8) && n > 0) {
		t->filter[n - 1] = '\0';
	} else if (key > ' ' && key < 127 && n < PROTO_NAME_MAX) {
		t->filter[n] = (char)key;
		t->filter[n + 1] = '\0';
	}
}

/* Return: whether to go on. */
static bool press(struct top *t, int key) {
	if (t->typing) {
		type_filter(t, key);
	} else if (t->help) {
		t->help = key == KEY_RESIZE;
	} else if (key == 'q') {
		return false;
	} else if (key == 'p' || key == ' ') {
		t->paused = !t->paused;
	} else if (key == 's') {
		t->sort = (t->sort + 1) % N_ORDERS;
		order = t->sort;
		qsort(t->s.tasks, t->s.n_tasks, sizeof(*t->s.tasks), compare_tasks);
	} else if (key == '/') {
		t->typing = true;
	} else if (key == 'h' || key == '?') {
		t->help = true;
	}
	return true;
}

static void follow(struct top *t, nsec_t interval) {
	nsec_t next = nsec_now() + interval;
	bool more = true;

	while (more && !stop_wanted()) {
		nsec_t now = nsec_now();
		int key;

		if (now >= next) {
			if (!t->paused) {
				look(t);
			}
			next = nsec_now() + interval;
			continue;
		}
		draw(t);
		timeout((int)((next - now) / NSEC_PER_MSEC) + 1);
		key = getch();
		if (key == ERR && !isatty(STDIN_FILENO)) {
			break;
		}
		more = key == ERR || press(t, key);
	}
}

static bool screen_open(const struct ctl *ctl, struct top *t) {
	static const short colours[N_COLOURS] = {COLOR_CYAN,	COLOR_YELLOW, COLOR_GREEN,
						 COLOR_MAGENTA, COLOR_BLUE,   COLOR_WHITE};

	setlocale(LC_CTYPE, ""); /* numbers keep their point */
	if (!newterm(NULL, stdout, stdin)) {
		return false;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	curs_set(0);
	t->colour = terminal_colour(ctl->common.colour, STDOUT_FILENO) && has_colors();
	if (t->colour) {
		start_color();
		use_default_colors();
		for (short i = 0; i < N_COLOURS; i++) {
			init_pair((short)(i + 1), colours[i], -1);
		}
	}
	return true;
}

static int top(const struct ctl *ctl) {
	const struct top_options *o = ctl->options;
	struct top t = {0};
	int r;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		ctl_error("top needs a terminal; use 'sbeetctl --watch' or 'sbeetctl monitor'");
		return CTL_EXIT_USAGE;
	}
	r = look(&t);
	if (r != 0) {
		ctl_error("%s", t.error);
		return r;
	}
	stop_on_signals();
	if (screen_open(ctl, &t)) {
		follow(&t, o->interval ? o->interval : DEFAULT_NS);
		endwin();
	} else {
		ctl_error("this terminal (TERM) can't be drawn on; use 'sbeetctl --watch'");
		r = CTL_EXIT_FAILED;
	}
	control_close(t.control);
	snapshot_deinit(&t.s);
	return r;
}

const struct verb verb_top = {
	.name = "top",
	.args = "",
	.summary = "show GPUs, tasks and jobs live, on the full screen",
	.options = top_options,
	.options_size = sizeof(struct top_options),
	.help = "Keys: q quit, p pause, s order, / filter, h help.\n",
	.function = top,
};
