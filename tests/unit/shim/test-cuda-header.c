/*
 * test-cuda-header.c: shim/cuda/cuda.h says what the toolkit's header says: the values of its
 * constants, sizes and members of its structures, and which variant a function's name means. The
 * types of functions are compared when this is built, see cuda-header-declarations.c.
 */
#include <stdio.h>
#include <string.h>

#include "cuda-header.h"

static int differs(const struct cuda_fact *ours, const struct cuda_fact *theirs) {
	if (strcmp(ours->what, theirs->what) == 0 && ours->number == theirs->number &&
	    ours->size == theirs->size && strcmp(ours->meaning, theirs->meaning) == 0) {
		return 0;
	}
	printf("%s: ours %lld (%lld) %s, the toolkit's %lld (%lld) %s\n", ours->what, ours->number,
	       ours->size, ours->meaning, theirs->number, theirs->size, theirs->meaning);
	return 1;
}

int main(void) {
	int n = 0, wrong = 0;

	while (facts_of_ours[n].what && facts_of_toolkit[n].what) {
		wrong += differs(&facts_of_ours[n], &facts_of_toolkit[n]);
		n++;
	}
	printf("%d facts compared, %d differ\n", n, wrong);
	return wrong > 0 || n < 200;
}
