// Up to 8 rows against an open chunk, or against packed tiles, with AMX: one tile product makes the int32 sums of a whole
// group for both parts of 8 rows and 16 outputs; scales are applied as everywhere else, so the results are the same bits.
//
// Groups taken apart hold signed levels (the offset already taken off), and their 8 vectors are the product's B operand as
// they lie. A operand: the codes of a block, high and low part of a row by turns. Two tiles share it. The products of one
// group are made and those of the next stored while the scales of the one before are applied.
#pragma once
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <new>
#include <type_traits>

#include "elementwise.h"
#include "unpack.h"

namespace {

// From this many rows on a tile product beats dot products. It keeps one of the two vector ports for 16 cycles.
constexpr int kTileRows = 4;

// Tile registers: sums (0 to 3), activations (4, 5), levels (6, 7); for Q6_K of 16 inputs each, else of 32.
class BlockScope {
  public:
    ~BlockScope() {
        if (rows_) _tile_release();
    }

    void prepare(int64_t rows, int64_t format) {
        if (shape_of(static_cast<int>(format)).is_float()) return;
        const bool halves = format == kQ6_K;
        if (rows == rows_ && halves == halves_) return;
        rows_ = rows;
        halves_ = halves;
        struct alignas(64) Config {
            uint8_t palette = 1, start = 0, unused[14] = {};
            uint16_t row_bytes[16] = {64, 64, 64, 64, 32, 32, 64, 64};
            uint8_t rows[16] = {};
        } config;
        if (halves) config.row_bytes[4] = config.row_bytes[5] = 16;
        for (int i = 0; i < 6; ++i) config.rows[i] = static_cast<uint8_t>(2 * rows);
        for (int i = 6; i < 8; ++i) config.rows[i] = halves ? 4 : 8;
        _tile_loadconfig(&config);
    }

  private:
    int64_t rows_ = 0;
    bool halves_ = false;
};

// The sums of one tile's group: of each part of each row, in turns; for Q6_K of both halves apart.
struct Sums {
    alignas(64) int32_t of[2][2 * kBlockRows][16];
};

// SUM = activations in register A times levels. A macro, since registers are literals.
#define INGLENOOK_TILE_PRODUCT(SUM, A, B, LEVELS) \
    do {                                          \
        _tile_zero(SUM);                          \
        _tile_loadd(B, (LEVELS), 64);             \
        _tile_dpbssd(SUM, A, B);                  \
    } while (false)

// Starts the products of a group and one or two tiles, a stride apart: into the registers that `store_sums` of that parity
// takes.
template <int FORMAT, int TILES, int PARITY>
inline void start_sums(const uint8_t* open, int64_t stride, const RecordBlock& x) {
    const int8_t* q = x.codes(0).part[0];
    if constexpr (FORMAT == kQ6_K) {
        _tile_loadd(4, q, 32);
        INGLENOOK_TILE_PRODUCT(0, 4, 6, open);
        if constexpr (TILES == 2) INGLENOOK_TILE_PRODUCT(1, 4, 7, open + stride);
        _tile_loadd(5, q + 16, 32);
        INGLENOOK_TILE_PRODUCT(2, 5, 6, open + 256);
        if constexpr (TILES == 2) INGLENOOK_TILE_PRODUCT(3, 5, 7, open + 256 + stride);
    } else if constexpr (PARITY == 0) {
        _tile_loadd(4, q, 32);
        INGLENOOK_TILE_PRODUCT(0, 4, 6, open);
        if constexpr (TILES == 2) INGLENOOK_TILE_PRODUCT(1, 4, 7, open + stride);
    } else {
        _tile_loadd(5, q, 32);
        INGLENOOK_TILE_PRODUCT(2, 5, 6, open);
        if constexpr (TILES == 2) INGLENOOK_TILE_PRODUCT(3, 5, 7, open + stride);
    }
}

template <int FORMAT, int TILES, int PARITY>
inline void store_sums(Sums* sums) {
    if constexpr (FORMAT == kQ6_K) {
        _tile_stored(0, sums[0].of[0], 64);
        _tile_stored(2, sums[0].of[1], 64);
        if constexpr (TILES == 2) {
            _tile_stored(1, sums[1].of[0], 64);
            _tile_stored(3, sums[1].of[1], 64);
        }
    } else if constexpr (PARITY == 0) {
        _tile_stored(0, sums[0].of[0], 64);
        if constexpr (TILES == 2) _tile_stored(1, sums[1].of[0], 64);
    } else {
        _tile_stored(2, sums[0].of[0], 64);
        if constexpr (TILES == 2) _tile_stored(3, sums[1].of[0], 64);
    }
}

template <int FORMAT>
inline Floats sum_of(const Sums& sums, int64_t at, const Scales& s) {
    const Floats first = to_floats(load_ints(sums.of[0][at]));
    if constexpr (FORMAT == kQ6_K) return fma(to_floats(load_ints(sums.of[1][at])), s.sub[1], mul(first, s.sub[0]));
    return first;
}

// acc[tile][row] += the products of a group: its sums, times the scales that lie `stride` apart behind its levels.
template <int FORMAT, int ROWS, int TILES>
__attribute__((always_inline)) inline void apply_sums(Floats (*acc)[ROWS], const Sums* sums, const uint8_t* open, int64_t stride, const RecordBlock& x) {
#pragma GCC unroll 2
    for (int i = 0; i < TILES; ++i) {
        const Scales s = OpenChunk<FORMAT>(open + i * stride).scales(0);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r)
            acc[i][r] = scale_sum<FORMAT>(acc[i][r], sum_of<FORMAT>(sums[i], 2 * r + kHigh, s),
                                          sum_of<FORMAT>(sums[i], 2 * r + kLow, s), s, x.terms(r));
    }
}

// Adds the products of the open chunks of one or two tiles and ROWS rows to acc[tile][row][lane], tiles a stride apart.
// Asks for memory `ahead` of each tile unless that is null.
template <int FORMAT, int ROWS, int TILES>
inline void multiply_by_tiles(const uint8_t* open, int64_t groups, const RecordBlock& x, const uint8_t* const* ahead,
                              float* out, int64_t stride) {
    Sums sums[2][TILES];
    Floats acc[TILES][ROWS];
    for (int i = 0; i < TILES; ++i)
        for (int r = 0; r < ROWS; ++r) acc[i][r] = load(out + i * stride + 16 * r);
    const auto start = [&](int64_t g, auto parity) __attribute__((always_inline)) {
        if (g < groups)
            start_sums<FORMAT, TILES, decltype(parity)::value>(open + g * kOpenGroupBytes, kOpenChunkBytes, x.at(g));
    };
    const auto apply = [&](int64_t g, auto parity) __attribute__((always_inline)) {
        for (int i = 0; i < TILES; ++i)
            if (ahead[i]) prefetch_group<FORMAT>(ahead[i] + g * kGroupStep<FORMAT>);
        apply_sums<FORMAT, ROWS, TILES>(acc, sums[decltype(parity)::value], open + g * kOpenGroupBytes, kOpenChunkBytes,
                                        x.at(g));
    };
    constexpr std::integral_constant<int, 0> even{};
    constexpr std::integral_constant<int, 1> odd{};
    start(0, even);
    store_sums<FORMAT, TILES, 0>(sums[0]);
    start(1, odd);
    for (int64_t g = 0; g < groups; g += 2) {
        if (g + 1 < groups) store_sums<FORMAT, TILES, 1>(sums[1]);
        start(g + 2, even);
        apply(g, even);
        if (g + 1 == groups) break;
        if (g + 2 < groups) store_sums<FORMAT, TILES, 0>(sums[0]);
        start(g + 3, odd);
        apply(g + 1, odd);
    }
    for (int i = 0; i < TILES; ++i)
        for (int r = 0; r < ROWS; ++r) store(out + i * stride + 16 * r, acc[i][r]);
}

// ROWS rows against one or two packed tiles in one pass over their bytes; writes out[tile][row][lane]. Groups are taken
// apart into a ring in the first cache, two ahead of their products.
template <int FORMAT, int ROWS, int TILES>
inline void multiply_packed(const TileBytes* tiles, int64_t groups, RecordBlock x, float* out) {
    constexpr int64_t kRing = 4;
    alignas(64) uint8_t ring[kRing][TILES][kOpenGroupBytes];
    alignas(Chunk<FORMAT>) uint8_t chunks[TILES][sizeof(Chunk<FORMAT>)];
    Sums sums[2][TILES];
    Floats acc[TILES][ROWS];
    for (int i = 0; i < TILES; ++i)
        for (int r = 0; r < ROWS; ++r) acc[i][r] = zeros();
    x.block = ROWS;
    int64_t offset = 0;
    const uint8_t* ahead[TILES];
    const auto open = [&](int64_t g) __attribute__((always_inline)) {
        if (g >= groups) return;
        if (g % kChunkGroups == 0) {
            const int64_t count = std::min(groups - g, kChunkGroups);
            for (int i = 0; i < TILES; ++i) {
                new (chunks[i]) Chunk<FORMAT>(tiles[i].data + offset, count);
                ahead[i] = tiles[i].ahead(offset);
            }
            offset += chunk_bytes(FORMAT, count);
        }
#pragma GCC unroll 2
        for (int i = 0; i < TILES; ++i) {
            prefetch_group<FORMAT>(ahead[i] + g % kChunkGroups * kGroupStep<FORMAT>);
            open_group<FORMAT>(*reinterpret_cast<const Chunk<FORMAT>*>(chunks[i]), g % kChunkGroups, ring[g % kRing][i]);
        }
    };
    const auto start = [&](int64_t g, auto parity) __attribute__((always_inline)) {
        if (g < groups)
            start_sums<FORMAT, TILES, decltype(parity)::value>(ring[g % kRing][0], kOpenGroupBytes, x.at(g));
    };
    const auto apply = [&](int64_t g, auto parity) __attribute__((always_inline)) {
        apply_sums<FORMAT, ROWS, TILES>(acc, sums[decltype(parity)::value], ring[g % kRing][0], kOpenGroupBytes, x.at(g));
    };
    constexpr std::integral_constant<int, 0> even{};
    constexpr std::integral_constant<int, 1> odd{};
    open(0);
    open(1);
    start(0, even);
    for (int64_t g = 0; g < groups; g += 2) {
        open(g + 2);
        store_sums<FORMAT, TILES, 0>(sums[0]);
        start(g + 1, odd);
        apply(g, even);
        if (g + 1 == groups) break;
        open(g + 3);
        store_sums<FORMAT, TILES, 1>(sums[1]);
        start(g + 2, even);
        apply(g + 1, odd);
    }
    for (int i = 0; i < TILES; ++i)
        for (int r = 0; r < ROWS; ++r) store(out + 16 * (i * ROWS + r), acc[i][r]);
}

// Linux gives a process tile registers when it asks for them.
inline bool may_use_tiles() {
    constexpr long request = 0x1023, tile_data = 18;
    return syscall(SYS_arch_prctl, request, tile_data) == 0;
}

}  // namespace
