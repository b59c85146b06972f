// Products of packed weights and quantised activations: one arithmetic at every number of rows.
//
//   part = sum of level * q over a group of 32, less the offset: an exact int32
//          (Q6_K: sub-scale 0 * sum of 16 + sub-scale 1 * sum of 16, below 2^24 and so exact in fp32 too)
//   sum  = fma(float(low part), kFine, float(high part))
//   acc  = fma(sum, scale_w * scale_x, acc)                    for each group in ascending order
//   acc  = fma(minimum_w, scaled_sum_x, acc)                   right after it, for formats with a minimum
//
// Lanes are output rows, so nothing ever crosses a lane, and rows of activations never meet: any blocking gives the same.
#pragma once
#include <algorithm>
#include <cstdint>

#include "elementwise.h"
#include "unpack.h"

namespace {

template <int FORMAT>
inline Floats part_product(const Bytes* w, const Scales& s, const Part& x) {
    if constexpr (FORMAT == kQ6_K) {
        const Floats first = to_floats(dot<6, 4>(splat_int(x.start_6[0]), w, x.q));
        const Floats second = to_floats(dot<6, 4>(splat_int(x.start_6[1]), w + 4, x.q + 16));
        return fma(second, s.sub[1], mul(first, s.sub[0]));
    } else {
        int32_t start = 0;
        if constexpr (FORMAT == kQ4_0) start = x.start_4;
        if constexpr (FORMAT == kQ5_0) start = x.start_5;
        if constexpr (FORMAT == kQ8_0 && kBiasedBytes) start = x.start_8;
        return to_floats(dot<shape_of(FORMAT).bits, 8>(splat_int(start), w, x.q));
    }
}

template <int FORMAT>
inline Floats accumulate(Floats acc, const Bytes* w, const Scales& s, const Record& x) {
    const Floats sum = fma(part_product<FORMAT>(w, s, x.low), splat(kFine), part_product<FORMAT>(w, s, x.high));
    acc = fma(sum, mul(s.scale, splat(x.high.scale)), acc);
    if constexpr (shape_of(FORMAT).has_min) acc = fma(s.minimum, splat(x.high.scaled_sum), acc);
    return acc;
}

// A few rows of activations (records [group][row]) against one packed tile, in one pass over its bytes. Writes
// out[row][lane].
template <int FORMAT, int ROWS>
inline void multiply_packed(const uint8_t* packed, int64_t groups, const Record* x, float* out) {
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = zeros();
    for (int64_t first = 0; first < groups; first += kChunkGroups) {
        const int64_t count = std::min(groups - first, kChunkGroups);
        const Chunk<FORMAT> chunk(packed, count);
        for (int64_t g = 0; g < count; ++g, x += ROWS) {
            prefetch_group<FORMAT>(packed + g * (shape_of(FORMAT).quant_bytes + 64));
            Bytes w[8];
            chunk.weights(g, w);
            const Scales s = chunk.scales(g);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) acc[r] = accumulate<FORMAT>(acc[r], w, s, x[r]);
        }
        packed = chunk.end(count);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * r, acc[r]);
}

#if defined(INGLENOOK_AMX)
}  // namespace
#include "matmul_amx.h"
namespace {
#else

// Rows of activations that an open tile meets at a time.
constexpr int kBlockRows = kMaxRows;

// The first ROWS rows of a block of records [group][kBlockRows] against a tile that open_tile took apart.
template <int FORMAT, int ROWS>
inline void multiply_open(const uint8_t* open, int64_t groups, const Record* x, float* out) {
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = zeros();
    const OpenChunk<FORMAT> chunk(open);
    for (int64_t g = 0; g < groups; ++g, x += kBlockRows) {
        Bytes w[8];
        chunk.weights(g, w);
        const Scales s = chunk.scales(g);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) acc[r] = accumulate<FORMAT>(acc[r], w, s, x[r]);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * r, acc[r]);
}

template <int FORMAT, int ROWS = kMaxRows>
inline void multiply_block(const uint8_t* open, int64_t groups, const Record* x, int64_t rows, float* out) {
    if constexpr (ROWS > 0) {
        if (rows == ROWS) return multiply_open<FORMAT, ROWS>(open, groups, x, out);
        multiply_block<FORMAT, ROWS - 1>(open, groups, x, rows, out);
    }
}

// What a thread sets up before a run of blocks.
struct BlockScope {
    void set_rows(int64_t) {}
};

#endif

// The kernels of one format: few rows against packed bytes, by their number; and a block of rows against an open tile.
struct Kernels {
    void (*packed[kMaxRows + 1])(const uint8_t*, int64_t, const Record*, float*);
    void (*open_tile)(const uint8_t*, int64_t, uint8_t*);
    void (*block)(const uint8_t*, int64_t, const Record*, int64_t, float*);
};

template <int FORMAT, int ROWS = kMaxRows>
constexpr void fill(Kernels& kernels) {
    if constexpr (ROWS > 0) {
        kernels.packed[ROWS] = multiply_packed<FORMAT, ROWS>;
        fill<FORMAT, ROWS - 1>(kernels);
    }
}

template <int FORMAT>
constexpr Kernels kernels_of() {
    Kernels kernels{};
    fill<FORMAT>(kernels);
    kernels.open_tile = open_tile<FORMAT>;
    kernels.block = multiply_block<FORMAT>;
    return kernels;
}

constexpr Kernels kKernels[kFormatCount] = {
    kernels_of<kQ4_0>(), kernels_of<kQ4_1>(), kernels_of<kQ5_0>(), kernels_of<kQ5_1>(),
    kernels_of<kQ8_0>(), kernels_of<kQ4_K>(), kernels_of<kQ5_K>(), kernels_of<kQ6_K>(),
};

struct TileRef {
    const Matrix* matrix;
    int64_t tile;
};

// Tiles worked on together: their activations come from the cache once for all of them.
constexpr int kTilesTogether = 4;

// Rows of a block of records when there are `rows` in all.
inline int64_t block_of(int64_t rows) { return rows <= kMaxRows ? rows : kBlockRows; }

// Up to kTilesTogether tiles, all of the same number of columns, against all rows. Calls consume(first row, rows, values)
// with values[(tile * kBlockRows + row) * 16 + lane]. `scratch` holds kTilesTogether open tiles.
template <class Consume>
inline void multiply_tiles(const TileRef* tiles, int count, const Record* x, int64_t rows, uint8_t* scratch,
                           Consume consume) {
    const int64_t columns = tiles[0].matrix->columns, groups = columns / kGroup;
    alignas(64) float values[kTilesTogether * kBlockRows * 16];
    const auto packed = [&](int i) {
        const Matrix& matrix = *tiles[i].matrix;
        return matrix.data + tiles[i].tile * tile_bytes(static_cast<int>(matrix.format), columns);
    };
    if (rows <= kMaxRows) {
        for (int i = 0; i < count; ++i)
            kKernels[tiles[i].matrix->format].packed[rows](packed(i), groups, x, values + i * kBlockRows * 16);
        consume(int64_t{0}, rows, values);
        return;
    }
    for (int i = 0; i < count; ++i)
        kKernels[tiles[i].matrix->format].open_tile(packed(i), groups, scratch + i * groups * kOpenGroupBytes);
    BlockScope scope;
    for (int64_t first = 0; first < rows; first += kBlockRows) {
        const int64_t block = std::min<int64_t>(rows - first, kBlockRows);
        scope.set_rows(block);
        for (int i = 0; i < count; ++i)
            kKernels[tiles[i].matrix->format].block(scratch + i * groups * kOpenGroupBytes, groups, x + first * groups,
                                                    block, values + i * kBlockRows * 16);
        consume(first, block, values);
    }
}

}  // namespace
