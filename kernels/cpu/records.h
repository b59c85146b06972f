// Quantised activations: how they are made and how they lie.
//
// A group of 32 is x = scale * (high + low * kFine) with two parts of 8 bits: the low part has what rounding to 8 bits
// leaves, so that products are as good as fp32 ones, and the cost is a second integer product on weights already
// unpacked. A group with NaN or infinity in it has the scale NaN, so that nothing hides them.
//
// Records lie in blocks of rows, group by group inside: first the codes of all rows of the block, then their terms. So
// what is used together is together, and the 2 n parts of n rows are the rows of one AMX operand, 32 bytes apart.
#pragma once
#include <cmath>
#include <cstdint>

#include "packed_format.h"

namespace {

enum : int { kHigh, kLow };

struct alignas(64) Codes {
    int8_t part[2][32];
};

// What a product needs of a group beside its codes. The starts are sums of the codes of each part times the weights'
// offset, for instruction sets that multiply unsigned levels.
struct alignas(64) Terms {
    float scale;          // absmax / 127
    float scaled_sum;     // scale * (sum of the high part + kFine * sum of the low part), for formats with a minimum
    int32_t start_4[2];   // -8 * sum: Q4_0
    int32_t start_5[2];   // -16 * sum: Q5_0
    int32_t start_8[2];   // -128 * sum: biased Q8_0
    int32_t start_6[2][2];  // -32 * (sum of each half): Q6_K
    int32_t unused[4];
};
constexpr int64_t kRecordBytes = sizeof(Codes) + sizeof(Terms);
static_assert(kRecordBytes == 128, "a record is two cache lines");

constexpr float kFine = 1.0f / 254.0f;
// Below this the reciprocal of the scale would overflow; such a group counts as zeros.
constexpr float kTiny = 1e-30f;
// Rows of a block when there are many.
constexpr int64_t kBlockRows = 8;

// One block of rows from some group on.
struct RecordBlock {
    const uint8_t* data;
    int64_t block;

    const Codes& codes(int64_t row) const { return reinterpret_cast<const Codes*>(data)[row]; }
    const Terms& terms(int64_t row) const { return reinterpret_cast<const Terms*>(data)[block + row]; }
    RecordBlock at(int64_t group) const { return {data + group * block * kRecordBytes, block}; }
};

// Where the groups of one row go.
struct RowOut {
    uint8_t* codes;
    uint8_t* terms;
    int64_t step;  // bytes from one group to the next

    RowOut at(int64_t group) const { return {codes + group * step, terms + group * step, step}; }
};

// The records of several rows of `groups` groups.
struct Records {
    uint8_t* data;
    int64_t groups, rows, block;

    Records(uint8_t* data, int64_t groups, int64_t rows)
        : data(data), groups(groups), rows(rows), block(block_of(rows)) {}
    static int64_t block_of(int64_t rows) { return rows < kBlockRows ? rows : kBlockRows; }
    static int64_t bytes(int64_t rows, int64_t groups) { return (rows + kBlockRows) * groups * kRecordBytes; }

    RowOut row(int64_t r) const {
        uint8_t* start = data + r / block * block * groups * kRecordBytes;
        const auto lines = reinterpret_cast<Codes*>(start) + r % block;
        return {reinterpret_cast<uint8_t*>(lines), reinterpret_cast<uint8_t*>(lines + block), block * kRecordBytes};
    }
    // The block that starts with row `r`, a multiple of the block's rows.
    RecordBlock rows_from(int64_t r) const { return {data + r * groups * kRecordBytes, block}; }
};

inline void quantize_group(Floats a, Floats b, RowOut out) {
    auto* codes = reinterpret_cast<Codes*>(out.codes);
    auto* terms = reinterpret_cast<Terms*>(out.terms);
    const float peak = reduce_max(max(absolute(a), absolute(b)));
    // Infinities of both signs add up to NaN; one alone is the peak.
    const bool is_finite = !any_nan(add(a, b)) && peak < INFINITY;
    const bool is_zero = !is_finite || peak <= kTiny;
    const float inverse = is_zero ? 0.0f : 127.0f / peak;
    const Floats zero = zeros(), steps = splat(254.0f);
    const Floats x = is_finite ? mul(a, splat(inverse)) : zero, y = is_finite ? mul(b, splat(inverse)) : zero;
    const Ints high_x = to_ints(x), high_y = to_ints(y);
    store_bytes(codes->part[kHigh], high_x);
    store_bytes(codes->part[kHigh] + 16, high_y);
    store_bytes(codes->part[kLow], to_ints(mul(sub(x, to_floats(high_x)), steps)));
    store_bytes(codes->part[kLow] + 16, to_ints(mul(sub(y, to_floats(high_y)), steps)));
    int32_t sums[4];
    sum_quarters(codes->part[0], sums);
    float both[2];
    for (int part = 0; part < 2; ++part) {
        const int32_t first = sums[2 * part], second = sums[2 * part + 1], sum = first + second;
        terms->start_4[part] = -8 * sum;
        terms->start_5[part] = -16 * sum;
        terms->start_8[part] = -128 * sum;
        terms->start_6[part][0] = -32 * first;
        terms->start_6[part][1] = -32 * second;
        both[part] = static_cast<float>(sum);
    }
    terms->scale = !is_finite ? NAN : is_zero ? 0.0f : peak / 127.0f;
    terms->scaled_sum = terms->scale * __builtin_fmaf(both[kLow], kFine, both[kHigh]);
}

inline void quantize_row(const float* x, int64_t columns, RowOut out) {
    for (int64_t g = 0; g < columns / kGroup; ++g) quantize_group(load(x + 32 * g), load(x + 32 * g + 16), out.at(g));
}

}  // namespace
