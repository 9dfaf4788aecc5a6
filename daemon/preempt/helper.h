/*
 * helper.h: the process that preempts: a child of sbeetd that holds descriptors of programs, looks
 * at their boards, and asks the driver to preempt their channel groups, by the rule of rule.h.
 *
 * It has no privileges (sandbox.h), hears sbeetd alone, and ends with it. A program's descriptor is
 * closed at once when the program has ended, also while sbeetd is stopped: until then the driver
 * would keep its memory. An ioctl that blocks holds up nobody but this process.
 */
#pragma once

#include <stdbool.h>

/* How sbeetd is run to be it: "sbeetd --preempter [simulated]", with the socket at HELPER_FD. */
#define HELPER_OPTION	 "--preempter"
#define HELPER_SIMULATED "simulated"
#define HELPER_FD	 3

/* Does not return before sbeetd has closed its end. Return: the exit status. */
int helper_run(bool simulated);
