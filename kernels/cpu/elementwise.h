// Norms, exponential, activations and soft caps. One order of operations for every instruction set; all are written
// over the 16 lanes of vector_*.h, so a row of 16 n elements has one partial sum a lane and then one tree. NaN in is
// NaN out: `max` and `min` return their second argument where either is NaN, so the value in question comes second.
#pragma once
#include <cmath>
#include <cstdint>

#include "records.h"

namespace {

// 1 / sqrt(mean(x^2) + eps)
inline float norm_factor(const float* x, int64_t columns, float eps) {
    Floats squares = zeros();
    for (int64_t i = 0; i < columns; i += 16) squares = fma(load(x + i), load(x + i), squares);
    return 1.0f / std::sqrt(reduce_add(squares) / static_cast<float>(columns) + eps);
}

// x * factor * weight; `out` may be `x`.
inline void scale_row(const float* x, float factor, const float* weight, int64_t columns, float* out) {
    const Floats f = splat(factor);
    for (int64_t i = 0; i < columns; i += 16) store(out + i, mul(mul(load(x + i), f), load(weight + i)));
}

// x / sqrt(mean(x^2) + eps) * weight, quantised.
inline void norm_and_quantize_row(const float* x, const float* weight, int64_t columns, float eps, RowOut out) {
    const Floats factor = splat(norm_factor(x, columns, eps));
    for (int64_t g = 0; g < columns / kGroup; ++g) {
        const float *p = x + 32 * g, *w = weight + 32 * g;
        quantize_group(mul(mul(load(p), factor), load(w)), mul(mul(load(p + 16), factor), load(w + 16)), out.at(g));
    }
}

// e^x for x <= 88, 0 below -87. The range is cut to half an octave and a polynomial of degree 6 does the rest.
inline Floats exponential(Floats x) {
    const Floats inside = min(splat(88.0f), max(splat(-87.0f), x));
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

// 1 - 2 / (e^(2x) + 1): within a few units of 1e-7 of tanh, absolutely.
inline Floats hyperbolic_tangent(Floats x) {
    const Floats one = splat(1.0f);
    return sub(one, div(splat(2.0f), add(exponential(add(x, x)), one)));
}

// x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 x^3)))
inline Floats gelu_by_tanh(Floats x) {
    const Floats inner = fma(mul(mul(x, x), x), splat(0.044715f), x);
    const Floats t = hyperbolic_tangent(mul(inner, splat(0.7978845608028654f)));
    return mul(mul(x, splat(0.5f)), add(splat(1.0f), t));
}

inline Floats softcap(Floats x, float cap) { return mul(hyperbolic_tangent(div(x, splat(cap))), splat(cap)); }

}  // namespace
