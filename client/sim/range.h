/*
 * range.h: ranges of numbers on the command line: LOW, LOW:HIGH or LOW:HIGH:STEP.
 */
#pragma once

/* In thousandths. */
struct range {
	unsigned low, high; /* low is at most high */
	unsigned step;	    /* 0: not given */
};

/* Decimal numbers from 0 with up to three places. One number stands for both ends. Return: 0;
 * -EINVAL (form); -ERANGE: the ends are in the wrong order. */
int range_parse(const char *text, struct range *ret);
