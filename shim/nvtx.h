/*
 * nvtx.h: ranges of NVTX that are jobs. NVTX loads libsbeet.so once more, by the path that
 * base/injection.c sets, and calls InitializeInjectionNvtx2(); from then on it calls us at each
 * begin and end of a range. Without SBEET_MARK it does not.
 *
 * Programs find what they find without a tool: no levels of ranges, and nothing else that depends
 * on us but handles that they hand back.
 */
#pragma once

/* The program uses CUDA: at its exit say so if no range was seen that is a job. */
void nvtx_start(void);

/* After fork, in the child: ranges that are open are the parent's. */
void nvtx_after_fork(void);
