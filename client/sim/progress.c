/* progress.c: see progress.h. */
#include "client/sim/progress.h"

#include <stdio.h>

void progress_show(void *userdata, size_t done, size_t all) {
	struct progress *p = userdata;
	nsec_t passed = nsec_now() - p->since;
	unsigned long long left = 0;

	if (done > 0) {
		left = (unsigned long long)((double)passed * (double)(all - done) / (double)done /
					    NSEC_PER_SEC);
	}
	p->shown = true;
	fprintf(stderr, "\r%zu of %zu %s, %zu %%", done, all, p->units, done * 100 / all);
	if (done > 0) {
		fprintf(stderr, ", %llu min %02llu s left", left / 60, left % 60);
	}
	fprintf(stderr, "\033[K");
	fflush(stderr);
}

void progress_end(const struct progress *p) {
	if (p->shown) {
		fprintf(stderr, "\r\033[K");
	}
}
