/* sample.c: see sample.h. */
#include "client/live/sample.h"

#include <math.h>
#include <stdlib.h>

static int compare(const void *a, const void *b) {
	nsec_t x = *(const nsec_t *)a, y = *(const nsec_t *)b;

	return (x > y) - (x < y);
}

/* The two-sided 95 % point of Student's distribution. Beyond 30 degrees of freedom 1.96 + 2.4 / n
 * is too large by less than 0.2 %. */
static double student_95(size_t freedom) {
	static const double table[] = {
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201,	2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
		2.080,	2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
	};

	if (freedom <= sizeof(table) / sizeof(table[0])) {
		return table[freedom - 1];
	}
	return 1.96 + 2.4 / (double)freedom;
}

struct sample sample_of(nsec_t *times, size_t n) {
	struct sample s = {.n = n};
	double squares = 0;

	qsort(times, n, sizeof(*times), compare);
	for (size_t i = 0; i < n; i++) {
		s.mean += (double)times[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		squares += ((double)times[i] - s.mean) * ((double)times[i] - s.mean);
	}
	s.min = (double)times[0];
	s.max = (double)times[n - 1];
	s.p99 = (double)times[(n * 99 + 99) / 100 - 1];
	if (n > 1) {
		s.half = student_95(n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
	}
	return s;
}

struct line line_through(const double *x, const double *y, size_t n) {
	double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
	struct line line = {0};

	for (size_t i = 0; i < n; i++) {
		mean_x += x[i] / (double)n;
		mean_y += y[i] / (double)n;
	}
	for (size_t i = 0; i < n; i++) {
		xx += (x[i] - mean_x) * (x[i] - mean_x);
		xy += (x[i] - mean_x) * (y[i] - mean_y);
	}
	line.slope = xy / xx;
	line.at_0 = mean_y - line.slope * mean_x;
	for (size_t i = 0; i < n; i++) {
		double off = fabs((line.at_0 + line.slope * x[i] - y[i]) / y[i]);

		line.off = off > line.off ? off : line.off;
	}
	return line;
}
