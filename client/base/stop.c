/*
 * stop.c: see stop.h.
 */
#include "client/base/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t wanted;

static void on_signal(int signal_number) {
	(void)signal_number;
	wanted = 1;
}

void stop_on_signals(void) {
	/* Without SA_RESTART: waiting calls return EINTR. */
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

bool stop_wanted(void) {
	return wanted;
}
