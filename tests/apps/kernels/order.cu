/*
 * order.cu: a step that does not commute: what comes out tells in which order steps ran.
 */

/* The volatile accesses make it last. */
extern "C" __global__ void order_step(volatile unsigned *x, unsigned a, unsigned c, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		x[threadIdx.x] = x[threadIdx.x] * a + c;
	}
}
