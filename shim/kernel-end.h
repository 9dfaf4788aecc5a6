/*
 * kernel-end.h: when the kernels of a job have ended, apart from the copies back behind them. Only
 * in programs that are measured (SBEET_MEASURE=1): a thread waits for its kernels before it copies
 * what they have made.
 *
 * Known is what ended before a copy; a launch behind the last copy leaves the end of the job's
 * kernels unknown.
 */
#pragma once

#include <stdbool.h>

struct stream_use;
struct worker;

/* The calling thread @w is about to hand a copy, perhaps one to the host, to the stream of @use.
 * Waits until the kernels that the copy comes after have ended, and notes in their entries when
 * that was. @waits: the copy would wait for them anyway; else this gives up after a second. Asks
 * nothing while somebody captures. */
void kernel_end_wait(struct worker *w, const struct stream_use *use, bool waits);
