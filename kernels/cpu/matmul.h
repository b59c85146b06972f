// Products of packed weights and quantised activations: one arithmetic at every number of rows.
//
//   part = sum of level * q over a group of 32, less the offset: an exact int32
//          (Q6_K: sub-scale 0 * sum of 16 + sub-scale 1 * sum of 16, below 2^24 and so exact in fp32 too)
//   sum  = fma(float(low part), kFine, float(high part))
//   acc  = fma(sum, scale_w * scale_x, acc)                    for each group in ascending order
//   acc  = fma(minimum_w, scaled_sum_x, acc)                   right after it, for formats with a minimum
//
// Floats (fp16, bf16, float8) meet the numbers that the same codes stand for, one input after another:
//
//   x    = fma(float(low code), kFine, float(high code))
//   sum  = (fma(w, x, ...) over the even inputs of a group) + (the same over the odd ones)
//   acc  = fma(sum, scale_w * scale_x, acc)
//
// Lanes are output rows, so nothing ever crosses a lane, and rows of activations never meet: any blocking gives the same.
// A few rows meet a tile in one pass over its packed bytes. With more, a chunk of a tile is taken apart into the first
// cache and meets block after block of rows, whose sums wait in memory from chunk to chunk.
#pragma once
#include <algorithm>
#include <cstdint>

#include "elementwise.h"
#include "unpack.h"

namespace {

template <int FORMAT>
inline Floats scale_sum(Floats acc, Floats high, Floats low, const Scales& s, const Terms& x) {
    const Floats sum = fma(low, splat(kFine), high);
    acc = fma(sum, mul(s.scale, splat(x.scale)), acc);
    if constexpr (shape_of(FORMAT).has_min) acc = fma(s.minimum, splat(x.scaled_sum), acc);
    return acc;
}

template <int FORMAT>
inline Floats part_product(const Bytes* w, const Scales& s, const Codes& codes, const Terms& terms, int part) {
    const int8_t* q = codes.part[part];
    if constexpr (FORMAT == kQ6_K) {
        const Floats first = to_floats(dot<6, 4>(splat_int(terms.start_6[part][0]), w, q));
        const Floats second = to_floats(dot<6, 4>(splat_int(terms.start_6[part][1]), w + 4, q + 16));
        return fma(second, s.sub[1], mul(first, s.sub[0]));
    } else {
        int32_t start = 0;
        if constexpr (FORMAT == kQ4_0) start = terms.start_4[part];
        if constexpr (FORMAT == kQ5_0) start = terms.start_5[part];
        if constexpr (shape_of(FORMAT).bits == 8 && kBiasedBytes) start = terms.start_8[part];
        return to_floats(dot<shape_of(FORMAT).bits, 8>(splat_int(start), w, q));
    }
}

template <int FORMAT>
inline Floats accumulate(Floats acc, const Bytes* w, const Scales& s, const RecordBlock& x, int64_t row) {
    const Codes& codes = x.codes(row);
    const Terms& terms = x.terms(row);
    return scale_sum<FORMAT>(acc, part_product<FORMAT>(w, s, codes, terms, kHigh),
                             part_product<FORMAT>(w, s, codes, terms, kLow), s, terms);
}

// Adds a group of floats times ROWS rows of a block, from `row` on, to acc[row].
template <int FORMAT, int ROWS>
inline void accumulate_some_floats(Floats* acc, const uint8_t* floats, const Scales& s, const RecordBlock& x, int64_t row) {
    alignas(64) float values[ROWS][kGroup];
    Floats even[ROWS], odd[ROWS];
    for (int r = 0; r < ROWS; ++r) {
        const Codes& codes = x.codes(row + r);
        for (int half = 0; half < 32; half += 16)
            store(values[r] + half,
                  fma(load_signed(codes.part[kLow] + half), splat(kFine), load_signed(codes.part[kHigh] + half)));
        even[r] = odd[r] = zeros();
    }
#pragma GCC unroll 4
    for (int i = 0; i < kGroup; i += 2) {
        const Floats a = load_column<FORMAT>(floats, i), b = load_column<FORMAT>(floats, i + 1);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            even[r] = fma(a, splat(values[r][i]), even[r]);
            odd[r] = fma(b, splat(values[r][i + 1]), odd[r]);
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        Floats scale = splat(x.terms(row + r).scale);
        if constexpr (shape_of(FORMAT).float_bytes == 1) scale = mul(s.scale, scale);
        acc[r] = fma(add(even[r], odd[r]), scale, acc[r]);
    }
}

// Adds a group of weights times ROWS rows of a block, from `row` on, to acc[row].
template <int FORMAT, int ROWS, class Weights>
inline void accumulate_group(Floats* acc, const Weights& chunk, int64_t group, const RecordBlock& x, int64_t row) {
    const Scales s = chunk.scales(group);
    if constexpr (shape_of(FORMAT).is_float()) {
        constexpr int some = ROWS < kFloatRows ? ROWS : kFloatRows, rest = ROWS % some;
        const uint8_t* floats = chunk.floats(group);
        for (int r = 0; r + some <= ROWS; r += some) accumulate_some_floats<FORMAT, some>(acc + r, floats, s, x, row + r);
        if constexpr (rest > 0) accumulate_some_floats<FORMAT, rest>(acc + ROWS - rest, floats, s, x, row + ROWS - rest);
    } else {
        Bytes w[8];
        chunk.weights(group, w);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) acc[r] = accumulate<FORMAT>(acc[r], w, s, x, row + r);
    }
}

// A block of ROWS rows against one packed tile, in one pass over its bytes. Writes out[row][lane].
template <int FORMAT, int ROWS>
inline void multiply_direct(const TileBytes& tile, int64_t groups, RecordBlock x, float* out) {
    x.block = ROWS;
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = zeros();
    int64_t offset = 0;
    for (int64_t first = 0; first < groups; first += kChunkGroups) {
        const int64_t count = std::min(groups - first, kChunkGroups);
        const Chunk<FORMAT> chunk(tile.data + offset, count);
        for (int64_t g = 0; g < count; ++g, x = x.at(1)) {
            prefetch_group<FORMAT>(tile.ahead(offset + g * kGroupStep<FORMAT>));
            accumulate_group<FORMAT, ROWS>(acc, chunk, g, x, 0);
        }
        offset += chunk_bytes(FORMAT, count);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * r, acc[r]);
}

// Adds the products of an open chunk and ROWS rows of a block, from `row` on, to acc[row][lane]. Asks for memory `ahead`
// unless that is null.
template <int FORMAT, int ROWS>
inline void multiply_some(const uint8_t* open, int64_t groups, RecordBlock x, int64_t row, const uint8_t* ahead,
                          float* out) {
    Floats acc[ROWS];
    for (int r = 0; r < ROWS; ++r) acc[r] = load(out + 16 * (row + r));
    const OpenChunk<FORMAT> chunk(open);
    for (int64_t g = 0; g < groups; ++g, x = x.at(1)) {
        if (ahead) prefetch_group<FORMAT>(ahead + g * kGroupStep<FORMAT>);
        accumulate_group<FORMAT, ROWS>(acc, chunk, g, x, row);
    }
    for (int r = 0; r < ROWS; ++r) store(out + 16 * (row + r), acc[r]);
}

template <int FORMAT, int ROWS, int TILES>
inline void multiply_rows(const uint8_t* open, int64_t groups, const RecordBlock& x, const uint8_t* const* ahead,
                          float* out, int64_t stride) {
    constexpr int rest = ROWS % kRegisterRows;
    for (int i = 0; i < TILES; ++i, open += kOpenChunkBytes, out += stride) {
        for (int row = 0; row + kRegisterRows <= ROWS; row += kRegisterRows)
            multiply_some<FORMAT, kRegisterRows>(open, groups, x, row, row ? nullptr : ahead[i], out);
        if constexpr (rest > 0)
            multiply_some<FORMAT, rest>(open, groups, x, ROWS - rest, ROWS == rest ? ahead[i] : nullptr, out);
    }
}

#if defined(INGLENOOK_AMX)
}  // namespace
#include "matmul_amx.h"
namespace {
#else

constexpr int kTileRows = INT32_MAX;

// What a thread sets up before a run of blocks.
struct BlockScope {
    void prepare(int64_t, int64_t) {}
};

#endif

template <int FORMAT, int ROWS, int TILES>
inline void multiply_open(const uint8_t* open, int64_t groups, const RecordBlock& x, const uint8_t* const* ahead,
                          float* out, int64_t stride) {
#if defined(INGLENOOK_AMX)
    if constexpr (!shape_of(FORMAT).is_float()) return multiply_by_tiles<FORMAT, ROWS, TILES>(open, groups, x, ahead, out, stride);
#endif
    multiply_rows<FORMAT, ROWS, TILES>(open, groups, x, ahead, out, stride);
}

// A block of ROWS rows against one or two packed tiles. Writes out[tile][row][lane].
template <int FORMAT, int ROWS, int TILES>
inline void multiply_few(const TileBytes* tiles, int64_t groups, RecordBlock x, float* out) {
#if defined(INGLENOOK_AMX)
    if constexpr (ROWS >= kTileRows && !shape_of(FORMAT).is_float())
        return multiply_packed<FORMAT, ROWS, TILES>(tiles, groups, x, out);
#endif
    for (int i = 0; i < TILES; ++i) multiply_direct<FORMAT, ROWS>(tiles[i], groups, x, out + i * ROWS * kLanes);
}

// The kernels of one format: by the number of rows, against one packed tile, or two from kTileRows rows on, and against
// their open chunks.
struct Kernels {
    void (*few[2][kDirectRows + 1])(const TileBytes*, int64_t, RecordBlock, float*);
    int64_t (*open_chunk)(const uint8_t*, int64_t, uint8_t*);
    void (*open[2][kBlockRows + 1])(const uint8_t*, int64_t, const RecordBlock&, const uint8_t* const*,
                                        float*, int64_t);
};

// Open chunks have scales for every group of 32, so that groups of any size are multiplied by one kernel.
constexpr int opened_as(int format) {
    return format == kInt4G64 || format == kInt4G128 ? kQ4_1 : format == kInt8G64 || format == kInt8G128 ? kQ8_0
         : format == kFloat8G64 || format == kFloat8G128 ? kFloat8G32 : format;
}

template <int FORMAT, int ROWS = kBlockRows>
constexpr void fill(Kernels& kernels) {
    if constexpr (ROWS > 0) {
        if constexpr (ROWS <= kDirectRows) kernels.few[0][ROWS] = multiply_few<FORMAT, ROWS, 1>;
        if constexpr (ROWS <= kDirectRows && ROWS >= kTileRows) kernels.few[1][ROWS] = multiply_few<FORMAT, ROWS, 2>;
        kernels.open[0][ROWS] = multiply_open<opened_as(FORMAT), ROWS, 1>;
        kernels.open[1][ROWS] = multiply_open<opened_as(FORMAT), ROWS, 2>;
        fill<FORMAT, ROWS - 1>(kernels);
    }
}

template <int FORMAT>
constexpr Kernels kernels_of() {
    Kernels kernels{};
    fill<FORMAT>(kernels);
    kernels.open_chunk = open_chunk<FORMAT>;
    return kernels;
}

constexpr Kernels kKernels[kFormatCount] = {
    kernels_of<kQ4_0>(), kernels_of<kQ4_1>(), kernels_of<kQ5_0>(), kernels_of<kQ5_1>(),
    kernels_of<kQ8_0>(), kernels_of<kQ4_K>(), kernels_of<kQ5_K>(), kernels_of<kQ6_K>(),
    kernels_of<kInt4G64>(), kernels_of<kInt4G128>(), kernels_of<kInt8G64>(), kernels_of<kInt8G128>(),
    kernels_of<kFloat8G32>(), kernels_of<kFloat8G64>(), kernels_of<kFloat8G128>(), kernels_of<kF16>(), kernels_of<kBf16>(),
};

// Tiles worked on together: their activations come from the cache once for all of them.
constexpr int kTilesTogether = 4;

// How many of them a thread reads side by side.
inline int tiles_at_once(int64_t rows) { return rows > kDirectRows ? kTilesTogether : rows >= kTileRows ? 2 : 1; }

struct TileRef {
    const Matrix* matrix;
    TileBytes bytes;

    TileRef() = default;
    // `next` is the number of the tile that this thread reads where this one ends, of the same matrix or `other`.
    TileRef(const Matrix* matrix, int64_t tile, int64_t next, const Matrix* other = nullptr)
        : matrix(matrix), bytes{at(*matrix, tile), at(other ? *other : *matrix, next), size_of(*matrix)} {}

  private:
    static int64_t size_of(const Matrix& m) { return tile_bytes(static_cast<int>(m.format), m.columns); }
    static const uint8_t* at(const Matrix& m, int64_t tile) { return m.data + tile * size_of(m); }
};

// Rows of one pass over a matrix: as many as keep their records in the second cache.
constexpr int64_t kMaxPassRows = 256;
inline int64_t pass_rows(int64_t columns) {
    const int64_t rows = (int64_t{1} << 20) / (columns / kGroup * kRecordBytes) / kBlockRows * kBlockRows;
    return std::min<int64_t>(std::max<int64_t>(rows, 2 * kBlockRows), kMaxPassRows);
}

// Work space of one thread.
struct MatmulScratch {
    float* values;   // [kTilesTogether][rows of a pass][16]
    uint8_t* open;   // [kTilesTogether] open chunks
};

// Up to kTilesTogether tiles, all of the same number of columns, against `rows` rows from `first_row`, a multiple of
// kBlockRows. Leaves values[(tile * rows + row) * 16 + lane] in the scratch.
inline void multiply_tiles(const TileRef* tiles, int count, const Records& x, int64_t first_row, int64_t rows,
                           BlockScope& scope, const MatmulScratch& scratch) {
    const Kernels* kernels[kTilesTogether];
    for (int i = 0; i < count; ++i) kernels[i] = &kKernels[tiles[i].matrix->format];
    if (x.rows <= kDirectRows) {
        for (int i = 0, pair; i < count; i += 1 + pair) {
            pair = rows >= kTileRows && i + 1 < count && kernels[i + 1] == kernels[i];
            const TileBytes bytes[] = {tiles[i].bytes, tiles[i + pair].bytes};
            if (rows >= kTileRows) scope.prepare(rows, tiles[i].matrix->format);
            kernels[i]->few[pair][rows](bytes, x.groups, x.rows_from(first_row), scratch.values + i * rows * kLanes);
        }
        return;
    }
    std::fill(scratch.values, scratch.values + count * rows * kLanes, 0.0f);
    int64_t offsets[kTilesTogether] = {};
    for (int64_t first = 0; first < x.groups; first += kChunkGroups) {
        const int64_t groups = std::min(x.groups - first, kChunkGroups);
        const uint8_t* ahead[kTilesTogether];
        for (int i = 0; i < count; ++i) {
            ahead[i] = tiles[i].bytes.ahead(offsets[i]);
            offsets[i] += kernels[i]->open_chunk(tiles[i].bytes.data + offsets[i], groups, scratch.open + i * kOpenChunkBytes);
        }
        for (int64_t row = 0; row < rows; row += kBlockRows) {
            const int64_t block = std::min(rows - row, kBlockRows);
            const RecordBlock records = x.rows_from(first_row + row).at(first);
            for (int i = 0, pair; i < count; i += 1 + pair) {
                pair = i + 1 < count && kernels[i + 1] == kernels[i];
                scope.prepare(block, tiles[i].matrix->format);
                kernels[i]->open[pair][block](scratch.open + i * kOpenChunkBytes, groups, records, ahead + i,
                                              scratch.values + (i * rows + row) * kLanes, rows * kLanes);
            }
            std::fill(ahead, ahead + count, nullptr);
        }
    }
}

}  // namespace
