/*
 * notify-none.c: built without libsystemd: nobody to notify. See notify.h.
 */
#include <errno.h>

#include "daemon/base/notify.h"

const char notify_feature[] = "-systemd";

int notify_take_socket(const char *name, int type) {
	return -ENOENT;
}

bool notify_is_heard(void) {
	return false;
}

bool notify_can_store(void) {
	return false;
}

int notify_store(int fd, const char *name) {
	return -ENOTSUP;
}

int notify_take_stored(const char *name) {
	return -ENOENT;
}

void notify_drop_stored(void) {
}

void notify_barrier(void) {
}

void notify_ready(const char *status) {
}

void notify_status(const char *status) {
}

void notify_stopping(void) {
}

int notify_journal(const struct iovec *fields, int n) {
	return -ENOSYS;
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
