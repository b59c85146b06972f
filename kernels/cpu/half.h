// fp16 by bit operations, for code that runs on any processor.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace {

inline float half_to_float(uint16_t half) {
    const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    if (exponent == 0) {
        const float tiny = static_cast<float>(fraction) * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    const uint32_t bits = sign | (exponent == 31 ? 0x7f800000u : (exponent + 112) << 23) | fraction << 13;
    float result;
    std::memcpy(&result, &bits, 4);
    return result;
}
inline uint16_t float_to_half(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    const uint16_t sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000) return static_cast<uint16_t>(sign | 0x7e00 | (bits >> 13 & 0x1ff));
    if (bits >= 0x47800000) return static_cast<uint16_t>(sign | 0x7c00);
    if (bits < 0x38800000) {  // below 2^-14: a multiple of 2^-24
        std::memcpy(&value, &bits, 4);
        return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(value * 0x1p24f)));
    }
    bits += 0xfff + (bits >> 13 & 1);
    return static_cast<uint16_t>(sign | ((bits - 0x38000000) >> 13));
}


// The fp16 bits of a float8 (e4m3) divided by 256: its exponent has one bit less and its bias is 8 less.
inline uint16_t half_of_float8(uint8_t bits) {
    return static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7);
}

}  // namespace
