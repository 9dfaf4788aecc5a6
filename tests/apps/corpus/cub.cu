/*
 * cub.cu: the device-wide algorithms of CUB, for their kernels: what becomes of them as twins (occupancy.py).
 * Compiled only, never run:
 *	nvcc -ptx -O3 -arch=compute_90 -o cub.ptx cub.cu
 */
#include <cub/cub.cuh>

struct Positive {
	__host__ __device__ bool operator()(int x) const {
		return x > 0;
	}
};

/* Instantiates them. */
void use_cub(void *temp, size_t bytes, int *in, int *out, float *values, float *sorted, int n, const int *offsets,
	     int segments, int *count) {
	cub::DeviceRadixSort::SortKeys(temp, bytes, in, out, n);
	cub::DeviceRadixSort::SortPairs(temp, bytes, in, out, values, sorted, n);
	cub::DeviceSegmentedSort::SortKeys(temp, bytes, in, out, n, segments, offsets, offsets + 1);
	cub::DeviceSegmentedRadixSort::SortKeys(temp, bytes, in, out, n, segments, offsets, offsets + 1);
	cub::DeviceSegmentedReduce::Sum(temp, bytes, in, out, segments, offsets, offsets + 1);
	cub::DeviceScan::ExclusiveSum(temp, bytes, in, out, n);
	cub::DeviceScan::ExclusiveSumByKey(temp, bytes, in, values, sorted, n);
	cub::DeviceSelect::If(temp, bytes, in, out, count, n, Positive());
	cub::DeviceSelect::Unique(temp, bytes, in, out, count, n);
	cub::DeviceReduce::ReduceByKey(temp, bytes, in, out, values, sorted, count, cuda::std::plus<>(), n);
	cub::DeviceRunLengthEncode::Encode(temp, bytes, in, out, count, count + 1, n);
	cub::DevicePartition::If(temp, bytes, in, out, count, n, Positive());
	cub::DeviceHistogram::HistogramEven(temp, bytes, values, out, 257, 0.0f, 1.0f, n);
	cub::DeviceReduce::Sum(temp, bytes, in, out, n);
	cub::DeviceMergeSort::SortKeys(temp, bytes, in, n, cuda::std::less<>());
}
