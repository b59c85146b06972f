// Products of matrices that share their activations, divided among threads: pass after pass of rows, in it tile after
// tile. Each unit of work writes outputs of its own.
#pragma once
#include <algorithm>
#include <cstdint>

#include "matmul.h"
#include "workers.h"

namespace {

// Outputs of one matrix: `stride` floats from row to row, written or added to; then times `scale`, capped at `cap`.
struct Product {
    const Matrix* matrix;
    float* out;
    int64_t stride;
    bool adds = false;
    float scale = 1.0f, cap = 0.0f;
};

inline Floats finished(const Product& product, Floats value) {
    if (product.scale != 1.0f) value = mul(value, splat(product.scale));
    return product.cap > 0.0f ? softcap(value, product.cap) : value;
}

inline void write_tile(const Product& product, int64_t tile, int64_t row, const float* values) {
    float* out = product.out + row * product.stride + tile * kLanes;
    const int64_t left = product.matrix->rows - tile * kLanes;
    const Floats value = finished(product, load(values));
    if (left >= kLanes) {
        store(out, product.adds ? add(load(out), value) : value);
        return;
    }
    alignas(64) float last[kLanes];
    store(last, value);
    for (int64_t i = 0; i < left; ++i) out[i] = product.adds ? out[i] + last[i] : last[i];
}

// Units that a thread takes at a time: of a few rows' work so many that they take about as long as 8 of one row.
inline int64_t grain_of(int64_t total, int64_t rows, int num_threads) {
    const int64_t fair = total / (num_threads * (rows > kBlockRows ? 3 : 6));
    const int64_t most = rows > kBlockRows ? 8 : std::max<int64_t>(8 / rows, tiles_at_once(rows));
    return std::max<int64_t>(1, std::min(fair, most));
}

inline void multiply(Workers& workers, int thread, int64_t operation, const Product* products, int count,
                     const Records& x, const MatmulScratch& scratch) {
    int64_t tiles = 0;
    for (int i = 0; i < count; ++i) tiles += num_tiles(products[i].matrix->rows);
    const int64_t pass = x.rows <= kBlockRows ? x.rows : pass_rows(x.groups * kGroup);
    const int at_once = tiles_at_once(x.rows);
    const int64_t units = (x.rows + pass - 1) / pass * tiles;
    BlockScope scope;
    workers.share(thread, operation, units, grain_of(units, x.rows, workers.size()), [&](int64_t first, int64_t last) {
        while (first < last) {
            const Product* product = products;
            const int64_t row = first / tiles * pass, rows = std::min(x.rows - row, pass);
            int64_t tile = first % tiles;
            while (tile >= num_tiles(product->matrix->rows)) tile -= num_tiles((product++)->matrix->rows);
            const int64_t end = std::min(tile + last - first, num_tiles(product->matrix->rows));
            const int together = static_cast<int>(std::min<int64_t>(end - tile, kTilesTogether));
            TileRef refs[kTilesTogether];
            for (int i = 0; i < together; ++i) refs[i] = TileRef(product->matrix, tile + i, tile + i + std::min(at_once, together));
            multiply_tiles(refs, together, x, row, rows, scope, scratch);
            for (int i = 0; i < together; ++i)
                for (int64_t r = 0; r < rows; ++r)
                    write_tile(*product, tile + i, row + r, scratch.values + (i * rows + r) * kLanes);
            first += together;
        }
    });
}

}  // namespace
