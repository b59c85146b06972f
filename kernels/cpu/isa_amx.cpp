// AVX-512 VNNI, and AMX for blocks of rows. Compile as isa_avx512vnni.cpp with the AMX-TILE and AMX-INT8 flags too.
#define INGLENOOK_AMX
#include <cpuid.h>

#include "vector_avx512.h"
// The vectors come first: everything below is written over them.
#include "library.h"

INGLENOOK_API const char* inglenook_isa() { return "amx"; }

INGLENOOK_API int32_t inglenook_is_supported() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool has_tiles = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 24 & 1) && (d >> 25 & 1);
    return has_tiles && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni") && may_use_tiles();
}
