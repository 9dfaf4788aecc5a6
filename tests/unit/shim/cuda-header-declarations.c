/*
 * cuda-header-declarations.c: every function that shim/cuda/cuda.h declares, declared again behind
 * the toolkit's header: the compiler refuses one whose type differs.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include "cuda-header-declarations.inc"
