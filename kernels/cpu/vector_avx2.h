// 16 lanes in two AVX2 registers; dot products with AVX-VNNI where the compiler flags allow, else in pairs of 16 bits.
#pragma once
#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace {

struct Floats {
    __m256 a, b;
};
struct Ints {
    __m256i a, b;
};
struct Bytes {
    __m256i a, b;
};

#if defined(__AVXVNNI__)
constexpr bool kBiasedBytes = true;
#else
constexpr bool kBiasedBytes = false;  // 255 * 127 * 2 would saturate 16 bits: signs move to the activations instead
#endif
constexpr int kDirectRows = 4;
constexpr int kRegisterRows = 4;
constexpr int kFloatRows = 2;  // rows whose two sums of products with floats stay in registers
constexpr int kQueryRows = 2;  // rows of queries whose scores of two blocks stay in registers

inline Floats zeros() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline Floats load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Floats x) {
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}
inline Floats splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Floats add(Floats x, Floats y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline Floats sub(Floats x, Floats y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline Floats mul(Floats x, Floats y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline Floats div(Floats x, Floats y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline Floats fma(Floats x, Floats y, Floats z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline Floats max(Floats x, Floats y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline Floats min(Floats x, Floats y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline Floats absolute(Floats x) {
    const __m256 mask = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    return {_mm256_and_ps(x.a, mask), _mm256_and_ps(x.b, mask)};
}
inline Floats round_even(Floats x) {
    constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
inline Floats where_less(Floats x, Floats limit, Floats y, Floats z) {
    return {_mm256_blendv_ps(z.a, y.a, _mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ)),
            _mm256_blendv_ps(z.b, y.b, _mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ))};
}
inline __m256 lane_mask(int base, int first, int last) {
    const __m256i lane = _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(base));
    return _mm256_castsi256_ps(_mm256_and_si256(_mm256_cmpgt_epi32(lane, _mm256_set1_epi32(first - 1)),
                                                _mm256_cmpgt_epi32(_mm256_set1_epi32(last), lane)));
}
inline Floats keep_lanes(Floats x, int first, int last, Floats other) {
    return {_mm256_blendv_ps(other.a, x.a, lane_mask(0, first, last)),
            _mm256_blendv_ps(other.b, x.b, lane_mask(8, first, last))};
}

inline float reduce_add(Floats x) {
    const __m256 half = _mm256_add_ps(x.a, x.b);
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}
inline float reduce_max(Floats x) {
    const __m256 half = _mm256_max_ps(x.a, x.b);
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

inline Ints splat_int(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Floats to_floats(Ints x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline Ints to_ints(Floats x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline bool any_nan(Floats x) {
    const __m256 nan = _mm256_or_ps(_mm256_cmp_ps(x.a, x.a, _CMP_UNORD_Q), _mm256_cmp_ps(x.b, x.b, _CMP_UNORD_Q));
    return _mm256_movemask_ps(nan) != 0;
}
// Sums of each 16 of 64 signed bytes.
inline void sum_quarters(const int8_t* p, int32_t* out) {
    const __m256i ones = _mm256_set1_epi8(1), wide = _mm256_set1_epi16(1);
    for (int i = 0; i < 2; ++i) {
        const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p) + i);
        __m256i sum = _mm256_madd_epi16(_mm256_maddubs_epi16(ones, bytes), wide);
        sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0x4e));
        sum = _mm256_add_epi32(sum, _mm256_shuffle_epi32(sum, 0xb1));
        out[2 * i] = _mm256_extract_epi32(sum, 0);
        out[2 * i + 1] = _mm256_extract_epi32(sum, 4);
    }
}
inline void store_bytes(int8_t* p, Ints x) {
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
inline __m256 power_of_two(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
inline Floats scale_by_power(Floats x, Floats n) { return mul(x, {power_of_two(n.a), power_of_two(n.b)}); }

inline __m128i load_128(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }
inline Floats load_half(const void* p) {
    const auto* words = static_cast<const uint16_t*>(p);
    return {_mm256_cvtph_ps(load_128(words)), _mm256_cvtph_ps(load_128(words + 8))};
}
// 16 float8 (e4m3), each divided by 256: as the upper byte of fp16, the exponent moved a bit to the right.
inline Floats load_float8(const uint8_t* p) {
    const __m256i wide = _mm256_slli_epi16(_mm256_cvtepu8_epi16(load_128(p)), 8);
    const __m256i half = _mm256_and_si256(_mm256_srai_epi16(wide, 1), _mm256_set1_epi16(static_cast<int16_t>(0xbfff)));
    return {_mm256_cvtph_ps(_mm256_castsi256_si128(half)), _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1))};
}
inline void store_half(void* p, Floats x) {
    constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    auto* out = static_cast<__m128i*>(p);
    _mm_storeu_si128(out, _mm256_cvtps_ph(x.a, mode));
    _mm_storeu_si128(out + 1, _mm256_cvtps_ph(x.b, mode));
}
inline __m256 widen_bfloat(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
inline Floats load_bfloat(const void* p) {
    const auto* words = static_cast<const uint16_t*>(p);
    return {widen_bfloat(load_128(words)), widen_bfloat(load_128(words + 8))};
}
inline __m256i round_bfloat(__m256 x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff))), 16);
}
inline void store_bfloat(void* p, Floats x) {
    const __m256i words = _mm256_packus_epi32(round_bfloat(x.a), round_bfloat(x.b));
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm256_permute4x64_epi64(words, 0xd8));
}
inline Floats load_unsigned(const uint8_t* p) {
    const __m128i bytes = load_128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8)))};
}
inline Floats load_signed(const int8_t* p) {
    const __m128i bytes = load_128(p);
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}

inline Bytes load_bytes(const uint8_t* p) {
    const auto* v = reinterpret_cast<const __m256i*>(p);
    return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
}
inline void store_bytes(uint8_t* p, Bytes x) {
    auto* v = reinterpret_cast<__m256i*>(p);
    _mm256_storeu_si256(v, x.a);
    _mm256_storeu_si256(v + 1, x.b);
}
inline Bytes splat_byte(uint8_t x) {
    const __m256i v = _mm256_set1_epi8(static_cast<char>(x));
    return {v, v};
}
inline Bytes bit_and(Bytes x, Bytes y) { return {_mm256_and_si256(x.a, y.a), _mm256_and_si256(x.b, y.b)}; }
inline Bytes merge(Bytes x, Bytes y, Bytes mask) {
    return {_mm256_or_si256(x.a, _mm256_and_si256(y.a, mask.a)), _mm256_or_si256(x.b, _mm256_and_si256(y.b, mask.b))};
}
template <int N>
inline Bytes shift_right(Bytes x) {
    return {_mm256_srli_epi16(x.a, N), _mm256_srli_epi16(x.b, N)};
}
template <int N>
inline Bytes shift_left(Bytes x) {
    return {_mm256_slli_epi16(x.a, N), _mm256_slli_epi16(x.b, N)};
}
// How levels lie in an open tile: as they are.
inline Bytes opened(Bytes x, int) { return x; }
inline Bytes signed_weights(Bytes x) {
    if (!kBiasedBytes) return x;
    const __m256i bias = _mm256_set1_epi8(-128);
    return {_mm256_xor_si256(x.a, bias), _mm256_xor_si256(x.b, bias)};
}

inline __m256i splat_four(const int8_t* x) {
    int32_t four;
    std::memcpy(&four, x, 4);
    return _mm256_set1_epi32(four);
}

#if defined(__AVXVNNI__)

template <int BITS, int COUNT>
inline Ints dot(Ints start, const Bytes* weights, const int8_t* x) {
#pragma GCC unroll 8
    for (int j = 0; j < COUNT; ++j) {
        const __m256i four = splat_four(x + 4 * j);
        start.a = _mm256_dpbusd_avx_epi32(start.a, weights[j].a, four);
        start.b = _mm256_dpbusd_avx_epi32(start.b, weights[j].b, four);
    }
    return start;
}

#else

// Pairs of products add up in 16 bits as long as they cannot overflow: levels of 4 bits for 8 vectors (8 * 2 * 15 * 127
// = 30,480), 5 bits for 4, 6 bits for 2, 8 bits for 1 (2 * 128 * 127 = 32,512).
template <int BITS, int COUNT>
inline Ints dot(Ints start, const Bytes* weights, const int8_t* x) {
    constexpr int run = BITS == 4 ? 8 : BITS == 5 ? 4 : BITS == 6 ? 2 : 1;
    const __m256i ones = _mm256_set1_epi16(1);
#pragma GCC unroll 8
    for (int first = 0; first < COUNT; first += run) {
        __m256i a{}, b{};
#pragma GCC unroll 8
        for (int j = first; j < first + run && j < COUNT; ++j) {
            const __m256i four = splat_four(x + 4 * j);
            __m256i c, d;
            if (BITS == 8) {
                c = _mm256_maddubs_epi16(_mm256_abs_epi8(weights[j].a), _mm256_sign_epi8(four, weights[j].a));
                d = _mm256_maddubs_epi16(_mm256_abs_epi8(weights[j].b), _mm256_sign_epi8(four, weights[j].b));
            } else {
                c = _mm256_maddubs_epi16(weights[j].a, four);
                d = _mm256_maddubs_epi16(weights[j].b, four);
            }
            a = j == first ? c : _mm256_add_epi16(a, c);
            b = j == first ? d : _mm256_add_epi16(b, d);
        }
        start.a = _mm256_add_epi32(start.a, _mm256_madd_epi16(a, ones));
        start.b = _mm256_add_epi32(start.b, _mm256_madd_epi16(b, ones));
    }
    return start;
}

#endif

inline void prefetch_far(const uint8_t* p) { _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1); }
inline void pause() { _mm_pause(); }

class FloatMode {
  public:
    FloatMode() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
    ~FloatMode() { _mm_setcsr(saved_); }

  private:
    unsigned saved_;
};

}  // namespace
