/*
 * cell.h: runs the tasks of one cell of the evaluation: all programs at once, one start for all.
 */
#pragma once

#include <stdint.h>

/*
 * Starts each line of standard input as a command of the shell: a `periodic` with this window and
 * lead. When all have said "ready", gives them one start time. Prints, from the window's begin on,
 * `stolen MS` (CPU time that the hypervisor took) and `energy MJ NS` (nothing where there is no
 * meter) and, for each, `task I LINE`, its result. A
 * program that is not ready after a minute, or not done 20 s after the window, is killed. Return:
 * 0; 1 if a program failed.
 */
int cell_run(uint64_t lead_ns, uint64_t window_ns);
