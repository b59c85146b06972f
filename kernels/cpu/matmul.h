// Products of packed weights and quantised activations: one arithmetic at every number of rows.
//
//   isum = sum of level * q over a group of 32, less the offset: an exact int32
//          (Q6_K: sub-scale 0 * sum of 16 + sub-scale 1 * sum of 16, below 2^24 and so exact in fp32 too)
//   acc  = fma(float(isum), scale_w * scale_x, acc)            for each group in ascending order
//   acc  = fma(minimum_w, scaled_sum_x, acc)                   right after it, for formats with a minimum
//
// Lanes are output rows, so nothing ever crosses a lane, and rows of activations never meet: any blocking gives the same.
#pragma once
#include <algorithm>
#include <cstdint>

#include "elementwise.h"
#include "unpack.h"

namespace {

// How far ahead of its use packed data is asked for: close by into the first cache, and two pages ahead, where hardware
// prefetchers do not reach, into the second.
constexpr int64_t kNear = 1024;
constexpr int64_t kFar = 8192;

template <int FORMAT>
inline Floats accumulate(Floats acc, const Bytes* w, const Scales& s, const Record& x) {
    constexpr FormatShape shape = shape_of(FORMAT);
    Floats product;
    if constexpr (FORMAT == kQ6_K) {
        const Floats first = to_floats(dot<6, 4>(splat_int(x.start_6[0]), w, x.q));
        const Floats second = to_floats(dot<6, 4>(splat_int(x.start_6[1]), w + 4, x.q + 16));
        product = fma(second, s.sub[1], mul(first, s.sub[0]));
    } else {
        int32_t start = 0;
        if constexpr (FORMAT == kQ4_0) start = x.start_4;
        if constexpr (FORMAT == kQ5_0) start = x.start_5;
        if constexpr (FORMAT == kQ8_0 && kBiasedBytes) start = x.start_8;
        product = to_floats(dot<shape.bits, 8>(splat_int(start), w, x.q));
    }
    acc = fma(product, mul(s.scale, splat(x.scale)), acc);
    if constexpr (shape.has_min) acc = fma(s.minimum, splat(x.scaled_sum), acc);
    return acc;
}

// A few rows of activations against one packed tile, in one pass over its bytes. Writes acc[row][lane].
template <int FORMAT, int ROWS>
inline void multiply_packed(const uint8_t* packed, int64_t groups, const Record* x, int64_t stride, float* out) {
    constexpr int lines = (shape_of(FORMAT).quant_bytes + 64 + 63) / 64;
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = zeros();
    for (int64_t first = 0; first < groups; first += kChunkGroups) {
        const int64_t count = std::min(groups - first, kChunkGroups);
        const Chunk<FORMAT> chunk(packed, count);
        for (int64_t g = 0; g < count; ++g, ++x) {
            for (int i = 0; i < lines; ++i, packed += 64) {
                prefetch(packed + kNear);
                prefetch_far(packed + kFar);
            }
            Bytes w[8];
            chunk.weights(g, w);
            const Scales s = chunk.scales(g);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) acc[r] = accumulate<FORMAT>(acc[r], w, s, x[r * stride]);
        }
        packed = chunk.end(count);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * r, acc[r]);
}

// The same against a tile that open_tile took apart.
template <int FORMAT, int ROWS>
inline void multiply_open(const uint8_t* open, int64_t groups, const Record* x, int64_t stride, float* out) {
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = zeros();
    const OpenChunk<FORMAT> chunk(open);
    for (int64_t g = 0; g < groups; ++g) {
        Bytes w[8];
        chunk.weights(g, w);
        const Scales s = chunk.scales(g);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) acc[r] = accumulate<FORMAT>(acc[r], w, s, x[r * stride + g]);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * r, acc[r]);
}

using Multiply = void (*)(const uint8_t*, int64_t, const Record*, int64_t, float*);

// The kernels of one format; `packed` and `open` are indexed by the number of rows.
struct Kernels {
    Multiply packed[kMaxRows + 1];
    Multiply open[kMaxRows + 1];
    void (*open_tile)(const uint8_t*, int64_t, uint8_t*);
};

template <int FORMAT, int ROWS = kMaxRows>
constexpr void fill(Kernels& kernels) {
    if constexpr (ROWS > 0) {
        kernels.packed[ROWS] = multiply_packed<FORMAT, ROWS>;
        kernels.open[ROWS] = multiply_open<FORMAT, ROWS>;
        fill<FORMAT, ROWS - 1>(kernels);
    }
}

template <int FORMAT>
constexpr Kernels kernels_of() {
    Kernels kernels{};
    fill<FORMAT>(kernels);
    kernels.open_tile = open_tile<FORMAT>;
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

// Up to kTilesTogether tiles, all of the same number of columns, against all rows. Calls consume(first row, rows, values)
// with values[(tile * kMaxRows + row) * 16 + lane]. `scratch` holds kTilesTogether open tiles.
template <class Consume>
inline void multiply_tiles(const TileRef* tiles, int count, const Record* x, int64_t stride, int64_t rows,
                           uint8_t* scratch, Consume consume) {
    const int64_t columns = tiles[0].matrix->columns, groups = columns / kGroup;
    alignas(64) float values[kTilesTogether * kMaxRows * 16];
    const auto packed = [&](int i) {
        const Matrix& matrix = *tiles[i].matrix;
        return matrix.data + tiles[i].tile * tile_bytes(static_cast<int>(matrix.format), columns);
    };
    if (rows <= kMaxRows) {
        for (int i = 0; i < count; ++i)
            kKernels[tiles[i].matrix->format].packed[rows](packed(i), groups, x, stride, values + i * kMaxRows * 16);
        consume(int64_t{0}, rows, values);
        return;
    }
    for (int i = 0; i < count; ++i)
        kKernels[tiles[i].matrix->format].open_tile(packed(i), groups, scratch + i * groups * kOpenGroupBytes);
    for (int64_t first = 0; first < rows; first += kMaxRows) {
        const int64_t block = std::min<int64_t>(rows - first, kMaxRows);
        for (int i = 0; i < count; ++i)
            kKernels[tiles[i].matrix->format].open[block](scratch + i * groups * kOpenGroupBytes, groups,
                                                          x + first * stride, stride, values + i * kMaxRows * 16);
        consume(first, block, values);
    }
}

}  // namespace
