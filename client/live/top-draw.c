/*
 * top-draw.c: the screen of `sbeetctl top`; see top.h.
 *
 * Drawn anew from one snapshot each time; letters and words are those of `status`. Colours help to
 * find a task, letters and words carry the meaning.
 */
#include <curses.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/base/terminal.h"
#include "client/live/blocks.h"
#include "client/live/objects.h"
#include "client/live/top.h"

/* Cells of the bar beside a task, and which part of a line a GPU's past power may take. */
#define BAR_CELLS   8
#define POWER_SHARE 6

/* Lines of a pane of which not all is shown: title, header and one row; a GPU and its map. */
#define TABLE_MIN 3
#define GPU_LINES 2

/* Text from (y, x) on, cut at the edge; what the terminal can't show becomes '?'. */
static void put(const struct top *t, int y, int x, attr_t attr, const char *text) {
	char clean[1024];

	if (y < 0 || y >= LINES || x >= COLS) {
		return;
	}
	snprintf(clean, sizeof(clean), "%s", text);
	terminal_clean(clean);
	for (char *c = clean; *c && !t->utf8; c++) {
		*c = (unsigned char)*c < 0x80 ? *c : '?';
	}
	attrset(attr);
	mvaddnstr(y, x, clean, (int)terminal_text_cut(clean, (size_t)(COLS - x)));
	attrset(A_NORMAL);
}

static void put_bar(const struct top *t, int y, const char *text) {
	attrset(A_REVERSE);
	mvhline(y, 0, ' ', COLS);
	put(t, y, 1, A_REVERSE, text);
}

/* A line across with @text in it. */
static void put_rule(const struct top *t, int y, const char *text, bool focus) {
	for (int x = 0; x < COLS; x++) {
		put(t, y, x, A_DIM, t->utf8 ? "─" : "-");
	}
	put(t, y, 2, focus ? A_BOLD : A_NORMAL, text);
}

static attr_t task_attributes(const struct top *t, const char *name) {
	const struct history_task *task = history_task(&t->history, name);

	return t->colour && task ? (attr_t)COLOR_PAIR(1 + task->number % TOP_TASK_COLOURS)
				 : A_NORMAL;
}

static attr_t late_attributes(const struct top *t) {
	return t->colour ? (attr_t)COLOR_PAIR(TOP_LATE) | A_BOLD : A_BOLD;
}

static bool is_shown(const struct top *t, const char *task) {
	return strstr(task, t->filter) != NULL;
}

static size_t count_shown(const struct top *t, enum top_pane pane) {
	size_t n = 0;

	for (size_t i = 0; pane == TOP_TASKS && i < t->s.n_tasks; i++) {
		n += is_shown(t, t->s.tasks[i].name);
	}
	for (size_t i = 0; pane == TOP_JOBS && i < t->s.n_jobs; i++) {
		n += is_shown(t, t->s.jobs[i]->task);
	}
	return pane == TOP_GPUS ? t->s.n_gpus : n;
}

/* "  MPS up"; nothing where there is none. */
static void print_mps(const Sbeet__Control__Mps *m, char *text, size_t size) {
	*text = '\0';
	if (m && strcmp(m->state, "off") != 0 && strcmp(m->state, "absent") != 0) {
		snprintf(text, size, "  MPS %s", m->state);
	}
}

static void draw_title(const struct top *t) {
	const Sbeet__Control__Service *s = t->s.service;
	char text[320], age[48], mps[48];

	print_mps(t->s.mps, mps, sizeof(mps));
	object_print_age(s->uptime_ns, age, sizeof(age));
	snprintf(text, sizeof(text),
		 "sbeet top%s%s  policy %s  up %s  %llu jobs done  %llu too late%s",
		 t->paused ? "  PAUSED" : "", *t->error ? "  NOT LIVE" : "", s->policy, age,
		 (unsigned long long)s->jobs_done, (unsigned long long)s->misses, mps);
	put_bar(t, 0, text);
}

/* --- GPUs ----------------------------------------------------------------------------------- */

/* "46.0/220 W" and as much of its past as has room in @cells. */
static void print_power(const struct top *t, size_t i, size_t cells, char *text, size_t size) {
	const struct history_gpu *past = history_gpu(&t->history, i);
	const Sbeet__Control__Gpu *g = t->s.gpus[i];
	char power[48], heights[BLOCKS_TEXT] = "";
	uint64_t top = g->power_limit_mw;
	size_t n = past ? past->n : 0;

	object_print_power(g, power, sizeof(power));
	if (!*power) {
		*text = '\0';
		return;
	}
	n = n > cells ? cells : n;
	for (size_t k = 0; k < n && !g->power_limit_mw; k++) {
		uint64_t value = past->power_mw[past->n - 1 - k];

		top = value > top ? value : top;
	}
	if (n > 1) {
		blocks_heights(heights, past->power_mw + past->n - n, n, top, t->utf8);
	}
	snprintf(text, size, "%s W %s", power, heights);
}

/* "83 %  61 C  3.1/8.0 GiB": utilization, temperature and memory, as far as they are known. */
static void print_readings(const Sbeet__Control__Gpu *g, char *text, size_t size) {
	size_t n = 0;

	*text = '\0';
	if (g->utilization_case) {
		n += (size_t)snprintf(text + n, size - n, "%u %%  ", g->utilization_percent);
	}
	if (g->temperature_case && n < size) {
		n += (size_t)snprintf(text + n, size - n, "%u C  ", g->temperature_celsius);
	}
	if (g->memory_used_case && g->memory_bytes && n < size) {
		snprintf(text + n, size - n, "%.1f/%.1f GiB  ",
			 (double)g->memory_used_bytes / (1 << 30),
			 (double)g->memory_bytes / (1 << 30));
	}
}

static void draw_gpu_line(const struct top *t, size_t i, unsigned per_cell, int y) {
	const Sbeet__Control__Gpu *g = t->s.gpus[i];
	struct smset busy = snapshot_gpu_busy(&t->s, i);
	char text[256], power[BLOCKS_TEXT + 64], scale[32] = "", readings[96];
	int x;

	if (per_cell > 1) {
		snprintf(scale, sizeof(scale), ", %u a letter", per_cell);
	}
	snprintf(text, sizeof(text), "GPU %u%s  %u of %u SMs busy%s  %s", g->index,
		 g->lost      ? " LOST"
		 : g->drained ? " DRAINED"
			      : "",
		 smset_count(&busy), g->sms, scale, g->sharing);
	put(t, y, 0, A_BOLD, text);
	x = (int)terminal_text_width(text) + 2;
	print_power(t, i, (size_t)COLS / POWER_SHARE, power, sizeof(power));
	put(t, y, x, A_NORMAL, power);
	x += *power ? (int)terminal_text_width(power) + 2 : 0;
	print_readings(g, readings, sizeof(readings));
	put(t, y, x, A_NORMAL, readings);
	x += (int)terminal_text_width(readings);
	put(t, y, x, A_DIM, g->name);
}

/* Left of a line of the map stands the number of its first SM. */
#define MAP_LEFT 5

/* How many cells a line of the map has room for. */
static unsigned map_width(void) {
	return (unsigned)COLS - MAP_LEFT - 1;
}

static unsigned map_lines(const Sbeet__Control__Gpu *g) {
	return (g->sms + map_width() - 1) / map_width();
}

/* Lines of about equal length, of whole eights where those fit: 132 SMs are 72 and 60. */
static unsigned map_per_line(unsigned n_cells) {
	unsigned lines = (n_cells + map_width() - 1) / map_width();
	unsigned even = lines > 0 ? (n_cells + lines - 1) / lines : 1, eights = (even + 7) / 8 * 8;

	return lines > 1 && eights <= map_width() ? eights : even;
}

/* A letter for @per_cell SMs each. Return: the line below. */
static int draw_map(const struct top *t, const Sbeet__Control__Gpu *g, unsigned per_cell, int y) {
	unsigned per_line = map_per_line((g->sms + per_cell - 1) / per_cell), cell = 0;

	for (unsigned sm = 0; sm < g->sms; sm += per_cell, cell++) {
		ssize_t i = map_holder(&t->s, g->index, sm, per_cell);
		char text[2] = {i >= 0 ? map_letter(&t->s, (size_t)i) : map_free(g), '\0'};
		attr_t attr = i >= 0 ? task_attributes(t, t->s.jobs[i]->task) | A_REVERSE : A_DIM;

		if (cell > 0 && cell % per_line == 0) {
			y++;
		}
		if (cell % per_line == 0) {
			char first[MAP_LEFT + 8];

			snprintf(first, sizeof(first), "%*u", MAP_LEFT - 1, sm);
			put(t, y, 0, A_DIM, first);
		}
		put(t, y, (int)(MAP_LEFT + cell % per_line), attr, text);
	}
	return y + 1;
}

/* @folded: each map on one line, however many SMs a letter then stands for. */
static void draw_gpus(const struct top *t, int y, bool folded) {
	size_t end = t->first[TOP_GPUS] + t->shown[TOP_GPUS];

	for (size_t i = t->first[TOP_GPUS]; i < end; i++) {
		const Sbeet__Control__Gpu *g = t->s.gpus[i];

		unsigned per_cell = folded ? map_lines(g) : 1;

		draw_gpu_line(t, i, per_cell, y);
		y = draw_map(t, g, per_cell, y + 1);
	}
}

/* --- tables --------------------------------------------------------------------------------- */

static const struct table_column task_columns[] = {
	{"task", "TASK", .elastic = true},
	{"map", "MAP", .drop = 2},
	{"sessions", "SESSIONS", .right = true, .drop = 8},
	{"running", "RUN", .right = true, .drop = 6},
	{"waiting", "WAIT", .right = true, .drop = 6},
	{"jobs", "JOBS", .right = true, .drop = 5},
	{"last", "LAST ms", .right = true, .drop = 1},
	{"deadline", "DEADLINE ms", .right = true, .drop = 3},
	{"share", "LAST OF DEADLINE", .drop = 4},
	{"max", "MAX ms", .right = true, .drop = 7},
	{"misses", "MISSES", .right = true},
	{"fresh", "NEW"},
};

#define N_TASK_COLUMNS (sizeof(task_columns) / sizeof(task_columns[0]))

static void add_task(const struct top *t, struct table *table, const struct snapshot_task *task) {
	uint64_t deadline = task->deadline ? task->deadline : task->period;
	uint64_t fresh = history_fresh(history_task(&t->history, task->name));
	char bar[BLOCKS_TEXT], letter[2] = {task->letter};

	table_text(table, task->name);
	table_text(table, letter);
	table_number(table, (int64_t)task->n_sessions);
	table_number(table, (int64_t)task->n_running);
	table_number(table, (int64_t)task->n_waiting);
	table_number(table, (int64_t)task->jobs);
	table_msec_known(table, task->last_response);
	table_msec_known(table, deadline);
	if (deadline && task->last_response) {
		blocks_bar(bar, task->last_response, deadline, BAR_CELLS, t->utf8);
		table_value(table, (int64_t)task->last_response, "%s %4.0f %%", bar,
			    100.0 * (double)task->last_response / (double)deadline);
	} else {
		table_text(table, NULL);
	}
	table_msec_known(table, task->max_response);
	table_number(table, (int64_t)task->misses);
	if (fresh) {
		table_value(table, (int64_t)fresh, "+%llu", (unsigned long long)fresh);
	} else {
		table_blank(table);
	}
}

static attr_t task_row(const struct top *t, const struct snapshot_task *task) {
	bool fresh = history_fresh(history_task(&t->history, task->name)) > 0;

	return fresh ? late_attributes(t) : task_attributes(t, task->name);
}

static attr_t job_row(const struct top *t, const Sbeet__Control__Job *job) {
	bool late = job->deadline_ns && job->deadline_ns < t->s.service->now_ns;

	return late ? late_attributes(t) : task_attributes(t, job->task);
}

/* Rows of the pane into @table, their attributes behind that of the header. */
static void fill(const struct top *t, enum top_pane pane, struct table *table, attr_t *attrs) {
	size_t n = pane == TOP_TASKS ? t->s.n_tasks : t->s.n_jobs;
	size_t skip = t->first[pane], rows = 0;

	for (size_t i = 0; i < n && rows < t->shown[pane]; i++) {
		const struct snapshot_task *task = pane == TOP_TASKS ? &t->s.tasks[i] : NULL;
		const Sbeet__Control__Job *job = task ? NULL : t->s.jobs[i];

		if (!is_shown(t, task ? task->name : job->task)) {
			continue;
		}
		if (skip > 0) {
			skip--;
		} else if (task) {
			add_task(t, table, task);
			attrs[++rows] = task_row(t, task);
		} else {
			object_job.add(table, &t->s, i, (unsigned)COLS);
			attrs[++rows] = job_row(t, job);
		}
	}
}

static void draw_rows(const struct top *t, const struct table *table, const attr_t *attrs, int y) {
	struct table_style style = {.width = (unsigned)COLS};
	char *text = NULL, *line, *rest = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (out && table_print(table, &style, out) == 0 && fflush(out) == 0) {
		for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
			put(t, y++, 0, *attrs++, line);
		}
	}
	if (out) {
		fclose(out);
	}
	free(text);
}

static void draw_table(const struct top *t, enum top_pane pane, int y) {
	attr_t *attrs = calloc(t->shown[pane] + 1, sizeof(*attrs));
	struct table *table = NULL;
	int r;

	r = pane == TOP_TASKS ? table_new(&table, task_columns, N_TASK_COLUMNS)
			      : table_new(&table, object_job.columns, object_job.n_columns);
	if (attrs && r == 0) {
		attrs[0] = A_BOLD;
		fill(t, pane, table, attrs);
		draw_rows(t, table, attrs, y);
	}
	table_free(table);
	free(attrs);
}

/* --- the whole ------------------------------------------------------------------------------ */

static void draw_pane(const struct top *t, enum top_pane pane, int y) {
	static const char *const names[] = {"GPUs", "tasks", "jobs"};
	static const char *const none[] = {"", "no programs connected",
					   "no jobs running or waiting"};
	size_t n = count_shown(t, pane), first = t->first[pane], shown = t->shown[pane];
	char text[96];

	if (n == 0) {
		snprintf(text, sizeof(text), " %s ",
			 *t->filter ? "nothing with this text" : none[pane]);
	} else if (shown < n) {
		snprintf(text, sizeof(text), " %s %zu-%zu of %zu %s", names[pane], first + 1,
			 first + shown, n, t->focus == pane ? "(arrows scroll) " : "");
	} else {
		snprintf(text, sizeof(text), " %s ", names[pane]);
	}
	put_rule(t, y, text, t->focus == pane);
	if (pane != TOP_GPUS && n > 0) {
		draw_table(t, pane, y + 1);
	}
}

/* How many lines each pane gets of @room; the two tables have title and header. */
struct plan {
	int gpus, tasks, jobs;
	bool folded, gpus_cut;
};

static int least(int a, int b) {
	return a < b ? a : b;
}

static struct plan make_plan(const struct top *t, int room) {
	int tasks = 2 + (int)count_shown(t, TOP_TASKS), jobs = 2 + (int)count_shown(t, TOP_JOBS);
	struct plan p = {0};
	int rest;

	for (size_t i = 0; i < t->s.n_gpus; i++) {
		p.gpus += 1 + (int)map_lines(t->s.gpus[i]);
	}
	if (p.gpus + tasks + jobs > room) {
		p.folded = true;
		p.gpus = GPU_LINES * (int)t->s.n_gpus;
	}
	rest = room - least(tasks, TABLE_MIN) - least(jobs, TABLE_MIN);
	if (p.gpus > rest) {
		/* A title of its own, and whole GPUs below it. */
		p.gpus_cut = rest > GPU_LINES;
		rest -= p.gpus_cut;
		p.gpus = rest - rest % GPU_LINES;
	}
	rest = room - p.gpus - p.gpus_cut;
	p.tasks = least(tasks, rest - least(jobs, rest / 2));
	p.jobs = least(jobs, rest - p.tasks);
	return p;
}

/* @rows of @pane fit: how many are shown, and from which one on. */
static void clamp(struct top *t, enum top_pane pane, int rows) {
	size_t n = count_shown(t, pane), room = rows > 0 ? (size_t)rows : 0;

	t->shown[pane] = n < room ? n : room;
	if (t->first[pane] > n - t->shown[pane]) {
		t->first[pane] = n - t->shown[pane];
	}
}

static void draw_panes(struct top *t) {
	struct plan p = make_plan(t, LINES - 2);
	int y = 1;

	clamp(t, TOP_GPUS, p.folded ? p.gpus / GPU_LINES : (int)t->s.n_gpus);
	clamp(t, TOP_TASKS, p.tasks - 2);
	clamp(t, TOP_JOBS, p.jobs - 2);
	if (p.gpus_cut) {
		draw_pane(t, TOP_GPUS, y++);
	}
	draw_gpus(t, y, p.folded);
	draw_pane(t, TOP_TASKS, y + p.gpus);
	draw_pane(t, TOP_JOBS, y + p.gpus + p.tasks);
}

static void draw_help(const struct top *t) {
	static const char *const lines[] = {
		"q         leave",
		"p space   pause, continue",
		"s         order of tasks: name, jobs, misses, response",
		"/         show only tasks whose name has this text; empty: all",
		"tab       which table the arrows scroll",
		"arrows, page up and down, home, end, j k: scroll",
		"D         drain a GPU, or resume it",
		"E         end a program, as 'session kill' does",
		"P T       change a task's priority, or its deadline (time)",
		"          each asks before it does anything; escape leaves it",
		"h ?       this help; any key goes back",
		"",
		"The map has a letter for each SM, or for several where there is little",
		"room: that of the task in the tables below. Upper case: the task's job runs",
		"on exactly these SMs. Lower case: only their number is guaranteed, not which",
		"ones. '.' is free, '-' is free on a drained GPU.",
		"LAST is the last job's time from release to end; the bar compares it",
		"with the deadline. NEW: deadlines missed in the last five seconds.",
		"A GPU's line: power, its last readings against its limit, utilization,",
		"temperature, and memory in use by all programs.",
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		put(t, 2 + (int)i, 2, A_NORMAL, lines[i]);
	}
}

static void draw_last_line(const struct top *t) {
	char text[1024];

	if (t->ask.state != TOP_ASK_NOTHING) {
		top_ask_print(&t->ask, text, sizeof(text));
	} else if (*t->note) {
		snprintf(text, sizeof(text), "%s", t->note);
	} else if (t->typing) {
		snprintf(text, sizeof(text), "tasks with: %s_", t->filter);
	} else if (*t->error) {
		snprintf(text, sizeof(text), "%s", t->error);
	} else {
		snprintf(text, sizeof(text),
			 "q quit  h help  p pause  s order: %s  / filter%s%s  tab  D E P T change",
			 t->order, *t->filter ? ": " : "", t->filter);
	}
	put_bar(t, LINES - 1, text);
}

void top_draw(struct top *t) {
	char text[64];

	erase();
	if (COLS < TOP_COLUMNS_MIN || LINES < TOP_ROWS_MIN) {
		snprintf(text, sizeof(text), "needs %d x %d, has %d x %d", TOP_COLUMNS_MIN,
			 TOP_ROWS_MIN, COLS, LINES);
		put(t, 0, 0, A_BOLD, "terminal too small");
		put(t, 1, 0, A_NORMAL, text);
		put(t, 2, 0, A_NORMAL, "enlarge it, or q to quit");
	} else {
		draw_title(t);
		if (t->help) {
			draw_help(t);
		} else {
			draw_panes(t);
		}
		draw_last_line(t);
	}
	refresh();
}
