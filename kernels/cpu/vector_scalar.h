// 16 lanes as plain arrays: the arithmetic spelled out, for any processor and as the twin that tests compare with.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "half.h"

namespace {

struct Floats {
    float v[16];
};
struct Ints {
    int32_t v[16];
};
struct Bytes {
    uint8_t v[64];
};

constexpr bool kBiasedBytes = false;
constexpr int kDirectRows = 4;
constexpr int kRegisterRows = 4;
constexpr int kFloatRows = 4;  // rows whose two sums of products with floats stay in registers
constexpr int kQueryRows = 4;  // rows of queries whose scores of two blocks stay in registers

template <class Result, class Operation>
inline Result each(Operation operation) {
    Result result;
    for (int i = 0; i < static_cast<int>(sizeof(result.v) / sizeof(result.v[0])); ++i) result.v[i] = operation(i);
    return result;
}

inline Floats zeros() { return {}; }
inline Floats load(const float* p) { return each<Floats>([&](int i) { return p[i]; }); }
inline void store(float* p, Floats x) { std::memcpy(p, x.v, sizeof(x.v)); }
inline Floats splat(float x) { return each<Floats>([&](int) { return x; }); }
inline Floats add(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] + y.v[i]; }); }
inline Floats sub(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] - y.v[i]; }); }
inline Floats mul(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] * y.v[i]; }); }
inline Floats div(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] / y.v[i]; }); }
inline Floats fma(Floats x, Floats y, Floats z) {
    return each<Floats>([&](int i) { return std::fma(x.v[i], y.v[i], z.v[i]); });
}
inline Floats max(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] > y.v[i] ? x.v[i] : y.v[i]; }); }
inline Floats min(Floats x, Floats y) { return each<Floats>([&](int i) { return x.v[i] < y.v[i] ? x.v[i] : y.v[i]; }); }
inline Floats absolute(Floats x) { return each<Floats>([&](int i) { return std::fabs(x.v[i]); }); }
inline Floats round_even(Floats x) { return each<Floats>([&](int i) { return std::nearbyint(x.v[i]); }); }
inline Floats where_less(Floats x, Floats limit, Floats y, Floats z) {
    return each<Floats>([&](int i) { return x.v[i] < limit.v[i] ? y.v[i] : z.v[i]; });
}
inline Floats keep_lanes(Floats x, int first, int last, Floats other) {
    return each<Floats>([&](int i) { return first <= i && i < last ? x.v[i] : other.v[i]; });
}

inline float reduce_add(Floats x) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; ++i) x.v[i] += x.v[i + half];
    return x.v[0];
}
inline float reduce_max(Floats x) {
    for (int half = 8; half; half /= 2)
        for (int i = 0; i < half; ++i) x.v[i] = x.v[i] > x.v[i + half] ? x.v[i] : x.v[i + half];
    return x.v[0];
}

inline Ints splat_int(int32_t x) { return each<Ints>([&](int) { return x; }); }
inline Floats to_floats(Ints x) { return each<Floats>([&](int i) { return static_cast<float>(x.v[i]); }); }
// As the vector instruction: what does not fit becomes the most negative number.
inline Ints to_ints(Floats x) {
    return each<Ints>([&](int i) {
        const float rounded = std::nearbyint(x.v[i]);
        return rounded >= -2147483648.0f && rounded < 2147483648.0f ? static_cast<int32_t>(rounded) : INT32_MIN;
    });
}
inline bool any_nan(Floats x) {
    for (float value : x.v)
        if (std::isnan(value)) return true;
    return false;
}
// Sums of each 16 of 64 signed bytes.
inline void sum_quarters(const int8_t* p, int32_t* out) {
    for (int i = 0; i < 4; ++i) {
        out[i] = 0;
        for (int j = 0; j < 16; ++j) out[i] += p[16 * i + j];
    }
}
inline void store_bytes(int8_t* p, Ints x) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<int8_t>(x.v[i] < -128 ? -128 : x.v[i] > 127 ? 127 : x.v[i]);
}
inline Floats scale_by_power(Floats x, Floats n) {
    return each<Floats>([&](int i) {
        const uint32_t bits = static_cast<uint32_t>(static_cast<int32_t>(n.v[i]) + 127) << 23;
        float power;
        std::memcpy(&power, &bits, 4);
        return x.v[i] * power;
    });
}

inline Floats load_half(const void* p) {
    const auto* words = static_cast<const uint16_t*>(p);
    return each<Floats>([&](int i) { return half_to_float(words[i]); });
}
// 16 float8 (e4m3), each divided by 256.
inline Floats load_float8(const uint8_t* p) {
    return each<Floats>([&](int i) { return half_to_float(half_of_float8(p[i])); });
}
inline void store_half(void* p, Floats x) {
    for (int i = 0; i < 16; ++i) static_cast<uint16_t*>(p)[i] = float_to_half(x.v[i]);
}
inline Floats load_bfloat(const void* p) {
    return each<Floats>([&](int i) {
        const uint32_t bits = static_cast<uint32_t>(static_cast<const uint16_t*>(p)[i]) << 16;
        float result;
        std::memcpy(&result, &bits, 4);
        return result;
    });
}
inline void store_bfloat(void* p, Floats x) {
    for (int i = 0; i < 16; ++i) {
        uint32_t bits;
        std::memcpy(&bits, &x.v[i], 4);
        static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
    }
}
inline Floats load_unsigned(const uint8_t* p) { return each<Floats>([&](int i) { return static_cast<float>(p[i]); }); }
inline Floats load_signed(const int8_t* p) { return each<Floats>([&](int i) { return static_cast<float>(p[i]); }); }

inline Bytes load_bytes(const uint8_t* p) { return each<Bytes>([&](int i) { return p[i]; }); }
inline void store_bytes(uint8_t* p, Bytes x) { std::memcpy(p, x.v, sizeof(x.v)); }
inline Bytes splat_byte(uint8_t x) { return each<Bytes>([&](int) { return x; }); }
inline Bytes bit_and(Bytes x, Bytes y) {
    return each<Bytes>([&](int i) { return static_cast<uint8_t>(x.v[i] & y.v[i]); });
}
inline Bytes merge(Bytes x, Bytes y, Bytes mask) {
    return each<Bytes>([&](int i) { return static_cast<uint8_t>(x.v[i] | (y.v[i] & mask.v[i])); });
}
template <int N>
inline Bytes shift_right(Bytes x) {
    return each<Bytes>([&](int i) { return static_cast<uint8_t>(x.v[i] >> N); });
}
template <int N>
inline Bytes shift_left(Bytes x) {
    return each<Bytes>([&](int i) { return static_cast<uint8_t>(x.v[i] << N); });
}
// How levels lie in an open tile: as they are.
inline Bytes opened(Bytes x, int) { return x; }
inline Bytes signed_weights(Bytes x) { return x; }

template <int BITS, int COUNT>
inline Ints dot(Ints start, const Bytes* weights, const int8_t* x) {
    for (int j = 0; j < COUNT; ++j)
        for (int i = 0; i < 64; ++i) {
            const int32_t level = BITS == 8 ? static_cast<int8_t>(weights[j].v[i]) : weights[j].v[i];
            start.v[i / 4] += level * x[4 * j + i % 4];
        }
    return start;
}

inline void prefetch_far(const uint8_t*) {}
inline void pause() {}

#if defined(__x86_64__)
class FloatMode {
  public:
    FloatMode() : saved_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
    ~FloatMode() { __builtin_ia32_ldmxcsr(saved_); }

  private:
    unsigned saved_;
};
#else
class FloatMode {
  public:
    FloatMode() {}
};
#endif

}  // namespace
