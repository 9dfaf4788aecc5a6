/*
 * injection.h: NVTX_INJECTION64_PATH, which names the library that NVTX loads when a program uses
 * it for the first time, and hands the program's ranges to: libsbeet.so where SBEET_MARK is set.
 *
 * It is set when libsbeet.so is loaded, before main(), unless another tool is named there already.
 * The program's children inherit it as they do LD_PRELOAD.
 */
#pragma once

/* The library of another tool that is named there; NULL: none is. */
const char *injection_other(void);
