// EMULATION, no GPU: vector types and the intrinsic functions of CUDA C++ that are exact, so that the host's results are a GPU's. Tests only.
//
// What: float2, float4, uint4 ... and make_ functions; min and max; bits of numbers; roundings that are named; loads with a hint.
// Blind to: functions of libm (expf, tanhf ...) are the host's and differ from a GPU's in the last bits.
// Source: CUDA C++ Programming Guide, "Built-in Vector Types", and CUDA Math API reference.
#ifndef EMULATION_MATH_H
#define EMULATION_MATH_H

#include <math.h>
#include <string.h>

#define EMULATION_VECTOR2(type, name, bytes)                                       \
    struct alignas(bytes) name { type x, y; };                                     \
    static inline name make_##name(type x, type y) { return name{x, y}; }
#define EMULATION_VECTOR4(type, name, bytes)                                       \
    struct alignas(bytes) name { type x, y, z, w; };                               \
    static inline name make_##name(type x, type y, type z, type w) { return name{x, y, z, w}; }
EMULATION_VECTOR2(float, float2, 8)
EMULATION_VECTOR4(float, float4, 16)
EMULATION_VECTOR2(double, double2, 16)
EMULATION_VECTOR2(int, int2, 8)
EMULATION_VECTOR4(int, int4, 16)
EMULATION_VECTOR2(unsigned, uint2, 8)
EMULATION_VECTOR4(unsigned, uint4, 16)
EMULATION_VECTOR2(unsigned short, ushort2, 4)
EMULATION_VECTOR4(unsigned short, ushort4, 8)
EMULATION_VECTOR2(long long, longlong2, 16)

#define EMULATION_MIN_MAX(type)                                            \
    static inline type min(type a, type b) { return b < a ? b : a; }       \
    static inline type max(type a, type b) { return a < b ? b : a; }
EMULATION_MIN_MAX(int)
EMULATION_MIN_MAX(unsigned)
EMULATION_MIN_MAX(long)
EMULATION_MIN_MAX(unsigned long)
EMULATION_MIN_MAX(long long)
EMULATION_MIN_MAX(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }

#define EMULATION_BITS(name, from, to)                                     \
    static inline to name(from value)                                      \
    {                                                                      \
        to bits;                                                           \
        static_assert(sizeof bits == sizeof value, "the same bits");       \
        memcpy(&bits, &value, sizeof bits);                                \
        return bits;                                                       \
    }
EMULATION_BITS(__float_as_int, float, int)
EMULATION_BITS(__float_as_uint, float, unsigned)
EMULATION_BITS(__int_as_float, int, float)
EMULATION_BITS(__uint_as_float, unsigned, float)
EMULATION_BITS(__double_as_longlong, double, long long)
EMULATION_BITS(__longlong_as_double, long long, double)

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(static_cast<unsigned long long>(x)); }
static inline int __ffs(int x) { return __builtin_ffs(x); }

// Rounded once, to nearest even: -ffp-contract=off keeps them so.
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline float __fsub_rn(float a, float b) { return a - b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdiv_rn(float a, float b) { return a / b; }
static inline float __fsqrt_rn(float a) { return sqrtf(a); }
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline double __dsub_rn(double a, double b) { return a - b; }
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __ddiv_rn(double a, double b) { return a / b; }
static inline double __dsqrt_rn(double a) { return sqrt(a); }
static inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }
static inline float __double2float_rn(double a) { return static_cast<float>(a); }
static inline float __int2float_rn(int a) { return static_cast<float>(a); }
static inline int __float2int_rn(float a) { return static_cast<int>(nearbyintf(a)); }
// A GPU's is within 2 ulp of it.
static inline float rsqrtf(float a) { return 1.0f / sqrtf(a); }
static inline double rsqrt(double a) { return 1.0 / sqrt(a); }

template <class T> static inline T __ldg(const T *at) { return *at; }
template <class T> static inline T __ldcs(const T *at) { return *at; }
template <class T> static inline T __ldcg(const T *at) { return *at; }
template <class T> static inline void __stcs(T *at, T value) { *at = value; }
template <class T> static inline void __stcg(T *at, T value) { *at = value; }

#endif
