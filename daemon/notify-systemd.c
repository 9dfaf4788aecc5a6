/*
 * notify-systemd.c: sd_notify(3), socket activation and the watchdog. See notify.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include "daemon/notify.h"
#include "daemon/util.h"

const char notify_feature[] = "+systemd";

/* Names of the descriptors from SD_LISTEN_FDS_START on; asked for once, as systemd passes them. */
static char **passed_names(int *ret_n) {
	static char **names;
	static int n = -1;

	if (n < 0) {
		n = sd_listen_fds_with_names(1, &names);
		n = n < 0 ? 0 : n;
	}
	*ret_n = n;
	return names;
}

int notify_take_socket(const char *name) {
	int n;
	char **names = passed_names(&n);

	for (int i = 0; i < n; i++) {
		int fd = SD_LISTEN_FDS_START + i, flags;

		if (strcmp(names[i], name) != 0) {
			continue;
		}
		if (sd_is_socket(fd, AF_UNIX, SOCK_SEQPACKET, 1) <= 0) {
			return -EINVAL;
		}
		flags = fcntl(fd, F_GETFL);
		if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
		    fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
			return -errno;
		}
		return fd;
	}
	return -ENOENT;
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
