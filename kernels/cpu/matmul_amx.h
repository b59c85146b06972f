// Blocks of 16 rows against an open tile with AMX: a tile product makes the int32 sums of a whole group for 16 rows and 16
// outputs; scales are applied as everywhere else, so the results are the same bits.
//
// Open tiles hold signed levels (the offset already taken off), and a group's 8 vectors are the product's B operand as they
// lie. A operand: the quantised activations inside 16 records, which follow one another. Sums of group g + 1 are made while the scales
// of group g are applied.
#pragma once
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elementwise.h"
#include "unpack.h"

namespace {

constexpr int kBlockRows = 16;

// Tile registers: sums (0, 1); activations (2, 6) and levels (3) of a group; of half a group (4 and 5, 7).
class BlockScope {
  public:
    ~BlockScope() { _tile_release(); }

    void set_rows(int64_t rows) {
        if (rows == rows_) return;
        rows_ = rows;
        struct alignas(64) Config {
            uint8_t palette = 1, start = 0, unused[14] = {};
            uint16_t row_bytes[16] = {64, 64, 32, 64, 16, 64, 32, 64};
            uint8_t rows[16] = {};
        } config;
        const auto count = static_cast<uint8_t>(rows);
        const uint8_t counts[8] = {count, count, count, 8, count, 4, count, 4};
        std::memcpy(config.rows, counts, 8);
        _tile_loadconfig(&config);
    }

  private:
    int64_t rows_ = 0;
};

using Sums = int32_t[kBlockRows][16];

// One tile product: rows of activations at Q times the levels in register B. A macro, since registers are literals.
#define INGLENOOK_TILE_PRODUCT(SUM, A, B, Q, OUT) \
    do {                                          \
        _tile_zero(SUM);                          \
        _tile_loadd(A, (Q), sizeof(Record));      \
        _tile_dpbssd(SUM, A, B);                  \
        _tile_stored(SUM, (OUT), 64);             \
    } while (false)

// The sums of a group's high (0, 1) and low (2, 3) part; for Q6_K of both halves apart.
template <int FORMAT>
inline void add_up(const uint8_t* open, const Record* x, Sums* sums) {
    if constexpr (FORMAT == kQ6_K) {
        _tile_loadd(5, open, 64);
        INGLENOOK_TILE_PRODUCT(0, 4, 5, x->high.q, sums[0]);
        INGLENOOK_TILE_PRODUCT(1, 4, 5, x->low.q, sums[2]);
        _tile_loadd(7, open + 256, 64);
        INGLENOOK_TILE_PRODUCT(0, 4, 7, x->high.q + 16, sums[1]);
        INGLENOOK_TILE_PRODUCT(1, 4, 7, x->low.q + 16, sums[3]);
    } else {
        _tile_loadd(3, open, 64);
        INGLENOOK_TILE_PRODUCT(0, 2, 3, x->high.q, sums[0]);
        INGLENOOK_TILE_PRODUCT(1, 6, 3, x->low.q, sums[2]);
    }
}

template <int FORMAT>
inline Floats part_product(const Sums* sums, int64_t r, const Scales& s) {
    const Floats first = to_floats(load_ints(sums[0][r]));
    if constexpr (FORMAT == kQ6_K) return fma(to_floats(load_ints(sums[1][r])), s.sub[1], mul(first, s.sub[0]));
    return first;
}

template <int FORMAT>
inline Floats scale_sums(Floats acc, const Sums* sums, int64_t r, const Scales& s, const Record& x) {
    const Floats sum = fma(part_product<FORMAT>(sums + 2, r, s), splat(kFine), part_product<FORMAT>(sums, r, s));
    acc = fma(sum, mul(s.scale, splat(x.high.scale)), acc);
    if constexpr (shape_of(FORMAT).has_min) acc = fma(s.minimum, splat(x.high.scaled_sum), acc);
    return acc;
}

template <int FORMAT, int ROWS>
inline void multiply_rows(const uint8_t* open, int64_t groups, const Record* x, int64_t rows, float* out) {
    alignas(64) Sums sums[2][4];
    Floats acc[kBlockRows];
    for (int r = 0; r < kBlockRows; ++r) acc[r] = zeros();
    const OpenChunk<FORMAT> chunk(open);
    const auto apply = [&](int64_t g) __attribute__((always_inline)) {
        const Scales s = chunk.scales(g);
        const Record* row = x + g * kBlockRows;
        if constexpr (ROWS == kBlockRows) {
#pragma GCC unroll 16
            for (int r = 0; r < kBlockRows; ++r) acc[r] = scale_sums<FORMAT>(acc[r], sums[g % 2], r, s, row[r]);
        } else {
            for (int64_t r = 0; r < rows; ++r) acc[r] = scale_sums<FORMAT>(acc[r], sums[g % 2], r, s, row[r]);
        }
    };
    add_up<FORMAT>(open, x, sums[0]);
    for (int64_t g = 0; g < groups; g += 2) {
        if (g + 1 < groups) add_up<FORMAT>(open + (g + 1) * kOpenGroupBytes, x + (g + 1) * kBlockRows, sums[1]);
        apply(g);
        if (g + 1 == groups) break;
        if (g + 2 < groups) add_up<FORMAT>(open + (g + 2) * kOpenGroupBytes, x + (g + 2) * kBlockRows, sums[0]);
        apply(g + 1);
    }
    for (int64_t r = 0; r < rows; ++r) store(out + 16 * r, acc[r]);
}

template <int FORMAT>
inline void multiply_block(const uint8_t* open, int64_t groups, const Record* x, int64_t rows, float* out) {
    if (rows == kBlockRows) return multiply_rows<FORMAT, kBlockRows>(open, groups, x, rows, out);
    multiply_rows<FORMAT, 0>(open, groups, x, rows, out);
}

// Linux gives a process tile registers when it asks for them.
inline bool may_use_tiles() {
    constexpr long request = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace
