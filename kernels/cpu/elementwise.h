// Norm, exponential, SiLU and the quantisation of activations. One order of operations for every instruction set; all
// are written over the 16 lanes of vector_*.h, so a row of 16 n elements has one partial sum a lane and then one tree.
#pragma once
#include <cmath>
#include <cstdint>

#include "packed_format.h"

namespace {

// One group of 32 quantised activations with all that a dot product needs of them: a cache line.
struct alignas(64) Record {
    int8_t q[32];
    float scale;          // absmax / 127
    float scaled_sum;     // scale * (sum of q), for formats with a minimum
    int32_t start_4;      // -8 * (sum of q): the offset of Q4_0
    int32_t start_5;      // -16 * (sum of q): Q5_0
    int32_t start_8;      // -128 * (sum of q): biased Q8_0
    int32_t start_6[2];   // -32 * (sum of each half of q): Q6_K
    int32_t unused;
};
static_assert(sizeof(Record) == 64, "a record is one cache line");

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

inline void quantize_group(Floats a, Floats b, Record* out) {
    const float peak = reduce_max(max(absolute(a), absolute(b)));
    const float inverse = peak > kTiny ? 127.0f / peak : 0.0f;
    const Ints low = to_ints(mul(a, splat(inverse))), high = to_ints(mul(b, splat(inverse)));
    store_bytes(out->q, low);
    store_bytes(out->q + 16, high);
    const int32_t sum_low = reduce_add(low), sum_high = reduce_add(high), sum = sum_low + sum_high;
    out->scale = peak > kTiny ? peak / 127.0f : 0.0f;
    out->scaled_sum = out->scale * static_cast<float>(sum);
    out->start_4 = -8 * sum;
    out->start_5 = -16 * sum;
    out->start_8 = -128 * sum;
    out->start_6[0] = -32 * sum_low;
    out->start_6[1] = -32 * sum_high;
    out->unused = 0;
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
