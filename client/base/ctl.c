/*
 * ctl.c: messages to the user; see ctl.h.
 */
#include "client/base/ctl.h"

#include <stdarg.h>
#include <stdio.h>

static void print_line(const char *kind, const char *format, va_list args)
	__attribute__((format(printf, 2, 0)));

/* Names come from files and from the daemon: none of them may steer the terminal. */
static void print_line(const char *kind, const char *format, va_list args) {
	char text[4096];

	vsnprintf(text, sizeof(text), format, args);
	terminal_clean(text);
	fprintf(stderr, "sbeetctl: %s%s\n", kind, text);
}

void ctl_error(const char *format, ...) {
	va_list args;

	va_start(args, format);
	print_line("", format, args);
	va_end(args);
}

void ctl_warn(const struct ctl *ctl, const char *format, ...) {
	va_list args;

	if (ctl->common.quiet) {
		return;
	}
	va_start(args, format);
	print_line("warning: ", format, args);
	va_end(args);
}
