/*
 * cuda-header-table.c: the facts of the cuda.h with which this is compiled; FACTS names the table.
 */
#include <cuda.h>
#include <stddef.h>

#include "cuda-header.h"

#define TEXT_OF(x)	   #x
#define TEXT(x)		   TEXT_OF(x)
#define NUMBER(name)	   {#name, (long long)(name), 0, ""},
#define NAME(name)	   {#name, 0, 0, TEXT(name)},
#define SIZE(type)	   {"sizeof " #type, sizeof(type), 0, ""},
#define MEMBER(type, name) {#type "." #name, offsetof(type, name), sizeof(((type *)0)->name), ""},

const struct cuda_fact FACTS[] = {
#include "cuda-header-table.inc"
	{NULL, 0, 0, NULL},
};
