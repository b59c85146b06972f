// Rotary embedding, the KV store, and attention over paged keys and values.
//
// Positions are cut into tiles of 64 anchored at position 0. Inside a tile: scores are chains of FMA over the head's
// elements, then one maximum, exponentials, their sum (16 lanes, then a tree) and a chain of FMA over positions in
// ascending order. Tiles are merged in ascending order. So a row's result depends on its own position and the stored
// keys and values only. Masked positions are skipped or have weight 0; what no token has written yet is never read.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "elementwise.h"

namespace {

constexpr int64_t kBlock = 16;
constexpr int64_t kTile = 64;
constexpr int kQueryRows = 4;
constexpr float kHalfMax = 65504.0f;

inline int64_t element_bytes(int64_t dtype) { return dtype == kFloat32 ? 4 : dtype == kInt8 ? 1 : 2; }

// Rotates the pairs (i, i + half), in place.
inline void rotate(float* x, const float* cosine, const float* sine, int64_t half) {
    int64_t i = 0;
    for (; i + 16 <= half; i += 16) {
        const Floats a = load(x + i), b = load(x + half + i), c = load(cosine + i), s = load(sine + i);
        store(x + i, fma(a, c, sub(zeros(), mul(b, s))));
        store(x + half + i, fma(b, c, mul(a, s)));
    }
    for (; i < half; ++i) {
        const float a = x[i], b = x[half + i];
        x[i] = __builtin_fmaf(a, cosine[i], 0.0f - b * sine[i]);
        x[half + i] = __builtin_fmaf(b, cosine[i], a * sine[i]);
    }
}

inline void add_bias(float* x, const float* bias, int64_t count) {
    for (int64_t i = 0; i < count; i += 16) store(x + i, add(load(x + i), load(bias + i)));
}

// Stores one head of one token; `at` counts heads of tokens in the tensor.
inline void store_head(const float* x, int64_t head_size, int64_t dtype, void* tensor, float* scales, int64_t at) {
    auto* out = static_cast<uint8_t*>(tensor) + at * head_size * element_bytes(dtype);
    float scale = 0.0f;
    if (dtype == kInt8) {
        Floats peak = zeros(), sum = zeros();
        for (int64_t i = 0; i < head_size; i += 16) {
            peak = max(absolute(load(x + i)), peak);
            sum = add(sum, load(x + i));
        }
        // NaN and infinities must not hide in rounding: such a head reads as NaN.
        const float most = reduce_max(peak);
        scale = any_nan(sum) || !(most < INFINITY) ? NAN : most / 127.0f;
        scales[at] = scale;
    }
    const Floats divisor = splat(scale > 0.0f ? scale : 1.0f);
    for (int64_t i = 0; i < head_size; i += 16) {
        const Floats v = load(x + i);
        if (dtype == kFloat32) store(reinterpret_cast<float*>(out) + i, v);
        // Large numbers are cut to what fits; v - v keeps NaN and makes infinities NaN.
        if (dtype == kFloat16)
            store_half(out + 2 * i, add(min(splat(kHalfMax), max(splat(-kHalfMax), v)), sub(v, v)));
        if (dtype == kBfloat16) store_bfloat(out + 2 * i, v);
        if (dtype == kInt8) store_bytes(reinterpret_cast<int8_t*>(out) + i, to_ints(div(v, divisor)));
    }
}

template <int DTYPE>
inline Floats load_elements(const uint8_t* head, int64_t i, float scale) {
    if constexpr (DTYPE == kFloat32) return load(reinterpret_cast<const float*>(head) + i);
    if constexpr (DTYPE == kFloat16) return load_half(head + 2 * i);
    if constexpr (DTYPE == kBfloat16) return load_bfloat(head + 2 * i);
    return mul(load_signed(reinterpret_cast<const int8_t*>(head) + i), splat(scale));
}

// One KV head of one sequence and a run of its tokens: queries (rotated and scaled) and
// results are [tokens, heads_per_kv, head_size], tokens a stride apart.
struct AttentionTask {
    const KvGroup* kv;
    const int32_t* block_table;
    const int64_t* positions;
    int64_t num_tokens, layer, kv_head, num_kv_heads, heads_per_kv, head_size;
    const float* queries;
    int64_t query_stride;
    float* out;
    int64_t out_stride;
    float softcap;  // of scores; 0 is none
};

// Scratch of one thread; keys [4 blocks][head_size][16], values [64][head_size], state of a row: maximum, sum, out.
struct AttentionScratch {
    float* keys;
    float* values;
    float* state;
};

// Asks for the blocks of a tile that hold positions below `last`: blocks lie anywhere, so no hardware foresees them.
inline void prefetch_tile(const AttentionTask& task, int64_t tile, int64_t last) {
    const int64_t bytes = kBlock * task.head_size * element_bytes(task.kv->dtype);
    for (int64_t start = tile * kTile; start < std::min(last, (tile + 1) * kTile); start += kBlock) {
        const int64_t block = task.layer * task.kv->num_blocks + task.block_table[start / kBlock];
        const int64_t at = (block * task.num_kv_heads + task.kv_head) * bytes;
        for (int64_t i = 0; i < bytes; i += 64) {
            prefetch_far(static_cast<const uint8_t*>(task.kv->k) + at + i);
            prefetch_far(static_cast<const uint8_t*>(task.kv->v) + at + i);
        }
    }
}

// Asks for the first tile that a task reads.
inline void prefetch_start(const AttentionTask& task) {
    const int64_t last = task.positions[task.num_tokens - 1] + 1;
    const int64_t first = task.kv->window ? std::max<int64_t>(task.positions[0] - task.kv->window + 1, 0) : 0;
    prefetch_tile(task, first / kTile, last);
}

// Loads the 4 blocks of a tile that hold positions in [first, last).
template <int DTYPE>
inline void load_tile(const AttentionTask& task, int64_t tile, int64_t first, int64_t last, AttentionScratch& scratch) {
    const int64_t size = task.head_size, bytes = size * element_bytes(DTYPE);
    for (int64_t b = 0; b < kTile / kBlock; ++b) {
        const int64_t start = tile * kTile + b * kBlock;
        if (start + kBlock <= first || start >= last) continue;
        const int64_t block = task.block_table[start / kBlock];
        const int64_t at = ((task.layer * task.kv->num_blocks + block) * task.num_kv_heads + task.kv_head) * kBlock;
        const auto* k = static_cast<const uint8_t*>(task.kv->k) + at * bytes;
        const auto* v = static_cast<const uint8_t*>(task.kv->v) + at * bytes;
        for (int64_t i = 0; i < size; i += 16) {
            Floats rows[16];
            for (int p = 0; p < 16; ++p)
                rows[p] = load_elements<DTYPE>(k + p * bytes, i, DTYPE == kInt8 ? task.kv->k_scale[at + p] : 1.0f);
            transpose(rows, scratch.keys + (b * size + i) * 16);
        }
        for (int64_t p = 0; p < kBlock; ++p) {
            const float scale = DTYPE == kInt8 ? task.kv->v_scale[at + p] : 1.0f;
            for (int64_t i = 0; i < size; i += 16)
                store(scratch.values + (b * kBlock + p) * size + i, load_elements<DTYPE>(v + p * bytes, i, scale));
        }
    }
}

struct RowRange {
    int64_t first, last;  // positions of the tile that the row attends to
};

// scores[row][64] = softmax numerators of the tile; returns the tile's maximum and sum of each row.
template <int ROWS>
inline void score(const AttentionScratch& scratch, int64_t size, const float* const* queries, const RowRange* ranges,
                  float cap, float (*weights)[kTile], float* peaks, float* sums) {
    Floats acc[ROWS][4];
    for (int r = 0; r < ROWS; ++r)
        for (int b = 0; b < 4; ++b) acc[r][b] = zeros();
    for (int64_t i = 0; i < size; ++i) {
        Floats keys[4];
        for (int b = 0; b < 4; ++b) keys[b] = load(scratch.keys + (b * size + i) * 16);
        for (int r = 0; r < ROWS; ++r) {
            const Floats q = splat(queries[r][i]);
            for (int b = 0; b < 4; ++b) acc[r][b] = fma(q, keys[b], acc[r][b]);
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        const Floats never = splat(-INFINITY);
        for (int b = 0; b < 4; ++b) {
            const auto clamp = [&](int64_t p) { return static_cast<int>(std::min<int64_t>(std::max<int64_t>(p - 16 * b, 0), 16)); };
            if (cap > 0.0f) acc[r][b] = softcap(acc[r][b], cap);
            acc[r][b] = keep_lanes(acc[r][b], clamp(ranges[r].first), clamp(ranges[r].last), never);
        }
        peaks[r] = reduce_max(max(max(acc[r][0], acc[r][1]), max(acc[r][2], acc[r][3])));
        const Floats peak = splat(ranges[r].first < ranges[r].last ? peaks[r] : 0.0f);
        for (int b = 0; b < 4; ++b) {
            acc[r][b] = exponential(sub(acc[r][b], peak));
            store(weights[r] + 16 * b, acc[r][b]);
        }
        sums[r] = reduce_add(add(add(add(acc[r][0], acc[r][1]), acc[r][2]), acc[r][3]));
    }
}

// out = out * old + (sum of weight * value) * fresh, for WIDTH vectors of the head.
template <int ROWS, int WIDTH>
inline void gather_values(const AttentionScratch& scratch, int64_t size, int64_t offset, const RowRange& all,
                          float (*weights)[kTile], const float* old, const float* fresh, float* const* out) {
    Floats acc[ROWS][WIDTH];
    for (int r = 0; r < ROWS; ++r)
        for (int i = 0; i < WIDTH; ++i) acc[r][i] = zeros();
    for (int64_t p = all.first; p < all.last; ++p) {
        Floats value[WIDTH];
        for (int i = 0; i < WIDTH; ++i) value[i] = load(scratch.values + p * size + offset + 16 * i);
        for (int r = 0; r < ROWS; ++r) {
            const Floats w = splat(weights[r][p]);
            for (int i = 0; i < WIDTH; ++i) acc[r][i] = fma(w, value[i], acc[r][i]);
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        if (fresh[r] == 0.0f) continue;
        for (int i = 0; i < WIDTH; ++i) {
            float* at = out[r] + offset + 16 * i;
            store(at, fma(acc[r][i], splat(fresh[r]), mul(load(at), splat(old[r]))));
        }
    }
}

// ROWS query rows against the loaded tile. A state is [maximum, sum, 14 unused, out[head_size]].
template <int ROWS>
inline void attend_rows(const AttentionScratch& scratch, int64_t size, const float* const* queries,
                        const RowRange* ranges, float cap, float* const* states) {
    alignas(64) float weights[ROWS][kTile];
    float peaks[ROWS], sums[ROWS], old[ROWS], fresh[ROWS];
    float* out[ROWS];
    score<ROWS>(scratch, size, queries, ranges, cap, weights, peaks, sums);
    RowRange all{kTile, 0};
    for (int r = 0; r < ROWS; ++r) {
        out[r] = states[r] + 16;
        old[r] = fresh[r] = 0.0f;
        if (ranges[r].first >= ranges[r].last) continue;
        all = {std::min(all.first, ranges[r].first), std::max(all.last, ranges[r].last)};
        const float peak = states[r][0] > peaks[r] ? states[r][0] : peaks[r];
        alignas(64) float factors[16] = {states[r][0] - peak, peaks[r] - peak};
        store(factors, exponential(load(factors)));
        old[r] = factors[0];
        fresh[r] = factors[1];
        states[r][0] = peak;
        states[r][1] = __builtin_fmaf(sums[r], fresh[r], states[r][1] * old[r]);
    }
    int64_t offset = 0;
    for (; offset + 64 <= size; offset += 64)
        gather_values<ROWS, 4>(scratch, size, offset, all, weights, old, fresh, out);
    for (; offset < size; offset += 16)
        gather_values<ROWS, 1>(scratch, size, offset, all, weights, old, fresh, out);
}

template <int DTYPE>
inline void attend_with(const AttentionTask& task, AttentionScratch& scratch) {
    const int64_t size = task.head_size, state_size = 16 + size, rows = task.num_tokens * task.heads_per_kv;
    const int64_t window = task.kv->window;
    const auto range_of = [&](int64_t position) {
        return RowRange{window ? std::max<int64_t>(position - window + 1, 0) : 0, position + 1};
    };
    RowRange all{INT64_MAX, 0};
    for (int64_t t = 0; t < task.num_tokens; ++t) {
        const RowRange range = range_of(task.positions[t]);
        all = {std::min(all.first, range.first), std::max(all.last, range.last)};
    }
    for (int64_t r = 0; r < rows; ++r) {
        float* state = scratch.state + r * state_size;
        std::fill(state, state + state_size, 0.0f);
        state[0] = -INFINITY;
    }
    for (int64_t tile = all.first / kTile; tile * kTile < all.last; ++tile) {
        prefetch_tile(task, tile + 1, all.last);
        load_tile<DTYPE>(task, tile, all.first, all.last, scratch);
        for (int64_t first = 0; first < rows; first += kQueryRows) {
            const int64_t count = std::min<int64_t>(rows - first, kQueryRows);
            const float* queries[kQueryRows];
            float* states[kQueryRows];
            RowRange ranges[kQueryRows];
            bool any = false;
            for (int64_t r = 0; r < count; ++r) {
                const int64_t token = (first + r) / task.heads_per_kv, head = (first + r) % task.heads_per_kv;
                const RowRange range = range_of(task.positions[token]);
                const auto local = [&](int64_t p) { return std::min(std::max<int64_t>(p - tile * kTile, 0), kTile); };
                queries[r] = task.queries + token * task.query_stride + head * size;
                states[r] = scratch.state + (first + r) * state_size;
                ranges[r] = {local(range.first), local(range.last)};
                any |= ranges[r].first < ranges[r].last;
            }
            if (!any) continue;
            if (count == 4) attend_rows<4>(scratch, size, queries, ranges, task.softcap, states);
            if (count == 3) attend_rows<3>(scratch, size, queries, ranges, task.softcap, states);
            if (count == 2) attend_rows<2>(scratch, size, queries, ranges, task.softcap, states);
            if (count == 1) attend_rows<1>(scratch, size, queries, ranges, task.softcap, states);
        }
    }
    for (int64_t r = 0; r < rows; ++r) {
        const float* state = scratch.state + r * state_size;
        float* out = task.out + r / task.heads_per_kv * task.out_stride + r % task.heads_per_kv * size;
        for (int64_t i = 0; i < size; i += 16) store(out + i, div(load(state + 16 + i), splat(state[1])));
    }
}

inline void attend(const AttentionTask& task, AttentionScratch& scratch) {
    if (task.kv->dtype == kFloat32) attend_with<kFloat32>(task, scratch);
    if (task.kv->dtype == kFloat16) attend_with<kFloat16>(task, scratch);
    if (task.kv->dtype == kBfloat16) attend_with<kBfloat16>(task, scratch);
    if (task.kv->dtype == kInt8) attend_with<kInt8>(task, scratch);
}

}  // namespace
