/*
 * sass.h: machine code for compute capability 9.0 whose kernels wait first of all, as those of PTX
 * do by wait-first.h.
 *
 * Nothing moves: ptxas ends each section of code with eight or more NOPs, which nobody reaches.
 * Three of them become the wait, the kernel's first instruction (always the same one, which loads
 * the stack pointer) and a branch back behind it; in its place at the entry stands a branch to
 * them. Every address, relocation and note about the code stays true.
 *
 * NVIDIA documents no encoding. These were measured, on ptxas 13.0's output and on the 23,246
 * kernels of the CUDA 13.0 libraries cuBLAS, cuBLASLt, cuFFT, cuSOLVER and cuSPARSE: each one
 * begins and ends so, and each of the first four's 1.1 million branches leads to an instruction of
 * its own kernel. Code that looks different in any way stays as it is, and so does code that
 * relocations change where something is written. As the wait stands in the code that runs, no
 * compiler can move a load in front of it.
 *
 * Code that waits by itself (griddepcontrol.wait is ACQBULK), or that lets the next kernel begin
 * early (griddepcontrol.launch_dependents is PREEXIT), stays as it is, too.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What the code is for: nothing is known of newer machine code. */
#define SASS_SM 90

/*
 * A copy of @cubin, an ELF file, in which all kernels wait. Return: 0 with the copy, which has the
 * same size and becomes the caller's; -ENOTSUP if the kernels have to stay as they are; -EINVAL
 * when its headers can't be read; both with @error (if not NULL, at most @error_size bytes) telling
 * why; -ENOMEM.
 */
int sass_wait_first(uint8_t **ret, const uint8_t *cubin, size_t size, char *error,
		    size_t error_size);

/* Whether @cubin is such a copy. */
bool sass_is_rewritten(const uint8_t *cubin, size_t size);
