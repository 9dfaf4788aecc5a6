/*
 * watch.c: see watch.h.
 */
#include "client/live/watch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/live/control.h"
#include "client/live/letters.h"
#include "proto/units.h"

#define WATCH_DEFAULT_NS (2 * NSEC_PER_SEC)
#define WATCH_MIN_NS	 (100 * NSEC_PER_MSEC)

int option_watch(const char *text, void *target) {
	char seconds[32];
	nsec_t t = WATCH_DEFAULT_NS;
	int r = 0;

	if (text) {
		r = units_parse_nsec(text, &t);
		if (r == -EINVAL &&
		    snprintf(seconds, sizeof(seconds), "%ss", text) < (int)sizeof(seconds)) {
			r = units_parse_nsec(seconds, &t);
		}
	}
	if (r == 0 && t < WATCH_MIN_NS) {
		return -ERANGE;
	}
	if (r == 0) {
		*(nsec_t *)target = t;
	}
	return r;
}

/* Draws over what is there, line by line, so that nothing flickers. A line is cleared before it is
 * written, and only the last row has no line feed, else the terminal would scroll. */
static void redraw(const char *text) {
	unsigned rows = terminal_height(STDOUT_FILENO);

	fputs("\033[H", stdout);
	for (unsigned row = 1; *text; row++) {
		size_t len = strcspn(text, "\n");

		if (row == rows && text[len] && text[len + 1]) {
			fputs("\033[K...", stdout);
			return;
		}
		printf("\033[K%.*s", (int)len, text);
		if (row == rows) {
			return;
		}
		fputc('\n', stdout);
		text += len + (text[len] == '\n');
	}
	fputs("\033[J", stdout);
}

static void print_time(void) {
	time_t now = time(NULL);
	struct tm tm;
	char text[64];

	if (localtime_r(&now, &tm) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &tm)) {
		printf("-- %s\n", text);
	}
}

/* The whole as text goes out in one piece. */
static int show_text(const struct ctl *ctl, const struct snapshot *s, bool watching,
		     const struct watch_view *view) {
	unsigned rows = watching ? terminal_height(STDOUT_FILENO) : 0;
	char *text;
	int r = view->text(ctl, s, rows, &text);

	if (r != CTL_EXIT_OK) {
		return r;
	}
	if (rows > 0) {
		redraw(text);
	} else {
		if (watching) {
			print_time();
		}
		fputs(text, stdout);
	}
	free(text);
	return CTL_EXIT_OK;
}

static int show(const struct ctl *ctl, const struct snapshot *s, bool watching,
		const struct watch_view *view) {
	/* A stream has one object a line. */
	enum json_mode json =
		watching && ctl->common.json == JSON_AUTO ? JSON_SHORT : ctl->common.json;
	json_t *object = NULL;
	int r;

	if (json == JSON_OFF) {
		return show_text(ctl, s, watching, view);
	}
	r = view->json(ctl, s, &object);
	if (r == CTL_EXIT_OK && json_write(object, json, stdout) == -ENOMEM) {
		ctl_error("cannot show sbeetd's state: out of memory");
		return CTL_EXIT_FAILED;
	}
	return r;
}

static int show_once(const struct ctl *ctl, struct control *control, struct letters *letters,
		     bool watching, const struct watch_view *view) {
	struct snapshot snapshot;
	char error[512];
	int r;

	r = snapshot_init(&snapshot, control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	r = letters_give(letters, &snapshot);
	if (r < 0) {
		ctl_error("cannot show sbeetd's state: out of memory");
		r = CTL_EXIT_FAILED;
	} else {
		r = show(ctl, &snapshot, watching, view);
	}
	snapshot_deinit(&snapshot);
	if (r == CTL_EXIT_OK && fflush(stdout) == EOF) {
		return CTL_EXIT_FAILED; /* main() says what is wrong with stdout */
	}
	return r;
}

int watch_run(const struct ctl *ctl, nsec_t interval, const struct watch_view *view) {
	struct timespec pause = nsec_timespec(interval);
	struct letters letters = {0};
	struct control *control;
	char error[512];
	int r;

	r = control_open(&control, error, sizeof(error));
	if (r != 0) {
		ctl_error("%s", error);
		return r;
	}
	if (interval && ctl->common.json == JSON_OFF && terminal_height(STDOUT_FILENO) > 0) {
		fputs("\033[2J", stdout);
	}
	do {
		r = show_once(ctl, control, &letters, interval != 0, view);
	} while (r == CTL_EXIT_OK && interval && nanosleep(&pause, NULL) == 0);
	letters_deinit(&letters);
	control_close(control);
	return r;
}
