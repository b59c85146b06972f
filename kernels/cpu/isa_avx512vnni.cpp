// Compile with the AVX-512 F, BW, DQ, VL and VNNI, FMA and F16C flags and -ffp-contract=off.
#include "vector_avx512.h"
// The vectors come first: everything below is written over them.
#include "library.h"

INGLENOOK_API const char* inglenook_isa() { return "avx512vnni"; }

INGLENOOK_API int32_t inglenook_is_supported() {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
}
