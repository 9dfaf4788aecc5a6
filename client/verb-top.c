/*
 * verb-top.c: `sbeetctl top`: the live view on a full screen: looks, keys, and the terminal, which
 * is given back on every way out. top-draw.c draws.
 */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "client/base/stop.h"
#include "client/live/blocks.h"
#include "client/live/top.h"
#include "client/live/watch.h"
#include "client/options.h"
#include "client/verb.h"

#define DEFAULT_NS NSEC_PER_SEC

#define CANNOT_DRAW "this terminal (TERM) can't be drawn on; use 'sbeetctl --watch'"

struct top_options {
	nsec_t interval; /* 0: DEFAULT_NS */
};

static const struct option top_options[] = {
	{"interval", 'i', OPTION_REQUIRED, "SEC", "look every SEC seconds (default: 1)",
	 option_watch, offsetof(struct top_options, interval), OPTION_WATCH_EXPECTED},
	{0},
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

static unsigned order; /* the one that is chosen; here for qsort() */

static int compare_tasks(const void *left, const void *right) {
	const struct snapshot_task *a = left, *b = right;
	uint64_t x = 0, y = 0;

	if (order > 0) {
		memcpy(&x, (const char *)a + orders[order].offset, sizeof(x));
		memcpy(&y, (const char *)b + orders[order].offset, sizeof(y));
	}
	return x != y ? (x < y) - (x > y) : strcmp(a->name, b->name);
}

static void sort_tasks(struct top *t) {
	t->order = orders[order].name;
	qsort(t->s.tasks, t->s.n_tasks, sizeof(*t->s.tasks), compare_tasks);
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
		sort_tasks(t);
		if (history_add(&t->history, &t->s) < 0 || letters_give(&t->letters, &t->s) < 0) {
			snprintf(t->error, sizeof(t->error), "out of memory");
		}
	}
	return r;
}

static void type_filter(struct top *t, int key) {
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		t->typing = false;
	} else if (key == 27) {
		t->typing = false;
		t->filter[0] = '\0';
	} else if (key != ' ') {
		top_ask_type(t->filter, sizeof(t->filter), key);
	}
}

/* Has the verb run that makes the change. */
static void start_change(struct top *t) {
	const char *words[TOP_ASK_WORDS + 1] = {NULL};
	int r;

	for (size_t i = 0; i < TOP_ASK_WORDS && *t->ask.words[i]; i++) {
		words[i] = t->ask.words[i];
	}
	r = top_run_start(&t->run, words);
	if (r < 0) {
		snprintf(t->note, sizeof(t->note), "cannot run sbeetctl: %s", strerror(-r));
	} else {
		snprintf(t->note, sizeof(t->note), "sbeetctl %s %s ...", words[0], words[1]);
	}
	t->ask.state = TOP_ASK_NOTHING;
}

static void continue_change(struct top *t, int key) {
	top_ask_press(&t->ask, key, &t->s);
	if (t->ask.state == TOP_ASK_YES) {
		start_change(t);
	}
}

/* Moves the pane that has the focus; top_draw() keeps it within what there is. */
static void scroll_pane(struct top *t, int key) {
	size_t *first = &t->first[t->focus], page = t->shown[t->focus] > 1 ? t->shown[t->focus] : 1;
	size_t step = key == KEY_PPAGE || key == KEY_NPAGE ? page : 1;

	switch (key) {
	case KEY_UP:
	case 'k':
	case KEY_PPAGE:
		*first -= *first < step ? *first : step;
		break;
	case KEY_DOWN:
	case 'j':
	case KEY_NPAGE:
		*first += step;
		break;
	case KEY_HOME:
		*first = 0;
		break;
	case KEY_END:
		*first = SIZE_MAX;
		break;
	default:
		break;
	}
}

/* Return: whether to go on. */
static bool press(struct top *t, int key) {
	if (t->run.pid == 0 && key != KEY_RESIZE) {
		t->note[0] = '\0';
	}
	if (t->typing) {
		type_filter(t, key);
	} else if (t->ask.state != TOP_ASK_NOTHING) {
		continue_change(t, key);
	} else if (t->help) {
		t->help = key == KEY_RESIZE;
	} else if (key == 'q') {
		return false;
	} else if (key == 'p' || key == ' ') {
		t->paused = !t->paused;
	} else if (key == 's') {
		order = (order + 1) % N_ORDERS;
		sort_tasks(t);
	} else if (key == '/') {
		t->typing = true;
	} else if (key == 'h' || key == '?') {
		t->help = true;
	} else if (key == '\t') {
		t->focus = (t->focus + 1) % _TOP_PANE_N;
	} else if (t->run.pid > 0 || !top_ask_begin(&t->ask, key, &t->s, t->filter)) {
		scroll_pane(t, key);
	}
	return true;
}

/* A change of size that comes while curses begins is lost to it. */
static void fit_screen(void) {
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0 &&
	    is_term_resized(size.ws_row, size.ws_col)) {
		resizeterm(size.ws_row, size.ws_col);
	}
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
		if (top_run_look(&t->run, t->note, sizeof(t->note)) && !t->paused) {
			look(t);
		}
		fit_screen();
		top_draw(t);
		timeout((int)((next - now) / NSEC_PER_MSEC) + 1);
		key = getch();
		if (key == ERR && !isatty(STDIN_FILENO)) {
			break;
		}
		more = key == ERR || press(t, key);
	}
}

/* Return: whether the terminal can be drawn on. */
static bool screen_open(const struct ctl *ctl, struct top *t) {
	static const short colours[TOP_TASK_COLOURS] = {COLOR_CYAN,    COLOR_YELLOW, COLOR_GREEN,
							COLOR_MAGENTA, COLOR_BLUE,   COLOR_WHITE};

	setlocale(LC_CTYPE, ""); /* numbers keep their point */
	t->utf8 = blocks_utf8();
	if (!newterm(NULL, stdout, stdin)) {
		return false;
	}
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	set_escdelay(25);
	curs_set(0);
	t->colour = terminal_colour(ctl->common.colour, STDOUT_FILENO) && has_colors();
	if (t->colour) {
		start_color();
		use_default_colors();
		for (short i = 0; i < TOP_TASK_COLOURS; i++) {
			init_pair((short)(i + 1), colours[i], -1);
		}
		init_pair(TOP_LATE, COLOR_RED, -1);
	}
	return true;
}

/* A terminal that can't move its cursor shows nothing but a mess. */
static bool is_dumb(void) {
	const char *term = getenv("TERM");

	return !term || !*term || strcmp(term, "dumb") == 0;
}

static int top(const struct ctl *ctl) {
	const struct top_options *o = ctl->options;
	struct top t = {.focus = TOP_TASKS};
	int r;

	if (!isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO)) {
		ctl_error("top needs a terminal; use 'sbeetctl --watch' or 'sbeetctl monitor'");
		return CTL_EXIT_USAGE;
	}
	if (is_dumb()) {
		ctl_error(CANNOT_DRAW);
		return CTL_EXIT_FAILED;
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
		ctl_error(CANNOT_DRAW);
		r = CTL_EXIT_FAILED;
	}
	control_close(t.control);
	snapshot_deinit(&t.s);
	history_deinit(&t.history);
	letters_deinit(&t.letters);
	return r;
}

const struct verb verb_top = {
	.name = "top",
	.args = "",
	.summary = "show GPUs, tasks and jobs live, on the full screen",
	.options = top_options,
	.options_size = sizeof(struct top_options),
	.help = "Keys: q quit, p pause, s order, / filter, tab and arrows scroll, h help.\n"
		"After a question: D drain or resume a GPU, E end a program,\n"
		"P change a task's priority, T its deadline.\n",
	.function = top,
};
