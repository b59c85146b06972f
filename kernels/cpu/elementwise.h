// Norm, exponential, SiLU and the quantisation of activations. One order of operations for every instruction set; all
// are written over the 16 lanes of vector_*.h, so a row of 16 n elements has one partial sum a lane and then one tree.
#pragma once
#include <cmath>
#include <cstdint>

#include "packed_format.h"

namespace {

// One of the two parts of 32 quantised activations, with what a dot product needs of it: a cache line.
struct alignas(64) Part {
    int8_t q[32];
    int32_t start_4;     // -8 * (sum of q): the offset of Q4_0
    int32_t start_5;     // -16 * (sum of q): Q5_0
    int32_t start_8;     // -128 * (sum of q): biased Q8_0
    int32_t start_6[2];  // -32 * (sum of each half of q): Q6_K
    float scale;         // of the high part: absmax / 127
    float scaled_sum;    // of the high part: scale * (sum of both parts), for formats with a minimum
    int32_t unused;
};

// One group of 32 activations: x = scale * (high.q + low.q * kFine). The low part has what rounding to 8 bits leaves, so
// that products are as good as fp32 ones, and the cost is a second integer product on weights already unpacked.
struct Record {
    Part high, low;
};
static_assert(sizeof(Record) == 128, "a record is two cache lines");

constexpr float kFine = 1.0f / 254.0f;

// Where the records of several rows lie: blocks of rows, group by group inside, so that what is used together is together.
struct Records {
    Record* data;
    int64_t groups, block;

    Record* row(int64_t r) const { return data + r / block * block * groups + r % block; }
    // From one group of a row to the next.
    int64_t step() const { return block; }
};

// Below this the reciprocal of the scale would overflow; such a group counts as zeros.
constexpr float kTiny = 1e-30f;

// Fills a part and returns the sum of its numbers.
inline int32_t fill_part(Ints first, Ints second, Part* out) {
    store_bytes(out->q, first);
    store_bytes(out->q + 16, second);
    const int32_t sum_first = reduce_add(first), sum_second = reduce_add(second), sum = sum_first + sum_second;
    out->start_4 = -8 * sum;
    out->start_5 = -16 * sum;
    out->start_8 = -128 * sum;
    out->start_6[0] = -32 * sum_first;
    out->start_6[1] = -32 * sum_second;
    out->scale = out->scaled_sum = 0.0f;
    out->unused = 0;
    return sum;
}

inline void quantize_group(Floats a, Floats b, Record* out) {
    const float peak = reduce_max(max(absolute(a), absolute(b)));
    const float inverse = peak > kTiny ? 127.0f / peak : 0.0f;
    const Floats x = mul(a, splat(inverse)), y = mul(b, splat(inverse)), steps = splat(254.0f);
    const Ints high_x = to_ints(x), high_y = to_ints(y);
    const Ints low_x = to_ints(mul(sub(x, to_floats(high_x)), steps));
    const Ints low_y = to_ints(mul(sub(y, to_floats(high_y)), steps));
    const int32_t high = fill_part(high_x, high_y, &out->high), low = fill_part(low_x, low_y, &out->low);
    out->high.scale = peak > kTiny ? peak / 127.0f : 0.0f;
    out->high.scaled_sum = out->high.scale * __builtin_fmaf(static_cast<float>(low), kFine, static_cast<float>(high));
}

inline void quantize_row(const float* x, int64_t columns, Record* out, int64_t step) {
    for (int64_t g = 0; g < columns / kGroup; ++g, out += step)
        quantize_group(load(x + 32 * g), load(x + 32 * g + 16), out);
}

// x / sqrt(mean(x^2) + eps) * weight, quantised.
inline void norm_and_quantize_row(const float* x, const float* weight, int64_t columns, float eps, Record* out,
                                  int64_t step) {
    Floats squares = zeros();
    for (int64_t i = 0; i < columns; i += 16) squares = fma(load(x + i), load(x + i), squares);
    const float mean = reduce_add(squares) / static_cast<float>(columns);
    const Floats factor = splat(1.0f / std::sqrt(mean + eps));
    for (int64_t g = 0; g < columns / kGroup; ++g, out += step) {
        const float *p = x + 32 * g, *w = weight + 32 * g;
        quantize_group(mul(mul(load(p), factor), load(w)), mul(mul(load(p + 16), factor), load(w + 16)), out);
    }
}

// e^x for x <= 88, 0 below -87. The range is cut to half an octave and a polynomial of degree 6 does the rest.
inline Floats exponential(Floats x) {
    const Floats inside = min(max(x, splat(-87.0f)), splat(88.0f));
    const Floats n = round_even(mul(inside, splat(1.44269504088896341f)));
    Floats r = fma(n, splat(-0.693359375f), inside);
    r = fma(n, splat(2.12194440e-4f), r);
    Floats p = splat(1.9875691500e-4f);
    p = fma(p, r, splat(1.3981999507e-3f));
    p = fma(p, r, splat(8.3334519073e-3f));
    p = fma(p, r, splat(4.1665795894e-2f));
    p = fma(p, r, splat(1.6666665459e-1f));
    p = fma(p, r, splat(5.0000001201e-1f));
    p = add(fma(p, mul(r, r), r), splat(1.0f));
    return where_less(x, splat(-87.0f), zeros(), scale_by_power(p, n));
}

inline Floats silu(Floats x) { return div(x, add(splat(1.0f), exponential(sub(zeros(), x)))); }

}  // namespace
