// For any processor: slow, and what the others are compared with. Compile with -ffp-contract=off.
#include "vector_scalar.h"
// The vectors come first: everything below is written over them.
#include "library.h"

INGLENOOK_API const char* inglenook_isa() { return "scalar"; }

INGLENOOK_API int32_t inglenook_is_supported() { return 1; }
