/*
 * cub.cu: algorithms of Thrust and CUB in a program that is compiled as by plain nvcc: PTX of an older architecture
 * alone. They ask which PTX it is, and choose by that what they launch. See ../../apps/guests/guest.h.
 */
#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>

#include "cuda-guest.h"

static const int sizes[] = {1, 1000, 300000};

template <typename F> static void for_sizes(const char *name, F f) {
	for (int n : sizes) {
		try {
			thrust::device_vector<int> v(n);

			thrust::sequence(v.begin(), v.end(), 1);
			TELL("%s %d: %lld\n", name, n, (long long)f(v, n));
		} catch (const std::exception &e) {
			TELL("FAILED: %s %d: %s\n", name, n, e.what());
		}
	}
}

static void reduce(void) {
	for_sizes("reduce", [](thrust::device_vector<int> &v, int) {
		return thrust::reduce(v.begin(), v.end(), 0ll);
	});
}

static void scan(void) {
	for_sizes("scan", [](thrust::device_vector<int> &v, int n) {
		thrust::device_vector<int> w(n);

		thrust::inclusive_scan(v.begin(), v.end(), w.begin());
		return (long long)w[n - 1] * 1000 + w[n / 2] % 1000;
	});
}

static void sort(void) {
	for_sizes("sort", [](thrust::device_vector<int> &v, int n) {
		thrust::sort(v.begin(), v.end(), thrust::greater<int>());
		return (long long)v[0] * 1000000 + v[n - 1];
	});
}

extern "C" const struct guest guests[] = {
	{"reduce", reduce},
	{"scan", scan},
	{"sort", sort},
	{NULL, NULL},
};
