// Compile with the AVX2, FMA and F16C flags and -ffp-contract=off.
#include "vector_avx2.h"
// The vectors come first: everything below is written over them.
#include "library.h"

INGLENOOK_API const char* inglenook_isa() { return "avx2"; }

INGLENOOK_API int32_t inglenook_is_supported() {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
}
