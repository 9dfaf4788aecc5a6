/*
 * green.h: a stream on a given number of SMs by the driver's own means, to compare with. Found by
 * dlsym: drivers before 12.4 and the simulated one have none.
 */
#pragma once

#include <cuda.h>

struct green {
	CUgreenCtx handle;
	CUstream stream;
	unsigned n_sms; /* at least what was asked for */
};

/* The least number of SMs from @n_sms on. Return: 0; -ENOTSUP: the driver can't. */
int green_init(struct green *g, CUdevice device, unsigned n_sms);
/* On @n_sms SMs from number @first on, of the smallest groups that don't take clusters apart:
 * others than those of another such row. Return: 0; -ENOTSUP; -EINVAL: they are not whole groups.
 */
int green_init_row(struct green *g, CUdevice device, unsigned first, unsigned n_sms);
void green_deinit(struct green *g);
