"""Constants of ACL's headers. pyACL leaves them to its users; here they are.

Dtypes have the numbers of the dtype table, `ge_number`.
"""

from __future__ import annotations

ACL_SUCCESS = ACL_ERROR_NONE = 0

# -- runtime ----------------------------------------------------------------------------------------
ACL_MEM_MALLOC_HUGE_FIRST, ACL_MEM_MALLOC_HUGE_ONLY, ACL_MEM_MALLOC_NORMAL_ONLY = 0, 1, 2
ACL_MEMCPY_HOST_TO_HOST, ACL_MEMCPY_HOST_TO_DEVICE, ACL_MEMCPY_DEVICE_TO_HOST = 0, 1, 2
ACL_MEMCPY_DEVICE_TO_DEVICE, ACL_MEMCPY_DEFAULT, ACL_MEMCPY_HOST_TO_BUF_TO_DEVICE = 3, 4, 5
ACL_MEMCPY_INNER_DEVICE_TO_DEVICE, ACL_MEMCPY_INTER_DEVICE_TO_DEVICE = 6, 7
ACL_DEVICE, ACL_HOST = 0, 1  # acl.rt.get_run_mode
ACL_DDR_MEM, ACL_HBM_MEM = 0, 1  # acl.rt.get_mem_info
ACL_EVENT_STATUS_COMPLETE, ACL_EVENT_STATUS_NOT_READY = 0, 1

# -- tensors ----------------------------------------------------------------------------------------
ACL_DT_UNDEFINED = -1
ACL_FLOAT, ACL_FLOAT16, ACL_INT8, ACL_INT32, ACL_UINT8 = 0, 1, 2, 3, 4
ACL_INT16, ACL_UINT16, ACL_UINT32, ACL_INT64, ACL_UINT64 = 6, 7, 8, 9, 10
ACL_DOUBLE, ACL_BOOL, ACL_STRING, ACL_COMPLEX64, ACL_COMPLEX128, ACL_BF16 = 11, 12, 13, 16, 17, 27
ACL_FORMAT_UNDEFINED = -1
ACL_FORMAT_NCHW, ACL_FORMAT_NHWC, ACL_FORMAT_ND, ACL_FORMAT_NC1HWC0 = 0, 1, 2, 3
ACL_FORMAT_FRACTAL_Z, ACL_FORMAT_FRACTAL_NZ = 4, 29
ACL_DYNAMIC_TENSOR_NAME = "ascend_mbatch_shape_data"

# -- single operators -------------------------------------------------------------------------------
ACL_ENGINE_SYS, ACL_ENGINE_AICORE, ACL_ENGINE_VECTOR = 0, 1, 2
ACL_COMPILE_SYS, ACL_COMPILE_UNREGISTERED = 0, 1
