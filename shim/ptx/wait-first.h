/*
 * wait-first.h: PTX whose kernels can be launched as dependent ones: before the kernel in front of
 * them on their stream is complete.
 *
 * That is CUDA's programmatic dependent launch, for GPUs from compute capability 9.0 on. A kernel
 * that is launched so begins when all blocks of the one in front of it have ended, while what they
 * wrote may still be on its way, and has to wait for that by itself. Here each kernel does that
 * first of all (`griddepcontrol.wait`), so nothing that it computes can tell the difference. The
 * GPU can: it has made the next kernel ready by then, and does not have to come back to a program
 * among others for each of its launches (tests/gpu/HARDWARE.md, 12).
 *
 * Only PTX whose own target has that instruction: `.version` and `.target` stay, for the driver
 * tells them of a kernel, and programs choose by them what to launch (CUB).
 *
 * Kernels that fetch textures or read constants stay as they are: the assembler takes both for
 * read-only while a kernel runs, and may read before it waits what the kernel in front writes.
 *
 * Pure text work, as transform.h.
 */
#pragma once

#include <stddef.h>

/* The first GPUs that have that: 90 for compute capability 9.0. */
#define WAIT_FIRST_SM_MIN 90

/*
 * @text need not be terminated. Return: 0 with the new text, which is terminated and becomes the
 * caller's; -ENOTSUP if its kernels have to stay as they are; -EINVAL when it does not parse; both
 * with @error (if not NULL, at most @error_size bytes) telling why; -E2BIG above 256 MiB; -ENOMEM.
 */
int wait_first_text(char **ret, const char *text, size_t size, char *error, size_t error_size);
