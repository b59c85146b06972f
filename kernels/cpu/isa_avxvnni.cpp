// Compile with the AVX2, AVX-VNNI, FMA and F16C flags and -ffp-contract=off.
#include <cpuid.h>

#include "vector_avx2.h"
// The vectors come first: everything below is written over them.
#include "library.h"

INGLENOOK_API const char* inglenook_isa() { return "avxvnni"; }

INGLENOOK_API int32_t inglenook_is_supported() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    const bool has_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1);
    return has_vnni && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
