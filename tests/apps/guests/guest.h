/*
 * guest.h: what the guests share. A guest is a program that knows nothing of sbeet; its file is a
 * subject (lookup, memory, ...), its name a row in the file's table. guests.sh runs each one with
 * and without sbeet and compares what it says and how it ends: so what is said must be the same in
 * each run (no addresses, times, process ids).
 *
 * How to add one: a function and a row.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>

struct guest {
	const char *name; /* NULL: the end of the table */
	void (*run)(void);
};

/* The table of the program's file. */
extern const struct guest guests[];

/* What the program was started with, to start itself again. */
extern char **guest_arguments;

#define TELL(...) (printf(__VA_ARGS__), (void)fflush(stdout))

/* Ends the guest as one that can't run here: it is counted as skipped if it does so without sbeet,
 * too. */
__attribute__((noreturn)) void guest_skip(const char *why);

/* Ends the guest with exit code 1. */
__attribute__((noreturn)) void guest_fail(const char *why);

/* $NAME, as a path or whatever guests.sh gives; the guest is skipped if it is not set. */
const char *guest_setting(const char *name);

/* Runs @run in a child process that ends with _exit(0) after it; waits, and tells how it ended. */
void guest_in_child(const char *name, void (*run)(void));

/* Waits for the child @pid and tells how it ended. */
void guest_await_child(const char *name, int pid);

/* The guest @name of this program, by fork and exec with the environment as it is. */
void guest_start_again(const char *name);
