/*
 * stop.h: verbs that run until Ctrl-C end in good order.
 */
#pragma once

#include <stdbool.h>

/* From now on SIGINT, SIGTERM and SIGHUP only interrupt what waits. A second one ends the program.
 */
void stop_on_signals(void);

/* Whether one of them has come. */
bool stop_wanted(void);
