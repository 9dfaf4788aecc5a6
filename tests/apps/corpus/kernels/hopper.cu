/* hopper.cu: what came with sm_90, none of it for twins. nvcc: -arch=compute_90a */
#include <cooperative_groups.h>

#include "common.cuh"

namespace cg = cooperative_groups;

KERNEL __cluster_dims__(2) cluster_given(u32 *out) {
	out[self()] = 1;
}

KERNEL cluster_rank(u32 *out) {
	out[self()] = cg::this_cluster().block_rank();
}

KERNEL cluster_sync(u32 *out) {
	cg::this_cluster().sync();
	out[self()] = 1;
}

KERNEL cluster_memory(u32 *out) {
	__shared__ u32 s;
	u32 *other = cg::this_cluster().map_shared_rank(&s, 0);

	out[self()] = *other;
}

KERNEL memory_barrier(u32 *out) {
	__shared__ u64 bar;
	u32 b = (u32)__cvta_generic_to_shared(&bar);

	if (threadIdx.x == 0) {
		asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(b), "r"(blockDim.x));
	}
	__syncthreads();
	asm volatile("{\n\t.reg .b64 s;\n\tmbarrier.arrive.shared.b64 s, [%0];\n\t}" ::"r"(b));
	out[self()] = 1;
}

KERNEL bulk_copy(u32 *out, const u32 *in) {
	__shared__ alignas(16) u32 s[64];
	u32 b = (u32)__cvta_generic_to_shared(s);

	s[threadIdx.x % 64] = 1;
	asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(out), "r"(b));
	asm volatile("cp.async.bulk.commit_group;");
}

KERNEL __launch_bounds__(128) registers(u32 *out) {
	asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
	out[self()] = 1;
}

KERNEL dependent(u32 *out) {
	asm volatile("griddepcontrol.wait;" ::: "memory");
	out[self()] = 1;
	asm volatile("griddepcontrol.launch_dependents;");
}

KERNEL elected(u32 *out) {
	u32 leader = 0;

	asm volatile("{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\t@p mov.u32 %0, 1;\n\t}"
		     : "+r"(leader));
	out[self()] = __popc(__ballot_sync(0xffffffffu, leader));
}
