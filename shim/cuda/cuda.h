/*
 * cuda.h: the driver API as far as sbeet uses it, for machines without the CUDA toolkit.
 *
 * Names, values and layouts are those of the toolkit's own header (CUDA 13.0), which the build
 * takes where there is one, and against which test-cuda-header compares this one. As there, most
 * names mean their newest variant, unless __CUDA_API_VERSION_INTERNAL is defined: then every name
 * is the exported one.
 */
#ifndef __cuda_cuda_h__
#define __cuda_cuda_h__

#include <stddef.h>
#include <stdint.h>

#define CUDA_VERSION 13000
#define CUDAAPI
#define CUDA_CB

typedef uint32_t cuuint32_t;
typedef uint64_t cuuint64_t;
typedef unsigned long long CUdeviceptr;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUlinkState_st *CUlinkState;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUextSemaphore_st *CUexternalSemaphore;
typedef struct CUgraphicsResource_st *CUgraphicsResource;

/* Only pointers to these are passed on. */
typedef struct CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS;
typedef struct CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS_st CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
typedef struct CUarrayMapInfo_st CUarrayMapInfo;
typedef struct CUDA_BATCH_MEM_OP_NODE_PARAMS_v1_st CUDA_BATCH_MEM_OP_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_SIGNAL_NODE_PARAMS_st CUDA_EXT_SEM_SIGNAL_NODE_PARAMS;
typedef struct CUDA_EXT_SEM_WAIT_NODE_PARAMS_st CUDA_EXT_SEM_WAIT_NODE_PARAMS;
typedef struct CUDA_HOST_NODE_PARAMS_st CUDA_HOST_NODE_PARAMS;
typedef struct CUDA_KERNEL_NODE_PARAMS_st CUDA_KERNEL_NODE_PARAMS_v1;
typedef struct CUDA_MEMSET_NODE_PARAMS_st CUDA_MEMSET_NODE_PARAMS;
typedef struct CUgraphExecUpdateResultInfo_st CUgraphExecUpdateResultInfo;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUmemDecompressParams_st CUmemDecompressParams;
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef union CUstreamBatchMemOpParams_union CUstreamBatchMemOpParams;
typedef struct CUDA_MEMCPY3D_BATCH_OP_st CUDA_MEMCPY3D_BATCH_OP;
typedef struct CUDA_LAUNCH_PARAMS_st CUDA_LAUNCH_PARAMS;

typedef struct CUctxCreateParams_st {
	CUexecAffinityParam *execAffinityParams;
	int numExecAffinityParams;
	void *cigParams;
} CUctxCreateParams;

typedef struct CUuuid_st {
	char bytes[16];
} CUuuid;

#define CU_STREAM_LEGACY     ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef enum cudaError_enum {
	CUDA_SUCCESS = 0,
	CUDA_ERROR_INVALID_VALUE = 1,
	CUDA_ERROR_OUT_OF_MEMORY = 2,
	CUDA_ERROR_NOT_INITIALIZED = 3,
	CUDA_ERROR_DEINITIALIZED = 4,
	CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
	CUDA_ERROR_NO_DEVICE = 100,
	CUDA_ERROR_INVALID_DEVICE = 101,
	CUDA_ERROR_INVALID_IMAGE = 200,
	CUDA_ERROR_INVALID_CONTEXT = 201,
	CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
	CUDA_ERROR_INVALID_PTX = 218,
	CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
	CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY = 224,
	CUDA_ERROR_INVALID_SOURCE = 300,
	CUDA_ERROR_FILE_NOT_FOUND = 301,
	CUDA_ERROR_INVALID_HANDLE = 400,
	CUDA_ERROR_ILLEGAL_STATE = 401,
	CUDA_ERROR_NOT_FOUND = 500,
	CUDA_ERROR_NOT_READY = 600,
	CUDA_ERROR_ILLEGAL_ADDRESS = 700,
	CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
	CUDA_ERROR_LAUNCH_TIMEOUT = 702,
	CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
	CUDA_ERROR_ASSERT = 710,
	CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
	CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713,
	CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
	CUDA_ERROR_MISALIGNED_ADDRESS = 716,
	CUDA_ERROR_LAUNCH_FAILED = 719,
	CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
	CUDA_ERROR_NOT_SUPPORTED = 801,
	CUDA_ERROR_SYSTEM_NOT_READY = 802,
	CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
	CUDA_ERROR_MPS_CONNECTION_FAILED = 805,
	CUDA_ERROR_MPS_RPC_FAILURE = 806,
	CUDA_ERROR_MPS_SERVER_NOT_READY = 807,
	CUDA_ERROR_MPS_MAX_CLIENTS_REACHED = 808,
	CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED = 809,
	CUDA_ERROR_MPS_CLIENT_TERMINATED = 810,
	CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900,
	CUDA_ERROR_STREAM_CAPTURE_INVALIDATED = 901,
	CUDA_ERROR_STREAM_CAPTURE_MERGE = 902,
	CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,
	CUDA_ERROR_STREAM_CAPTURE_UNJOINED = 904,
	CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
	CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
	CUDA_ERROR_CAPTURED_EVENT = 907,
	CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
	CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
	CUDA_ERROR_INVALID_RESOURCE_TYPE = 914,
	CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION = 915,
	CUDA_ERROR_UNKNOWN = 999,
} CUresult;

typedef enum CUdevice_attribute_enum {
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X = 2,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y = 3,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z = 4,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X = 5,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y = 6,
	CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z = 7,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
	CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY = 9,
	CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
	CU_DEVICE_ATTRIBUTE_MAX_PITCH = 11,
	CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK = 12,
	CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
	CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT = 14,
	CU_DEVICE_ATTRIBUTE_GPU_OVERLAP = 15,
	CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
	CU_DEVICE_ATTRIBUTE_INTEGRATED = 18,
	CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY = 19,
	CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS = 31,
	CU_DEVICE_ATTRIBUTE_PCI_BUS_ID = 33,
	CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
	CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
	CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
	CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
	CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT = 40,
	CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING = 41,
	CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT = 51,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
	CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
	CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED = 78,
	CU_DEVICE_ATTRIBUTE_GLOBAL_L1_CACHE_SUPPORTED = 79,
	CU_DEVICE_ATTRIBUTE_LOCAL_L1_CACHE_SUPPORTED = 80,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
	CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
	CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY = 83,
	CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED = 90,
	CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM = 91,
	CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH = 95,
	CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
	CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
	CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
	CU_DEVICE_ATTRIBUTE_MAX = 148,
} CUdevice_attribute;

typedef enum CUfunction_attribute_enum {
	CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
	CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
	CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
	CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
	CU_FUNC_ATTRIBUTE_PTX_VERSION = 5,
	CU_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
	CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
	CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
	CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH = 11,
	CU_FUNC_ATTRIBUTE_MAX = 16,
} CUfunction_attribute;

typedef enum CUfunc_cache_enum {
	CU_FUNC_CACHE_PREFER_NONE = 0,
	CU_FUNC_CACHE_PREFER_SHARED = 1,
	CU_FUNC_CACHE_PREFER_L1 = 2,
	CU_FUNC_CACHE_PREFER_EQUAL = 3,
} CUfunc_cache;

typedef enum CUfunctionLoadingState_enum {
	CU_FUNCTION_LOADING_STATE_UNLOADED = 0,
	CU_FUNCTION_LOADING_STATE_LOADED = 1,
} CUfunctionLoadingState;

typedef enum CUmoduleLoadingMode_enum {
	CU_MODULE_EAGER_LOADING = 1,
	CU_MODULE_LAZY_LOADING = 2,
} CUmoduleLoadingMode;

typedef enum CUlimit_enum {
	CU_LIMIT_STACK_SIZE = 0,
	CU_LIMIT_PRINTF_FIFO_SIZE = 1,
	CU_LIMIT_MALLOC_HEAP_SIZE = 2,
	CU_LIMIT_MAX_L2_FETCH_GRANULARITY = 5,
	CU_LIMIT_MAX = 10,
} CUlimit;

typedef enum CUpointer_attribute_enum {
	CU_POINTER_ATTRIBUTE_CONTEXT = 1,
	CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
	CU_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
	CU_POINTER_ATTRIBUTE_HOST_POINTER = 4,
	CU_POINTER_ATTRIBUTE_IS_MANAGED = 8,
	CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
	CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
	CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
} CUpointer_attribute;

typedef enum CUmemorytype_enum {
	CU_MEMORYTYPE_HOST = 1,
	CU_MEMORYTYPE_DEVICE = 2,
	CU_MEMORYTYPE_ARRAY = 3,
	CU_MEMORYTYPE_UNIFIED = 4,
} CUmemorytype;

typedef enum CUjit_option_enum {
	CU_JIT_MAX_REGISTERS = 0,
	CU_JIT_THREADS_PER_BLOCK = 1,
	CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
	CU_JIT_ERROR_LOG_BUFFER = 5,
	CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
	CU_JIT_OPTIMIZATION_LEVEL = 7,
	CU_JIT_TARGET_FROM_CUCONTEXT = 8,
	CU_JIT_TARGET = 9,
	CU_JIT_GENERATE_DEBUG_INFO = 11,
	CU_JIT_LOG_VERBOSE = 12,
	CU_JIT_CACHE_MODE = 14,
	CU_JIT_MIN_CTA_PER_SM = 31,
	CU_JIT_MAX_THREADS_PER_BLOCK = 32,
	CU_JIT_OVERRIDE_DIRECTIVE_VALUES = 33,
} CUjit_option;

typedef enum CUjitInputType_enum {
	CU_JIT_INPUT_CUBIN = 0,
	CU_JIT_INPUT_PTX = 1,
	CU_JIT_INPUT_FATBINARY = 2,
	CU_JIT_INPUT_OBJECT = 3,
	CU_JIT_INPUT_LIBRARY = 4,
} CUjitInputType;

typedef enum CUlibraryOption_enum {
	CU_LIBRARY_BINARY_IS_PRESERVED = 1,
} CUlibraryOption;

typedef enum CUstream_flags_enum {
	CU_STREAM_DEFAULT = 0,
	CU_STREAM_NON_BLOCKING = 1,
} CUstream_flags;

enum {
	CU_STREAM_WAIT_VALUE_GEQ = 0,
	CU_STREAM_WAIT_VALUE_EQ = 1,
	CU_STREAM_WAIT_VALUE_AND = 2,
	CU_STREAM_WAIT_VALUE_NOR = 3,
};

enum {
	CU_STREAM_WRITE_VALUE_DEFAULT = 0,
};

enum {
	CU_MEMHOSTALLOC_PORTABLE = 1,
	CU_MEMHOSTALLOC_DEVICEMAP = 2,
	CU_MEMHOSTALLOC_WRITECOMBINED = 4,
	CU_MEMHOSTREGISTER_DEVICEMAP = 2,
};

typedef enum CUevent_flags_enum {
	CU_EVENT_DEFAULT = 0,
	CU_EVENT_BLOCKING_SYNC = 1,
	CU_EVENT_DISABLE_TIMING = 2,
	CU_EVENT_INTERPROCESS = 4,
} CUevent_flags;

typedef struct CUipcEventHandle_st {
	char reserved[64];
} CUipcEventHandle;

typedef enum CUevent_record_flags_enum {
	CU_EVENT_RECORD_DEFAULT = 0,
	CU_EVENT_RECORD_EXTERNAL = 1,
} CUevent_record_flags;

typedef enum CUstreamCaptureStatus_enum {
	CU_STREAM_CAPTURE_STATUS_NONE = 0,
	CU_STREAM_CAPTURE_STATUS_ACTIVE = 1,
	CU_STREAM_CAPTURE_STATUS_INVALIDATED = 2,
} CUstreamCaptureStatus;

typedef enum CUstreamCaptureMode_enum {
	CU_STREAM_CAPTURE_MODE_GLOBAL = 0,
	CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1,
	CU_STREAM_CAPTURE_MODE_RELAXED = 2,
} CUstreamCaptureMode;

typedef enum CUgraphNodeType_enum {
	CU_GRAPH_NODE_TYPE_KERNEL = 0,
	CU_GRAPH_NODE_TYPE_MEMCPY = 1,
	CU_GRAPH_NODE_TYPE_MEMSET = 2,
	CU_GRAPH_NODE_TYPE_HOST = 3,
	CU_GRAPH_NODE_TYPE_GRAPH = 4,
	CU_GRAPH_NODE_TYPE_EMPTY = 5,
	CU_GRAPH_NODE_TYPE_WAIT_EVENT = 6,
	CU_GRAPH_NODE_TYPE_EVENT_RECORD = 7,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL = 8,
	CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT = 9,
	CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
	CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
	CU_GRAPH_NODE_TYPE_BATCH_MEM_OP = 12,
	CU_GRAPH_NODE_TYPE_CONDITIONAL = 13,
} CUgraphNodeType;

typedef enum CUgraphInstantiate_flags_enum {
	CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH = 1,
	CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD = 2,
	CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH = 4,
	CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY = 8,
} CUgraphInstantiate_flags;

typedef enum CUgraphInstantiateResult_enum {
	CUDA_GRAPH_INSTANTIATE_SUCCESS = 0,
} CUgraphInstantiateResult;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
	cuuint64_t flags;
	CUstream hUploadStream;
	CUgraphNode hErrNode_out;
	CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef enum CUgraphExecUpdateResult_enum {
	CU_GRAPH_EXEC_UPDATE_SUCCESS = 0,
} CUgraphExecUpdateResult;

typedef enum CUlaunchAttributeID_enum {
	CU_LAUNCH_ATTRIBUTE_IGNORE = 0,
	CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW = 1,
	CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
	CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY = 3,
	CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
	CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT = 7,
	CU_LAUNCH_ATTRIBUTE_PRIORITY = 8,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP = 9,
	CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN = 10,
	CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT = 12,
} CUlaunchAttributeID;

typedef enum CUdriverProcAddressQueryResult_enum {
	CU_GET_PROC_ADDRESS_SUCCESS = 0,
	CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
	CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
} CUdriverProcAddressQueryResult;

typedef enum CUdriverProcAddress_flags_enum {
	CU_GET_PROC_ADDRESS_DEFAULT = 0,
	CU_GET_PROC_ADDRESS_LEGACY_STREAM = 1,
	CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM = 2,
} CUdriverProcAddress_flags;

#define CU_LAUNCH_PARAM_END	       ((void *)0x0)
#define CU_LAUNCH_PARAM_BUFFER_POINTER ((void *)0x1)
#define CU_LAUNCH_PARAM_BUFFER_SIZE    ((void *)0x2)

typedef size_t(CUDA_CB *CUoccupancyB2DSize)(int block_size);
typedef void(CUDA_CB *CUhostFn)(void *data);
typedef void(CUDA_CB *CUstreamCallback)(CUstream stream, CUresult status, void *data);

typedef union CUlaunchAttributeValue_union {
	char pad[64];
	int cooperative;
	struct {
		unsigned x, y, z;
	} clusterDim;
	int programmaticStreamSerializationAllowed;
	struct {
		CUevent event;
		int flags, triggerAtBlockStart;
	} programmaticEvent;
	struct {
		CUevent event;
		int flags;
	} launchCompletionEvent;
	int priority;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
	CUlaunchAttributeID id;
	char pad[8 - sizeof(CUlaunchAttributeID)];
	CUlaunchAttributeValue value __attribute__((aligned(8)));
} CUlaunchAttribute;

typedef struct CUlaunchConfig_st {
	unsigned gridDimX, gridDimY, gridDimZ;
	unsigned blockDimX, blockDimY, blockDimZ;
	unsigned sharedMemBytes;
	CUstream hStream;
	CUlaunchAttribute *attrs;
	unsigned numAttrs;
} CUlaunchConfig;

typedef struct CUDA_KERNEL_NODE_PARAMS_v2_st {
	CUfunction func;
	unsigned gridDimX, gridDimY, gridDimZ;
	unsigned blockDimX, blockDimY, blockDimZ;
	unsigned sharedMemBytes;
	void **kernelParams;
	void **extra;
	CUkernel kern;
	CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_EVENT_RECORD_NODE_PARAMS_st {
	CUevent event;
} CUDA_EVENT_RECORD_NODE_PARAMS;

typedef struct CUgraphNodeParams_st {
	CUgraphNodeType type;
	int type_pad[3];
	CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
	char rest_pad[240 - sizeof(CUDA_EVENT_RECORD_NODE_PARAMS)];
} CUgraphNodeParams;

typedef CUlaunchAttributeID CUkernelNodeAttrID;
typedef CUlaunchAttributeValue CUkernelNodeAttrValue;
typedef CUlaunchAttributeID CUstreamAttrID;
typedef CUlaunchAttributeValue CUstreamAttrValue;

#define CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW   (CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)
#define CU_STREAM_ATTRIBUTE_SYNCHRONIZATION_POLICY (CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY)
#define CU_STREAM_ATTRIBUTE_PRIORITY		   (CU_LAUNCH_ATTRIBUTE_PRIORITY)
#define CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP	   (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP)
#define CU_STREAM_ATTRIBUTE_MEM_SYNC_DOMAIN	   (CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN)

typedef enum CUmemLocationType_enum {
	CU_MEM_LOCATION_TYPE_INVALID = 0,
	CU_MEM_LOCATION_TYPE_DEVICE = 1,
	CU_MEM_LOCATION_TYPE_HOST = 2,
} CUmemLocationType;

typedef struct CUmemLocation_st {
	CUmemLocationType type;
	int id;
} CUmemLocation;

typedef enum {
	CU_DEV_RESOURCE_TYPE_INVALID = 0,
	CU_DEV_RESOURCE_TYPE_SM = 1,
} CUdevResourceType;

typedef struct CUdevSmResource_st {
	unsigned smCount, minSmPartitionSize, smCoscheduledAlignment;
} CUdevSmResource;

typedef struct CUdevResource_st {
	CUdevResourceType type;
	unsigned char internal_pad[92];
	CUdevSmResource sm;
	unsigned char rest_pad[48 - sizeof(CUdevSmResource)];
} CUdevResource;

typedef enum {
	CU_GREEN_CTX_DEFAULT_STREAM = 1,
} CUgreenCtxCreate_flags;

typedef enum {
	CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING = 1,
	CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE = 2,
} CUdevSmResourceSplit_flags;

typedef struct CUDA_MEMCPY2D_st {
	size_t srcXInBytes, srcY;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	size_t srcPitch;
	size_t dstXInBytes, dstY;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	size_t dstPitch;
	size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	void *reserved0;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	void *reserved1;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_MEMCPY3D_PEER_st {
	size_t srcXInBytes, srcY, srcZ, srcLOD;
	CUmemorytype srcMemoryType;
	const void *srcHost;
	CUdeviceptr srcDevice;
	CUarray srcArray;
	CUcontext srcContext;
	size_t srcPitch, srcHeight;
	size_t dstXInBytes, dstY, dstZ, dstLOD;
	CUmemorytype dstMemoryType;
	void *dstHost;
	CUdeviceptr dstDevice;
	CUarray dstArray;
	CUcontext dstContext;
	size_t dstPitch, dstHeight;
	size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D_PEER;

#ifndef __CUDA_API_VERSION_INTERNAL
#define cuCtxCreate		       cuCtxCreate_v4
#define cuCtxDestroy		       cuCtxDestroy_v2
#define cuCtxPopCurrent		       cuCtxPopCurrent_v2
#define cuCtxPushCurrent	       cuCtxPushCurrent_v2
#define cuDeviceGetUuid		       cuDeviceGetUuid_v2
#define cuDevicePrimaryCtxRelease      cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset	       cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags     cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceTotalMem	       cuDeviceTotalMem_v2
#define cuEventDestroy		       cuEventDestroy_v2
#define cuEventElapsedTime	       cuEventElapsedTime_v2
#define cuGetProcAddress	       cuGetProcAddress_v2
#define cuGraphAddNode		       cuGraphAddNode_v2
#define cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2
#define cuGraphExecUpdate	       cuGraphExecUpdate_v2
#define cuGraphInstantiate	       cuGraphInstantiateWithFlags
#define cuGraphKernelNodeGetParams     cuGraphKernelNodeGetParams_v2
#define cuGraphKernelNodeSetParams     cuGraphKernelNodeSetParams_v2
#define cuLinkAddData		       cuLinkAddData_v2
#define cuLinkAddFile		       cuLinkAddFile_v2
#define cuLinkCreate		       cuLinkCreate_v2
#define cuMemAlloc		       cuMemAlloc_v2
#define cuMemAllocHost		       cuMemAllocHost_v2
#define cuMemAllocPitch		       cuMemAllocPitch_v2
#define cuMemFree		       cuMemFree_v2
#define cuMemGetAddressRange	       cuMemGetAddressRange_v2
#define cuMemGetInfo		       cuMemGetInfo_v2
#define cuMemHostGetDevicePointer      cuMemHostGetDevicePointer_v2
#define cuMemHostRegister	       cuMemHostRegister_v2
#define cuMemPrefetchAsync	       cuMemPrefetchAsync_v2
#define cuMemcpy2D		       cuMemcpy2D_v2
#define cuMemcpy2DAsync		       cuMemcpy2DAsync_v2
#define cuMemcpy2DUnaligned	       cuMemcpy2DUnaligned_v2
#define cuMemcpy3D		       cuMemcpy3D_v2
#define cuMemcpy3DAsync		       cuMemcpy3DAsync_v2
#define cuMemcpy3DBatchAsync	       cuMemcpy3DBatchAsync_v2
#define cuMemcpyAtoA		       cuMemcpyAtoA_v2
#define cuMemcpyAtoD		       cuMemcpyAtoD_v2
#define cuMemcpyAtoH		       cuMemcpyAtoH_v2
#define cuMemcpyAtoHAsync	       cuMemcpyAtoHAsync_v2
#define cuMemcpyBatchAsync	       cuMemcpyBatchAsync_v2
#define cuMemcpyDtoA		       cuMemcpyDtoA_v2
#define cuMemcpyDtoD		       cuMemcpyDtoD_v2
#define cuMemcpyDtoDAsync	       cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH		       cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync	       cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoA		       cuMemcpyHtoA_v2
#define cuMemcpyHtoAAsync	       cuMemcpyHtoAAsync_v2
#define cuMemcpyHtoD		       cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync	       cuMemcpyHtoDAsync_v2
#define cuMemsetD16		       cuMemsetD16_v2
#define cuMemsetD2D16		       cuMemsetD2D16_v2
#define cuMemsetD2D32		       cuMemsetD2D32_v2
#define cuMemsetD2D8		       cuMemsetD2D8_v2
#define cuMemsetD32		       cuMemsetD32_v2
#define cuMemsetD8		       cuMemsetD8_v2
#define cuModuleGetGlobal	       cuModuleGetGlobal_v2
#define cuStreamBatchMemOp	       cuStreamBatchMemOp_v2
#define cuStreamBeginCapture	       cuStreamBeginCapture_v2
#define cuStreamDestroy		       cuStreamDestroy_v2
#define cuStreamWaitValue32	       cuStreamWaitValue32_v2
#define cuStreamWaitValue64	       cuStreamWaitValue64_v2
#define cuStreamWriteValue32	       cuStreamWriteValue32_v2
#define cuStreamWriteValue64	       cuStreamWriteValue64_v2
#else
CUresult CUDAAPI cuCtxDestroy(CUcontext);
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *, CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice);
CUresult CUDAAPI cuEventDestroy(CUevent);
CUresult CUDAAPI cuEventElapsedTime(float *, CUevent, CUevent);
CUresult CUDAAPI cuGetProcAddress(const char *, void **, int, cuuint64_t);
CUresult CUDAAPI cuGraphAddNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				CUgraphNodeParams *);
CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec, CUgraphNode,
						const CUDA_KERNEL_NODE_PARAMS_v1 *);
CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec, CUgraph, CUgraphNode *, CUgraphExecUpdateResult *);
CUresult CUDAAPI cuGraphInstantiate(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
CUresult CUDAAPI cuLinkAddData(CUlinkState, CUjitInputType, void *, size_t, const char *, unsigned,
			       CUjit_option *, void **);
CUresult CUDAAPI cuLinkAddFile(CUlinkState, CUjitInputType, const char *, unsigned, CUjit_option *,
			       void **);
CUresult CUDAAPI cuLinkCreate(unsigned, CUjit_option *, void **, CUlinkState *);
CUresult CUDAAPI cuMemPrefetchAsync(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult CUDAAPI cuMemcpy3DBatchAsync(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *,
				      unsigned long long, CUstream);
CUresult CUDAAPI cuMemcpyBatchAsync(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
				    CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream);
CUresult CUDAAPI cuStreamBatchMemOp(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
CUresult CUDAAPI cuStreamBeginCapture(CUstream);
CUresult CUDAAPI cuStreamDestroy(CUstream);
CUresult CUDAAPI cuStreamWaitValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue64(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue32(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue64(CUstream, CUdeviceptr, cuuint64_t, unsigned);
#endif

CUresult CUDAAPI cuCtxAttach(CUcontext *, unsigned);
CUresult CUDAAPI cuCtxCreate_v2(CUcontext *, unsigned, CUdevice);
CUresult CUDAAPI cuCtxCreate_v3(CUcontext *, CUexecAffinityParam *, int, unsigned, CUdevice);
CUresult CUDAAPI cuCtxCreate_v4(CUcontext *, CUctxCreateParams *, unsigned, CUdevice);
CUresult CUDAAPI cuCtxDestroy_v2(CUcontext);
CUresult CUDAAPI cuCtxDetach(CUcontext);
CUresult CUDAAPI cuCtxFromGreenCtx(CUcontext *, CUgreenCtx);
CUresult CUDAAPI cuCtxGetApiVersion(CUcontext, unsigned *);
CUresult CUDAAPI cuCtxGetCacheConfig(CUfunc_cache *);
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *);
CUresult CUDAAPI cuCtxGetDevice(CUdevice *);
CUresult CUDAAPI cuCtxGetFlags(unsigned *);
CUresult CUDAAPI cuCtxGetId(CUcontext, unsigned long long *);
CUresult CUDAAPI cuCtxGetLimit(size_t *, CUlimit);
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *, int *);
CUresult CUDAAPI cuCtxPopCurrent_v2(CUcontext *);
CUresult CUDAAPI cuCtxPushCurrent_v2(CUcontext);
CUresult CUDAAPI cuCtxSetCacheConfig(CUfunc_cache);
CUresult CUDAAPI cuCtxRecordEvent(CUcontext, CUevent);
CUresult CUDAAPI cuCtxSetCurrent(CUcontext);
CUresult CUDAAPI cuCtxSetLimit(CUlimit, size_t);
CUresult CUDAAPI cuCtxSynchronize(void);
CUresult CUDAAPI cuCtxSynchronize_v2(CUcontext);
CUresult CUDAAPI cuDevResourceGenerateDesc(CUdevResourceDesc *, CUdevResource *, unsigned);
CUresult CUDAAPI cuDevSmResourceSplitByCount(CUdevResource *, unsigned *, const CUdevResource *,
					     CUdevResource *, unsigned, unsigned);
CUresult CUDAAPI cuDeviceCanAccessPeer(int *, CUdevice, CUdevice);
CUresult CUDAAPI cuDeviceComputeCapability(int *, int *, CUdevice);
CUresult CUDAAPI cuDeviceGet(CUdevice *, int);
CUresult CUDAAPI cuDeviceGetAttribute(int *, CUdevice_attribute, CUdevice);
CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice *, const char *);
CUresult CUDAAPI cuDeviceGetCount(int *);
CUresult CUDAAPI cuDeviceGetDevResource(CUdevice, CUdevResource *, CUdevResourceType);
CUresult CUDAAPI cuDeviceGetName(char *, int, CUdevice);
CUresult CUDAAPI cuDeviceGetPCIBusId(char *, int, CUdevice);
CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid *, CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice, unsigned *, int *);
CUresult CUDAAPI cuDevicePrimaryCtxRelease_v2(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxReset_v2(CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *, CUdevice);
CUresult CUDAAPI cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned);
CUresult CUDAAPI cuDeviceTotalMem_v2(size_t *, CUdevice);
CUresult CUDAAPI cuDriverGetVersion(int *);
CUresult CUDAAPI cuEventCreate(CUevent *, unsigned);
CUresult CUDAAPI cuEventDestroy_v2(CUevent);
CUresult CUDAAPI cuEventElapsedTime_v2(float *, CUevent, CUevent);
CUresult CUDAAPI cuEventQuery(CUevent);
CUresult CUDAAPI cuEventRecord(CUevent, CUstream);
CUresult CUDAAPI cuEventRecordWithFlags(CUevent, CUstream, unsigned);
CUresult CUDAAPI cuEventRecordWithFlags_ptsz(CUevent, CUstream, unsigned);
CUresult CUDAAPI cuEventRecord_ptsz(CUevent, CUstream);
CUresult CUDAAPI cuEventSynchronize(CUevent);
CUresult CUDAAPI cuFuncGetAttribute(int *, CUfunction_attribute, CUfunction);
CUresult CUDAAPI cuFuncGetModule(CUmodule *, CUfunction);
CUresult CUDAAPI cuFuncGetName(const char **, CUfunction);
CUresult CUDAAPI cuFuncGetParamInfo(CUfunction, size_t, size_t *, size_t *);
CUresult CUDAAPI cuFuncIsLoaded(CUfunctionLoadingState *, CUfunction);
CUresult CUDAAPI cuFuncLoad(CUfunction);
CUresult CUDAAPI cuFuncSetAttribute(CUfunction, CUfunction_attribute, int);
CUresult CUDAAPI cuFuncSetCacheConfig(CUfunction, CUfunc_cache);
CUresult CUDAAPI cuGetErrorName(CUresult, const char **);
CUresult CUDAAPI cuGetErrorString(CUresult, const char **);
CUresult CUDAAPI cuGetProcAddress_v2(const char *, void **, int, cuuint64_t,
				     CUdriverProcAddressQueryResult *);
CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
					   CUevent);
CUresult CUDAAPI cuGraphAddNode_v2(CUgraphNode *, CUgraph, const CUgraphNode *,
				   const CUgraphEdgeData *, size_t, CUgraphNodeParams *);
CUresult CUDAAPI cuGraphChildGraphNodeGetGraph(CUgraphNode, CUgraph *);
CUresult CUDAAPI cuGraphClone(CUgraph *, CUgraph);
CUresult CUDAAPI cuGraphDestroy(CUgraph);
CUresult CUDAAPI cuGraphEventRecordNodeSetEvent(CUgraphNode, CUevent);
CUresult CUDAAPI cuGraphExecBatchMemOpNodeSetParams(CUgraphExec, CUgraphNode,
						    const CUDA_BATCH_MEM_OP_NODE_PARAMS *);
CUresult CUDAAPI cuGraphExecChildGraphNodeSetParams(CUgraphExec, CUgraphNode, CUgraph);
CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec);
CUresult CUDAAPI cuGraphExecEventRecordNodeSetEvent(CUgraphExec, CUgraphNode, CUevent);
CUresult CUDAAPI cuGraphExecEventWaitNodeSetEvent(CUgraphExec, CUgraphNode, CUevent);
CUresult CUDAAPI cuGraphExecExternalSemaphoresSignalNodeSetParams(
	CUgraphExec, CUgraphNode, const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS *);
CUresult CUDAAPI cuGraphExecExternalSemaphoresWaitNodeSetParams(
	CUgraphExec, CUgraphNode, const CUDA_EXT_SEM_WAIT_NODE_PARAMS *);
CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec, CUgraphNode,
					      const CUDA_HOST_NODE_PARAMS *);
CUresult CUDAAPI cuGraphExecKernelNodeSetParams_v2(CUgraphExec, CUgraphNode,
						   const CUDA_KERNEL_NODE_PARAMS *);
CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec, CUgraphNode, const CUDA_MEMCPY3D *,
						CUcontext);
CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec, CUgraphNode,
						const CUDA_MEMSET_NODE_PARAMS *, CUcontext);
CUresult CUDAAPI cuGraphExecNodeSetParams(CUgraphExec, CUgraphNode, CUgraphNodeParams *);
CUresult CUDAAPI cuGraphExecUpdate_v2(CUgraphExec, CUgraph, CUgraphExecUpdateResultInfo *);
CUresult CUDAAPI cuGraphGetNodes(CUgraph, CUgraphNode *, size_t *);
CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *, CUgraph, unsigned long long);
CUresult CUDAAPI cuGraphInstantiateWithParams(CUgraphExec *, CUgraph,
					      CUDA_GRAPH_INSTANTIATE_PARAMS *);
CUresult CUDAAPI cuGraphInstantiateWithParams_ptsz(CUgraphExec *, CUgraph,
						   CUDA_GRAPH_INSTANTIATE_PARAMS *);
CUresult CUDAAPI cuGraphInstantiate_v2(CUgraphExec *, CUgraph, CUgraphNode *, char *, size_t);
CUresult CUDAAPI cuGraphKernelNodeGetAttribute(CUgraphNode, CUkernelNodeAttrID,
					       CUkernelNodeAttrValue *);
CUresult CUDAAPI cuGraphKernelNodeGetParams_v2(CUgraphNode, CUDA_KERNEL_NODE_PARAMS *);
CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode, CUkernelNodeAttrID,
					       const CUkernelNodeAttrValue *);
CUresult CUDAAPI cuGraphKernelNodeSetParams_v2(CUgraphNode, const CUDA_KERNEL_NODE_PARAMS *);
CUresult CUDAAPI cuGraphLaunch(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphLaunch_ptsz(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphMemcpyNodeGetParams(CUgraphNode, CUDA_MEMCPY3D *);
CUresult CUDAAPI cuGraphNodeGetType(CUgraphNode, CUgraphNodeType *);
CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec, CUgraphNode, unsigned);
CUresult CUDAAPI cuGraphNodeSetParams(CUgraphNode, CUgraphNodeParams *);
CUresult CUDAAPI cuGraphUpload(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphUpload_ptsz(CUgraphExec, CUstream);
CUresult CUDAAPI cuGraphicsMapResources(unsigned, CUgraphicsResource *, CUstream);
CUresult CUDAAPI cuGraphicsMapResources_ptsz(unsigned, CUgraphicsResource *, CUstream);
CUresult CUDAAPI cuGraphicsUnmapResources(unsigned, CUgraphicsResource *, CUstream);
CUresult CUDAAPI cuGraphicsUnmapResources_ptsz(unsigned, CUgraphicsResource *, CUstream);
CUresult CUDAAPI cuGreenCtxCreate(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned);
CUresult CUDAAPI cuGreenCtxDestroy(CUgreenCtx);
CUresult CUDAAPI cuGreenCtxGetDevResource(CUgreenCtx, CUdevResource *, CUdevResourceType);
CUresult CUDAAPI cuGreenCtxRecordEvent(CUgreenCtx, CUevent);
CUresult CUDAAPI cuGreenCtxStreamCreate(CUstream *, CUgreenCtx, unsigned, int);
CUresult CUDAAPI cuInit(unsigned);
CUresult CUDAAPI cuIpcGetEventHandle(CUipcEventHandle *, CUevent);
CUresult CUDAAPI cuIpcOpenEventHandle(CUevent *, CUipcEventHandle);
CUresult CUDAAPI cuKernelGetAttribute(int *, CUfunction_attribute, CUkernel, CUdevice);
CUresult CUDAAPI cuKernelGetFunction(CUfunction *, CUkernel);
CUresult CUDAAPI cuKernelGetLibrary(CUlibrary *, CUkernel);
CUresult CUDAAPI cuKernelGetName(const char **, CUkernel);
CUresult CUDAAPI cuKernelGetParamInfo(CUkernel, size_t, size_t *, size_t *);
CUresult CUDAAPI cuKernelSetAttribute(CUfunction_attribute, int, CUkernel, CUdevice);
CUresult CUDAAPI cuKernelSetCacheConfig(CUkernel, CUfunc_cache, CUdevice);
CUresult CUDAAPI cuLaunch(CUfunction);
CUresult CUDAAPI cuLaunchCooperativeKernel(CUfunction, unsigned, unsigned, unsigned, unsigned,
					   unsigned, unsigned, unsigned, CUstream, void **);
CUresult CUDAAPI cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *, unsigned, unsigned);
CUresult CUDAAPI cuLaunchCooperativeKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned,
						unsigned, unsigned, unsigned, CUstream, void **);
CUresult CUDAAPI cuLaunchGrid(CUfunction, int, int);
CUresult CUDAAPI cuLaunchGridAsync(CUfunction, int, int, CUstream);
CUresult CUDAAPI cuLaunchHostFunc(CUstream, CUhostFn, void *);
CUresult CUDAAPI cuLaunchHostFunc_ptsz(CUstream, CUhostFn, void *);
CUresult CUDAAPI cuLaunchKernel(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
				unsigned, unsigned, CUstream, void **, void **);
CUresult CUDAAPI cuLaunchKernelEx(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult CUDAAPI cuLaunchKernelEx_ptsz(const CUlaunchConfig *, CUfunction, void **, void **);
CUresult CUDAAPI cuLaunchKernel_ptsz(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,
				     unsigned, unsigned, CUstream, void **, void **);
CUresult CUDAAPI cuLibraryEnumerateKernels(CUkernel *, unsigned, CUlibrary);
CUresult CUDAAPI cuLibraryGetGlobal(CUdeviceptr *, size_t *, CUlibrary, const char *);
CUresult CUDAAPI cuLibraryGetKernel(CUkernel *, CUlibrary, const char *);
CUresult CUDAAPI cuLibraryGetKernelCount(unsigned *, CUlibrary);
CUresult CUDAAPI cuLibraryGetModule(CUmodule *, CUlibrary);
CUresult CUDAAPI cuLibraryLoadData(CUlibrary *, const void *, CUjit_option *, void **, unsigned,
				   CUlibraryOption *, void **, unsigned);
CUresult CUDAAPI cuLibraryLoadFromFile(CUlibrary *, const char *, CUjit_option *, void **, unsigned,
				       CUlibraryOption *, void **, unsigned);
CUresult CUDAAPI cuLibraryUnload(CUlibrary);
CUresult CUDAAPI cuLinkAddData_v2(CUlinkState, CUjitInputType, void *, size_t, const char *,
				  unsigned, CUjit_option *, void **);
CUresult CUDAAPI cuLinkAddFile_v2(CUlinkState, CUjitInputType, const char *, unsigned,
				  CUjit_option *, void **);
CUresult CUDAAPI cuLinkComplete(CUlinkState, void **, size_t *);
CUresult CUDAAPI cuLinkCreate_v2(unsigned, CUjit_option *, void **, CUlinkState *);
CUresult CUDAAPI cuLinkDestroy(CUlinkState);
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *, size_t, CUstream);
CUresult CUDAAPI cuMemAllocAsync_ptsz(CUdeviceptr *, size_t, CUstream);
CUresult CUDAAPI cuMemAllocFromPoolAsync(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult CUDAAPI cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *, size_t, CUmemoryPool, CUstream);
CUresult CUDAAPI cuMemAllocHost_v2(void **, size_t);
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *, size_t, unsigned);
CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr *, size_t *, size_t, size_t, unsigned);
CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr *, size_t);
CUresult CUDAAPI cuMemBatchDecompressAsync(CUmemDecompressParams *, size_t, unsigned, size_t *,
					   CUstream);
CUresult CUDAAPI cuMemBatchDecompressAsync_ptsz(CUmemDecompressParams *, size_t, unsigned, size_t *,
						CUstream);
CUresult CUDAAPI cuMemDiscardAndPrefetchBatchAsync(CUdeviceptr *, size_t *, size_t, CUmemLocation *,
						   size_t *, size_t, unsigned long long, CUstream);
CUresult CUDAAPI cuMemDiscardAndPrefetchBatchAsync_ptsz(CUdeviceptr *, size_t *, size_t,
							CUmemLocation *, size_t *, size_t,
							unsigned long long, CUstream);
CUresult CUDAAPI cuMemDiscardBatchAsync(CUdeviceptr *, size_t *, size_t, unsigned long long,
					CUstream);
CUresult CUDAAPI cuMemDiscardBatchAsync_ptsz(CUdeviceptr *, size_t *, size_t, unsigned long long,
					     CUstream);
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr, CUstream);
CUresult CUDAAPI cuMemFreeAsync_ptsz(CUdeviceptr, CUstream);
CUresult CUDAAPI cuMemFreeHost(void *);
CUresult CUDAAPI cuMemFree_v2(CUdeviceptr);
CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr *, size_t *, CUdeviceptr);
CUresult CUDAAPI cuMemGetInfo_v2(size_t *, size_t *);
CUresult CUDAAPI cuMemHostAlloc(void **, size_t, unsigned);
CUresult CUDAAPI cuMemHostGetDevicePointer_v2(CUdeviceptr *, void *, unsigned);
CUresult CUDAAPI cuMemHostGetFlags(unsigned *, void *);
CUresult CUDAAPI cuMemHostRegister_v2(void *, size_t, unsigned);
CUresult CUDAAPI cuMemHostUnregister(void *);
CUresult CUDAAPI cuMemMapArrayAsync(CUarrayMapInfo *, unsigned, CUstream);
CUresult CUDAAPI cuMemMapArrayAsync_ptsz(CUarrayMapInfo *, unsigned, CUstream);
CUresult CUDAAPI cuMemPrefetchAsync_ptsz(CUdeviceptr, size_t, CUdevice, CUstream);
CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
CUresult CUDAAPI cuMemPrefetchAsync_v2_ptsz(CUdeviceptr, size_t, CUmemLocation, unsigned, CUstream);
CUresult CUDAAPI cuMemPrefetchBatchAsync(CUdeviceptr *, size_t *, size_t, CUmemLocation *, size_t *,
					 size_t, unsigned long long, CUstream);
CUresult CUDAAPI cuMemPrefetchBatchAsync_ptsz(CUdeviceptr *, size_t *, size_t, CUmemLocation *,
					      size_t *, size_t, unsigned long long, CUstream);
CUresult CUDAAPI cuMemcpy(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *, CUstream);
CUresult CUDAAPI cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D *, CUstream);
CUresult CUDAAPI cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy2D_v2(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D *);
CUresult CUDAAPI cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D *, CUstream);
CUresult CUDAAPI cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D *, CUstream);
CUresult CUDAAPI cuMemcpy3DBatchAsync_ptsz(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *,
					   unsigned long long, CUstream);
CUresult CUDAAPI cuMemcpy3DBatchAsync_v2(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long,
					 CUstream);
CUresult CUDAAPI cuMemcpy3DBatchAsync_v2_ptsz(size_t, CUDA_MEMCPY3D_BATCH_OP *, unsigned long long,
					      CUstream);
CUresult CUDAAPI cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER *);
CUresult CUDAAPI cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER *, CUstream);
CUresult CUDAAPI cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER *, CUstream);
CUresult CUDAAPI cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER *);
CUresult CUDAAPI cuMemcpy3D_v2(const CUDA_MEMCPY3D *);
CUresult CUDAAPI cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D *);
CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyAsync_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyAtoA_v2(CUarray, size_t, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyAtoA_v2_ptds(CUarray, size_t, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyAtoD_v2(CUdeviceptr, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyAtoD_v2_ptds(CUdeviceptr, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyAtoHAsync_v2(void *, CUarray, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemcpyAtoHAsync_v2_ptsz(void *, CUarray, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemcpyAtoH_v2(void *, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyAtoH_v2_ptds(void *, CUarray, size_t, size_t);
CUresult CUDAAPI cuMemcpyBatchAsync_ptsz(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
					 CUmemcpyAttributes *, size_t *, size_t, size_t *,
					 CUstream);
CUresult CUDAAPI cuMemcpyBatchAsync_v2(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
				       CUmemcpyAttributes *, size_t *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr *, CUdeviceptr *, size_t *, size_t,
					    CUmemcpyAttributes *, size_t *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoA_v2(CUarray, size_t, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoA_v2_ptds(CUarray, size_t, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoD_v2(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoD_v2_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoHAsync_v2(void *, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoHAsync_v2_ptsz(void *, CUdeviceptr, size_t, CUstream);
CUresult CUDAAPI cuMemcpyDtoH_v2(void *, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyDtoH_v2_ptds(void *, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemcpyHtoAAsync_v2(CUarray, size_t, const void *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyHtoAAsync_v2_ptsz(CUarray, size_t, const void *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyHtoA_v2(CUarray, size_t, const void *, size_t);
CUresult CUDAAPI cuMemcpyHtoA_v2_ptds(CUarray, size_t, const void *, size_t);
CUresult CUDAAPI cuMemcpyHtoDAsync_v2(CUdeviceptr, const void *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr, const void *, size_t, CUstream);
CUresult CUDAAPI cuMemcpyHtoD_v2(CUdeviceptr, const void *, size_t);
CUresult CUDAAPI cuMemcpyHtoD_v2_ptds(CUdeviceptr, const void *, size_t);
CUresult CUDAAPI cuMemcpyPeer(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
CUresult CUDAAPI cuMemcpyPeerAsync(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,
				   CUstream);
CUresult CUDAAPI cuMemcpyPeerAsync_ptsz(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t,
					CUstream);
CUresult CUDAAPI cuMemcpyPeer_ptds(CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t);
CUresult CUDAAPI cuMemcpy_ptds(CUdeviceptr, CUdeviceptr, size_t);
CUresult CUDAAPI cuMemsetD16Async(CUdeviceptr, unsigned short, size_t, CUstream);
CUresult CUDAAPI cuMemsetD16Async_ptsz(CUdeviceptr, unsigned short, size_t, CUstream);
CUresult CUDAAPI cuMemsetD16_v2(CUdeviceptr, unsigned short, size_t);
CUresult CUDAAPI cuMemsetD16_v2_ptds(CUdeviceptr, unsigned short, size_t);
CUresult CUDAAPI cuMemsetD2D16Async(CUdeviceptr, size_t, unsigned short, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemsetD2D16Async_ptsz(CUdeviceptr, size_t, unsigned short, size_t, size_t,
					 CUstream);
CUresult CUDAAPI cuMemsetD2D16_v2(CUdeviceptr, size_t, unsigned short, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D16_v2_ptds(CUdeviceptr, size_t, unsigned short, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D32Async(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemsetD2D32Async_ptsz(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemsetD2D32_v2(CUdeviceptr, size_t, unsigned, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D32_v2_ptds(CUdeviceptr, size_t, unsigned, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr, size_t, unsigned char, size_t, size_t, CUstream);
CUresult CUDAAPI cuMemsetD2D8Async_ptsz(CUdeviceptr, size_t, unsigned char, size_t, size_t,
					CUstream);
CUresult CUDAAPI cuMemsetD2D8_v2(CUdeviceptr, size_t, unsigned char, size_t, size_t);
CUresult CUDAAPI cuMemsetD2D8_v2_ptds(CUdeviceptr, size_t, unsigned char, size_t, size_t);
CUresult CUDAAPI cuMemsetD32Async(CUdeviceptr, unsigned, size_t, CUstream);
CUresult CUDAAPI cuMemsetD32Async_ptsz(CUdeviceptr, unsigned, size_t, CUstream);
CUresult CUDAAPI cuMemsetD32_v2(CUdeviceptr, unsigned, size_t);
CUresult CUDAAPI cuMemsetD32_v2_ptds(CUdeviceptr, unsigned, size_t);
CUresult CUDAAPI cuMemsetD8Async(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult CUDAAPI cuMemsetD8Async_ptsz(CUdeviceptr, unsigned char, size_t, CUstream);
CUresult CUDAAPI cuMemsetD8_v2(CUdeviceptr, unsigned char, size_t);
CUresult CUDAAPI cuMemsetD8_v2_ptds(CUdeviceptr, unsigned char, size_t);
CUresult CUDAAPI cuModuleEnumerateFunctions(CUfunction *, unsigned, CUmodule);
CUresult CUDAAPI cuModuleGetFunction(CUfunction *, CUmodule, const char *);
CUresult CUDAAPI cuModuleGetFunctionCount(unsigned *, CUmodule);
CUresult CUDAAPI cuModuleGetGlobal_v2(CUdeviceptr *, size_t *, CUmodule, const char *);
CUresult CUDAAPI cuModuleGetLoadingMode(CUmoduleLoadingMode *);
CUresult CUDAAPI cuModuleLoad(CUmodule *, const char *);
CUresult CUDAAPI cuModuleLoadData(CUmodule *, const void *);
CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *, const void *, unsigned, CUjit_option *, void **);
CUresult CUDAAPI cuModuleLoadFatBinary(CUmodule *, const void *);
CUresult CUDAAPI cuModuleUnload(CUmodule);
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, CUfunction, int, size_t);
CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, CUfunction, int,
								      size_t, unsigned);
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int *, int *, CUfunction, CUoccupancyB2DSize,
						  size_t, int);
CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int *, int *, CUfunction,
							   CUoccupancyB2DSize, size_t, int,
							   unsigned);
CUresult CUDAAPI cuPointerGetAttribute(void *, CUpointer_attribute, CUdeviceptr);
CUresult CUDAAPI cuPointerGetAttributes(unsigned, CUpointer_attribute *, void **, CUdeviceptr);
CUresult CUDAAPI cuSignalExternalSemaphoresAsync(const CUexternalSemaphore *,
						 const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *,
						 unsigned, CUstream);
CUresult CUDAAPI cuSignalExternalSemaphoresAsync_ptsz(const CUexternalSemaphore *,
						      const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *,
						      unsigned, CUstream);
CUresult CUDAAPI cuStreamAddCallback(CUstream, CUstreamCallback, void *, unsigned);
CUresult CUDAAPI cuStreamAddCallback_ptsz(CUstream, CUstreamCallback, void *, unsigned);
CUresult CUDAAPI cuStreamAttachMemAsync(CUstream, CUdeviceptr, size_t, unsigned);
CUresult CUDAAPI cuStreamAttachMemAsync_ptsz(CUstream, CUdeviceptr, size_t, unsigned);
CUresult CUDAAPI cuStreamBatchMemOp_ptsz(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
CUresult CUDAAPI cuStreamBatchMemOp_v2(CUstream, unsigned, CUstreamBatchMemOpParams *, unsigned);
CUresult CUDAAPI cuStreamBatchMemOp_v2_ptsz(CUstream, unsigned, CUstreamBatchMemOpParams *,
					    unsigned);
CUresult CUDAAPI cuStreamBeginCaptureToGraph(CUstream, CUgraph, const CUgraphNode *,
					     const CUgraphEdgeData *, size_t, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamBeginCaptureToGraph_ptsz(CUstream, CUgraph, const CUgraphNode *,
						  const CUgraphEdgeData *, size_t,
						  CUstreamCaptureMode);
CUresult CUDAAPI cuStreamBeginCapture_ptsz(CUstream);
CUresult CUDAAPI cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamBeginCapture_v2_ptsz(CUstream, CUstreamCaptureMode);
CUresult CUDAAPI cuStreamCopyAttributes(CUstream, CUstream);
CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream, CUstream);
CUresult CUDAAPI cuStreamCreate(CUstream *, unsigned);
CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *, unsigned, int);
CUresult CUDAAPI cuStreamDestroy_v2(CUstream);
CUresult CUDAAPI cuStreamEndCapture(CUstream, CUgraph *);
CUresult CUDAAPI cuStreamEndCapture_ptsz(CUstream, CUgraph *);
CUresult CUDAAPI cuStreamGetAttribute(CUstream, CUstreamAttrID, CUstreamAttrValue *);
CUresult CUDAAPI cuStreamGetAttribute_ptsz(CUstream, CUstreamAttrID, CUstreamAttrValue *);
CUresult CUDAAPI cuStreamGetCtx(CUstream, CUcontext *);
CUresult CUDAAPI cuStreamGetCtx_ptsz(CUstream, CUcontext *);
CUresult CUDAAPI cuStreamGetDevice(CUstream, CUdevice *);
CUresult CUDAAPI cuStreamGetDevice_ptsz(CUstream, CUdevice *);
CUresult CUDAAPI cuStreamGetFlags(CUstream, unsigned *);
CUresult CUDAAPI cuStreamGetFlags_ptsz(CUstream, unsigned *);
CUresult CUDAAPI cuStreamGetGreenCtx(CUstream, CUgreenCtx *);
CUresult CUDAAPI cuStreamGetId(CUstream, unsigned long long *);
CUresult CUDAAPI cuStreamGetId_ptsz(CUstream, unsigned long long *);
CUresult CUDAAPI cuStreamGetPriority(CUstream, int *);
CUresult CUDAAPI cuStreamGetPriority_ptsz(CUstream, int *);
CUresult CUDAAPI cuStreamIsCapturing(CUstream, CUstreamCaptureStatus *);
CUresult CUDAAPI cuStreamIsCapturing_ptsz(CUstream, CUstreamCaptureStatus *);
CUresult CUDAAPI cuStreamQuery(CUstream);
CUresult CUDAAPI cuStreamQuery_ptsz(CUstream);
CUresult CUDAAPI cuStreamSetAttribute(CUstream, CUstreamAttrID, const CUstreamAttrValue *);
CUresult CUDAAPI cuStreamSetAttribute_ptsz(CUstream, CUstreamAttrID, const CUstreamAttrValue *);
CUresult CUDAAPI cuStreamSynchronize(CUstream);
CUresult CUDAAPI cuStreamSynchronize_ptsz(CUstream);
CUresult CUDAAPI cuStreamWaitEvent(CUstream, CUevent, unsigned);
CUresult CUDAAPI cuStreamWaitEvent_ptsz(CUstream, CUevent, unsigned);
CUresult CUDAAPI cuStreamWaitValue32_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue64_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue64_v2(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWaitValue64_v2_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue32_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue32_v2(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue32_v2_ptsz(CUstream, CUdeviceptr, cuuint32_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue64_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue64_v2(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuStreamWriteValue64_v2_ptsz(CUstream, CUdeviceptr, cuuint64_t, unsigned);
CUresult CUDAAPI cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *);
CUresult CUDAAPI cuWaitExternalSemaphoresAsync(const CUexternalSemaphore *,
					       const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *,
					       unsigned, CUstream);
CUresult CUDAAPI cuWaitExternalSemaphoresAsync_ptsz(const CUexternalSemaphore *,
						    const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *,
						    unsigned, CUstream);

#endif
