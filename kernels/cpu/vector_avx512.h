// 16 lanes in one AVX-512 register, with VNNI dot products.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace {

using Floats = __m512;
using Ints = __m512i;
using Bytes = __m512i;

// Eight-bit weights are biased to unsigned, and the dot product starts from -128 times the sum of the activations.
constexpr bool kBiasedBytes = true;
constexpr int kDirectRows = 8;
constexpr int kRegisterRows = 8;
constexpr int kFloatRows = 8;  // rows whose two sums of products with floats stay in registers
constexpr int kQueryRows = 8;  // rows of queries whose scores of two blocks stay in registers

inline Floats zeros() { return _mm512_setzero_ps(); }
inline Floats load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Floats a) { _mm512_storeu_ps(p, a); }
inline Floats splat(float a) { return _mm512_set1_ps(a); }
inline Floats add(Floats a, Floats b) { return _mm512_add_ps(a, b); }
inline Floats sub(Floats a, Floats b) { return _mm512_sub_ps(a, b); }
inline Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
inline Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
inline Floats fma(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
inline Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }  // b where either is NaN
inline Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
inline Floats absolute(Floats a) { return _mm512_abs_ps(a); }
inline Floats round_even(Floats a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
inline Floats where_less(Floats x, Floats limit, Floats a, Floats b) {
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, limit, _CMP_LT_OQ), b, a);
}
inline Floats keep_lanes(Floats x, int first, int last, Floats other) {
    const uint32_t mask = ((1u << last) - 1) & ~((1u << first) - 1);
    return _mm512_mask_blend_ps(static_cast<__mmask16>(mask), other, x);
}

inline float reduce_add(Floats a) {
    const __m256 half = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
inline float reduce_max(Floats a) { return _mm512_reduce_max_ps(a); }

inline bool any_nan(Floats a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q) != 0; }

inline Ints load_ints(const int32_t* p) { return _mm512_loadu_si512(p); }
inline Ints splat_int(int32_t a) { return _mm512_set1_epi32(a); }
inline Floats to_floats(Ints a) { return _mm512_cvtepi32_ps(a); }
inline Ints to_ints(Floats a) { return _mm512_cvtps_epi32(a); }
inline void store_bytes(int8_t* p, Ints a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(a)); }
// Sums of each 16 of 64 signed bytes.
inline void sum_quarters(const int8_t* p, int32_t* out) {
    Ints sum = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_set1_epi8(1), _mm512_loadu_si512(p));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_BADC));
    sum = _mm512_add_epi32(sum, _mm512_shuffle_epi32(sum, _MM_PERM_CDAB));
    const __m512i firsts = _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), sum);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_castsi512_si128(firsts));
}
// a * 2^n for a whole n in [-126, 127].
inline Floats scale_by_power(Floats a, Floats n) {
    const Ints bits = _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23);
    return _mm512_mul_ps(a, _mm512_castsi512_ps(bits));
}

inline Floats load_half(const void* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
}
// 16 float8 (e4m3), each divided by 256: as the upper byte of fp16, the exponent moved a bit to the right.
inline Floats load_float8(const uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 8);
    const __m256i mask = _mm256_set1_epi16(static_cast<int16_t>(0xbfff));
    return _mm512_cvtph_ps(_mm256_and_si256(_mm256_srai_epi16(wide, 1), mask));
}
inline void store_half(void* p, Floats a) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline Floats load_bfloat(const void* p) {
    const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
    return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
}
inline void store_bfloat(void* p, Floats a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
}
inline Floats load_unsigned(const uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}
inline Floats load_signed(const int8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
}

inline Bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
inline void store_bytes(uint8_t* p, Bytes a) { _mm512_storeu_si512(p, a); }
inline Bytes splat_byte(uint8_t a) { return _mm512_set1_epi8(static_cast<char>(a)); }
inline Bytes bit_and(Bytes a, Bytes b) { return _mm512_and_si512(a, b); }
// a | (b & mask)
inline Bytes merge(Bytes a, Bytes b, Bytes mask) { return _mm512_ternarylogic_epi64(a, b, mask, 0xf8); }
// Shifts may drag bits over from a neighbouring byte: always followed by a mask.
template <int N>
inline Bytes shift_right(Bytes a) {
    return _mm512_srli_epi16(a, N);
}
template <int N>
inline Bytes shift_left(Bytes a) {
    return _mm512_slli_epi16(a, N);
}
// How levels lie in an open tile: signed for tile products, else as they are.
#if defined(INGLENOOK_AMX)
inline Bytes opened(Bytes a, int offset) { return _mm512_sub_epi8(a, _mm512_set1_epi8(static_cast<char>(offset))); }
#else
inline Bytes opened(Bytes a, int) { return a; }
#endif
inline Bytes signed_weights(Bytes a) { return _mm512_xor_si512(a, _mm512_set1_epi8(-128)); }

// start + sum over COUNT vectors of weights times the 4 activations that go with each.
template <int BITS, int COUNT>
inline Ints dot(Ints start, const Bytes* weights, const int8_t* x) {
#pragma GCC unroll 8
    for (int j = 0; j < COUNT; ++j) {
        int32_t four;
        std::memcpy(&four, x + 4 * j, 4);
        start = _mm512_dpbusd_epi32(start, weights[j], _mm512_set1_epi32(four));
    }
    return start;
}

inline void prefetch_far(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
inline void pause() { _mm_pause(); }

// Default rounding, no flushing of subnormals, whatever the calling thread had set.
class FloatMode {
  public:
    FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~FloatMode() { _mm_setcsr(saved_); }

  private:
    unsigned saved_;
};

}  // namespace
