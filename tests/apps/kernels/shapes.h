/*
 * shapes.h: block shapes and other numbers that a kernel and the program that launches it share.
 * C and CUDA C++ alike.
 */
#pragma once

#define VECADD_BLOCK 256

#define MATMUL_TILE 16

#define HISTOGRAM_BLOCK 128
#define HISTOGRAM_BINS	256

#define HOTSPOT_TILE 16 /* cells of a block's edge */

#define BFS_BLOCK     128
#define BFS_UNREACHED (-1)

#define REDUCE_BLOCK 256 /* eight warps: the second stage is one more shuffle */
#define REDUCE_GRID  32	 /* partial sums; at most one block's threads */
#define REDUCE_WARP  32

#define EARLY_BLOCK 128

#define VOLUME_X 8
#define VOLUME_Y 4
#define VOLUME_Z 4

#define COMPUTE_BLOCK	128
#define COMPUTE_SMS_MAX 256

#define STUBBORN_BLOCK 64
