/*
 * cuda-header.h: what one cuda.h says of one thing. See test-cuda-header.c.
 */
#pragma once

struct cuda_fact {
	const char *what; /* NULL: the end */
	long long number;
	long long size;	     /* of a member, with number its offset */
	const char *meaning; /* what a name of a function stands for, else "" */
};

extern const struct cuda_fact facts_of_toolkit[];
extern const struct cuda_fact facts_of_ours[];
