// One source for host, SIMD and CUDA. Functions are forced inline so that no copy compiled for a
// wide instruction set can be merged with the baseline's at link time.
#pragma once

#if defined(__CUDACC__)
#define ROPEWALK_HD __host__ __device__ __forceinline__
#elif defined(__GNUC__)
#define ROPEWALK_HD inline __attribute__((always_inline))
#else
#define ROPEWALK_HD inline
#endif
