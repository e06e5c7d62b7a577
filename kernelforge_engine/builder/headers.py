"""Small stand-ins for standard headers, which NVRTC does not have.

They serve what kernels ask of those headers; the fixed-width types are the ones CCCL declares, so
that both can be included. Anything else must come from `<cuda/std/...>` or through nvcc.
"""

_INTEGERS = """\
#pragma once
typedef signed char int8_t; typedef unsigned char uint8_t;
typedef signed short int16_t; typedef unsigned short uint16_t;
typedef signed int int32_t; typedef unsigned int uint32_t;
typedef signed long long int64_t; typedef unsigned long long uint64_t;
typedef int64_t intptr_t; typedef uint64_t uintptr_t;
typedef int64_t intmax_t; typedef uint64_t uintmax_t;
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#define UINT16_MAX 65535
#define UINT32_MAX 4294967295U
#define UINT64_MAX 18446744073709551615ULL
#define INT32_MIN (-INT32_MAX - 1)
#define INT64_MIN (-INT64_MAX - 1)
namespace std { using ::int8_t; using ::uint8_t; using ::int16_t; using ::uint16_t;
using ::int32_t; using ::uint32_t; using ::int64_t; using ::uint64_t;
using ::intptr_t; using ::uintptr_t; }
"""
_SIZES = """\
#pragma once
typedef decltype(sizeof(0)) size_t;
typedef long ptrdiff_t;
#define offsetof(type, member) __builtin_offsetof(type, member)
namespace std { using ::size_t; using ::ptrdiff_t; typedef decltype(nullptr) nullptr_t; }
"""
_FLOATS = """\
#pragma once
#define FLT_MAX 3.402823466e+38F
#define FLT_MIN 1.175494351e-38F
#define FLT_EPSILON 1.192092896e-07F
#define FLT_DIG 6
#define FLT_MANT_DIG 24
#define DBL_MAX 1.7976931348623157e+308
#define DBL_MIN 2.2250738585072014e-308
#define DBL_EPSILON 2.2204460492503131e-16
#define DBL_DIG 15
#define DBL_MANT_DIG 53
"""
_LIMITS = """\
#pragma once
#define CHAR_BIT 8
#define SCHAR_MAX 127
#define UCHAR_MAX 255
#define SHRT_MAX 32767
#define USHRT_MAX 65535
#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295U
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define LLONG_MAX 9223372036854775807LL
#define LLONG_MIN (-LLONG_MAX - 1LL)
#define ULLONG_MAX 18446744073709551615ULL
"""
_MATHS = """\
#pragma once
#ifndef INFINITY
#define INFINITY __int_as_float(0x7f800000)
#endif
#ifndef NAN
#define NAN __int_as_float(0x7fffffff)
#endif
#ifndef HUGE_VALF
#define HUGE_VALF INFINITY
#endif
#ifndef M_PI
#define M_PI 3.14159265358979323846
#define M_PI_2 1.57079632679489661923
#define M_SQRT2 1.41421356237309504880
#define M_SQRT1_2 0.70710678118654752440
#define M_2_SQRTPI 1.12837916709551257390
#define M_E 2.7182818284590452354
#define M_LN2 0.69314718055994530942
#define M_LOG2E 1.4426950408889634074
#endif
namespace std { using ::abs; using ::fabs; using ::min; using ::max; using ::fmin; using ::fmax;
using ::exp; using ::exp2; using ::expm1; using ::log; using ::log2; using ::log10; using ::log1p;
using ::sqrt; using ::cbrt; using ::pow; using ::fma; using ::fmod; using ::hypot;
using ::sin; using ::cos; using ::tan; using ::asin; using ::acos; using ::atan; using ::atan2;
using ::sinh; using ::cosh; using ::tanh; using ::erf; using ::erfc; using ::tgamma; using ::lgamma;
using ::floor; using ::ceil; using ::round; using ::trunc; using ::rint; using ::nearbyint;
using ::isnan; using ::isinf; using ::isfinite; using ::signbit; using ::copysign; }
"""
_ASSERT = """\
#pragma once
#undef assert
#define assert(condition) ((condition) ? (void)0 : __trap())
"""

_TENSOR_MAP = """\
#pragma once
struct alignas(64) CUtensorMap_st { unsigned long long opaque[16]; };
typedef CUtensorMap_st CUtensorMap;
"""


def _forwarded(name: str) -> str:
    """A header of CCCL under its standard name."""
    lines = (f"#include <cuda/std/{name}>", "namespace std { using namespace cuda::std; }")
    return "\n".join(("#pragma once", *lines, ""))


# The CUDA runtime's own declarations are built into NVRTC, as is printf.
NAMED: dict[str, str] = {
    "stdint.h": _INTEGERS, "cstdint": _INTEGERS, "stddef.h": _SIZES, "cstddef": _SIZES,
    "float.h": _FLOATS, "cfloat": _FLOATS, "limits.h": _LIMITS, "climits": _LIMITS,
    "math.h": _MATHS, "cmath": _MATHS, "assert.h": _ASSERT, "cassert": _ASSERT,
    "stdio.h": "", "cstdio": "", "stdlib.h": "", "cstdlib": "",
    "cuda_runtime.h": "", "device_launch_parameters.h": "", "cuda.h": _TENSOR_MAP,
    "type_traits": _forwarded("type_traits"), "limits": _forwarded("limits"),
    "utility": _forwarded("utility"), "array": _forwarded("array"),
}  # fmt: skip
