/*
 * notify-none.c: built without libsystemd: nobody to notify. See notify.h.
 */
#include <errno.h>

#include "daemon/notify.h"

const char notify_feature[] = "-systemd";

int notify_take_socket(const char *name) {
	return -ENOENT;
}

void notify_ready(const char *status) {
}

void notify_status(const char *status) {
}

void notify_stopping(void) {
}

void notify_reloading(void) {
}

void notify_reloaded(void) {
}

nsec_t notify_watchdog_interval(void) {
	return 0;
}

void notify_watchdog(void) {
}
