/*
 * harness-internal.h: what the parts of the harness share: harness.c, the process; harness-shim.c
 * and harness-control.c, its clients.
 */
#pragma once

/* Long enough for a loaded machine under valgrind; only a hang gets there. */
#define HARNESS_HANG_MS 30000

/* Fails the test if nothing comes. */
void harness_wait_readable(int fd);

/* Connects to the socket of this name. Return: owned by the caller. */
int harness_connect(const char *name);
