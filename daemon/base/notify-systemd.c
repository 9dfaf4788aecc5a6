/*
 * notify-systemd.c: sd_notify(3), socket activation and the watchdog. See notify.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-journal.h>

#include "daemon/base/notify.h"
#include "daemon/base/util.h"

/* A service manager answers in milliseconds; a stuck one must not keep us from stopping. */
#define BARRIER_USEC (2 * 1000 * 1000)

const char notify_feature[] = "+systemd";

/* Names of the descriptors from SD_LISTEN_FDS_START on, as systemd passes them, and their number; a
 * negative errno if it can't be told. */
static char **passed_names(int *ret_n) {
	static char **names;
	static int n = -1;

	if (n < 0) {
		n = sd_listen_fds_with_names(0, &names);
		if (n >= 0) {
			sd_listen_fds(1); /* no child is to take them for its own */
		}
	}
	*ret_n = n;
	return names;
}

/* Ours from now on. Return: it, or a negative errno. */
static int take(int fd) {
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
	    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
		return -errno;
	}
	return fd;
}

int notify_take_socket(const char *name, int type) {
	int family = type == SOCK_SEQPACKET ? AF_UNIX : AF_UNSPEC, n;
	char **names = passed_names(&n);

	if (n < 0) {
		return n;
	}
	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (strcmp(names[i], name) != 0) {
			continue;
		}
		if (sd_is_socket(fd, family, type, 1) <= 0) {
			return -EINVAL;
		}
		return take(fd);
	}
	return -ENOENT;
}

bool notify_is_heard(void) {
	return getenv("NOTIFY_SOCKET");
}

bool notify_can_store(void) {
	const char *store = getenv("FDSTORE"); /* its size; not told by systemd before 254 */

	return notify_is_heard() && !(store && strcmp(store, "0") == 0);
}

int notify_store(int fd, const char *name) {
	char state[128];
	int r;

	snprintf(state, sizeof(state), "FDSTORE=1\nFDNAME=%s", name);
	r = sd_pid_notify_with_fds(0, 0, state, &fd, 1);
	return r < 0 ? r : r == 0 ? -ENOTCONN : 0;
}

/* Names that the units give to sockets; all others are the store's. */
static bool is_listening(const char *name) {
	return strcmp(name, "shim") == 0 || strcmp(name, "control") == 0 ||
	       strcmp(name, "metrics") == 0;
}

int notify_take_stored(const char *name) {
	int n;
	char **names = passed_names(&n);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i;

		if (is_listening(names[i]) || strcmp(names[i], name) != 0) {
			continue;
		}
		names[i][0] = '\0'; /* taken */
		sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name);
		return take(fd);
	}
	return -ENOENT;
}

void notify_drop_stored(void) {
	int n;
	char **names = passed_names(&n);

	for (int i = 0; i < n; i++) {
		if (names[i][0] && !is_listening(names[i])) {
			sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", names[i]);
			close(SD_LISTEN_FDS_START + i);
			names[i][0] = '\0';
		}
	}
}

void notify_barrier(void) {
	sd_notify_barrier(0, BARRIER_USEC);
}

void notify_ready(const char *status) {
	sd_notifyf(0, "READY=1\nSTATUS=%s", status);
}

void notify_status(const char *status) {
	sd_notifyf(0, "STATUS=%s", status);
}

void notify_stopping(void) {
	sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
}

int notify_journal(const struct iovec *fields, int n) {
	return sd_journal_sendv(fields, n);
}

void notify_reloading(void) {
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   (unsigned long long)(nsec_now() / NSEC_PER_USEC));
}

void notify_reloaded(void) {
	sd_notify(0, "READY=1");
}

nsec_t notify_watchdog_interval(void) {
	uint64_t usec;

	if (sd_watchdog_enabled(0, &usec) <= 0) {
		return 0;
	}
	return usec * NSEC_PER_USEC / 2;
}

void notify_watchdog(void) {
	sd_notify(0, "WATCHDOG=1");
}
