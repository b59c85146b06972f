// Rotary embedding, and attention over paged keys and values.
//
// Positions are cut into tiles of 64 anchored at position 0. Inside a tile: scores are chains of FMA over the head's
// elements, then one maximum, exponentials, their sum (16 lanes, then a tree) and a chain of FMA over positions in
// ascending order. Tiles are merged in ascending order. So a row's result depends on its own position and the stored
// keys and values only. Masked positions are skipped or have weight 0; what no token has written yet is never used.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kv_tile.h"

namespace {

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

// Positions [first, last).
struct Range {
    int64_t first, last;

    bool is_empty() const { return first >= last; }
    Range inside(int64_t tile) const {
        const auto local = [&](int64_t p) { return std::min(std::max<int64_t>(p - tile * kTile, 0), kTile); };
        return {local(first), local(last)};
    }
};

// One KV head of one sequence and a run of its tokens: queries (rotated and scaled) and
// results are [tokens, heads_per_kv, head_size], tokens a stride apart.
struct AttentionTask {
    KvHead head;
    const int64_t* positions;
    int64_t num_tokens, heads_per_kv;
    const float* queries;
    int64_t query_stride;
    float* out;
    int64_t out_stride;
    float softcap;  // of scores; 0 is none

    // What a token attends to, and what all of them do.
    Range seen_by(int64_t token) const {
        const int64_t position = positions[token], window = head.kv->window;
        return {window ? std::max<int64_t>(position - window + 1, 0) : 0, position + 1};
    }
    Range seen() const {
        Range all{INT64_MAX, 0};
        for (int64_t t = 0; t < num_tokens; ++t)
            all = {std::min(all.first, seen_by(t).first), std::max(all.last, seen_by(t).last)};
        return all;
    }
    TileBlocks first_blocks() const {
        const Range all = seen();
        return head.blocks(all.first / kTile, all.first, all.last);
    }
};

// Scratch of one thread: an open tile, and of each row its state: maximum, sum, 14 unused, out[head_size].
struct AttentionScratch {
    float* keys;
    float* values;
    float* state;
};

// weights[row][64] = softmax numerators of the tile; makes the tile's maximum and sum of each row.
template <int ROWS, class Tile>
inline void score(const Tile& tile, int64_t size, const float* const* queries, const Range* ranges, const Range& all,
                  float cap, float (*weights)[kTile], float* peaks, float* sums) {
    for (int b = 0; b < kTileBlocks; b += 2) {
        Floats acc[ROWS][2];
        for (int r = 0; r < ROWS; ++r) acc[r][0] = acc[r][1] = zeros();
        const bool is_seen = all.first < (b + 2) * kBlock && b * kBlock < all.last;
        for (int64_t i = 0; i < size; ++i) {
            tile.ask_key(b, i);
            tile.ask_key(b + 1, i);
            if (!is_seen) continue;
            const Floats first = tile.key(b, i), second = tile.key(b + 1, i);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                const Floats q = splat(queries[r][i]);
                acc[r][0] = fma(q, first, acc[r][0]);
                acc[r][1] = fma(q, second, acc[r][1]);
            }
        }
        for (int r = 0; r < ROWS; ++r) {
            store(weights[r] + b * kBlock, acc[r][0]);
            store(weights[r] + (b + 1) * kBlock, acc[r][1]);
        }
    }
    for (int r = 0; r < ROWS; ++r) {
        const Floats never = splat(-INFINITY);
        Floats scores[kTileBlocks];
        for (int b = 0; b < kTileBlocks; ++b) {
            const auto clamp = [&](int64_t p) { return static_cast<int>(std::min<int64_t>(std::max<int64_t>(p - kBlock * b, 0), kBlock)); };
            scores[b] = load(weights[r] + kBlock * b);
            if (cap > 0.0f) scores[b] = softcap(scores[b], cap);
            scores[b] = keep_lanes(scores[b], clamp(ranges[r].first), clamp(ranges[r].last), never);
        }
        peaks[r] = reduce_max(max(max(scores[0], scores[1]), max(scores[2], scores[3])));
        const Floats peak = splat(ranges[r].is_empty() ? 0.0f : peaks[r]);
        for (int b = 0; b < kTileBlocks; ++b) {
            scores[b] = exponential(sub(scores[b], peak));
            store(weights[r] + kBlock * b, scores[b]);
        }
        sums[r] = reduce_add(add(add(add(scores[0], scores[1]), scores[2]), scores[3]));
    }
}

// out = out * old + (sum of weight * value) * fresh, for WIDTH vectors of the head.
template <int ROWS, int WIDTH, class Tile>
inline void gather_values(const Tile& tile, int64_t offset, const Range& all, float (*weights)[kTile], const float* old,
                          const float* fresh, float* const* out) {
    Floats acc[ROWS][WIDTH];
    for (int r = 0; r < ROWS; ++r)
        for (int i = 0; i < WIDTH; ++i) acc[r][i] = zeros();
    for (int64_t p = 0; p < all.first; ++p) tile.ask_values(p, offset, 16 * WIDTH);
    for (int64_t p = all.first; p < all.last; ++p) {
        tile.ask_values(p, offset, 16 * WIDTH);
        Floats value[WIDTH];
        for (int i = 0; i < WIDTH; ++i) value[i] = tile.value(p, offset + 16 * i);
#pragma GCC unroll 8
        for (int r = 0; r < ROWS; ++r) {
            const Floats w = splat(weights[r][p]);
            for (int i = 0; i < WIDTH; ++i) acc[r][i] = fma(w, value[i], acc[r][i]);
        }
    }
    for (int64_t p = all.last; p < kTile; ++p) tile.ask_values(p, offset, 16 * WIDTH);
    for (int r = 0; r < ROWS; ++r) {
        if (fresh[r] == 0.0f) continue;
        for (int i = 0; i < WIDTH; ++i) {
            float* at = out[r] + offset + 16 * i;
            store(at, fma(acc[r][i], splat(fresh[r]), mul(load(at), splat(old[r]))));
        }
    }
}

// ROWS query rows against a tile.
template <int ROWS, class Tile>
inline void attend_rows(const Tile& tile, int64_t size, const float* const* queries, const Range* ranges, float cap,
                        float* const* states) {
    alignas(64) float weights[ROWS][kTile];
    float peaks[ROWS], sums[ROWS], old[ROWS], fresh[ROWS];
    float* out[ROWS];
    Range all{kTile, 0};
    for (int r = 0; r < ROWS; ++r)
        if (!ranges[r].is_empty()) all = {std::min(all.first, ranges[r].first), std::max(all.last, ranges[r].last)};
    score<ROWS>(tile, size, queries, ranges, all, cap, weights, peaks, sums);
    for (int r = 0; r < ROWS; ++r) {
        out[r] = states[r] + 16;
        old[r] = fresh[r] = 0.0f;
        if (ranges[r].is_empty()) continue;
        const float peak = states[r][0] > peaks[r] ? states[r][0] : peaks[r];
        alignas(64) float factors[16] = {states[r][0] - peak, peaks[r] - peak};
        store(factors, exponential(load(factors)));
        old[r] = factors[0];
        fresh[r] = factors[1];
        states[r][0] = peak;
        states[r][1] = __builtin_fmaf(sums[r], fresh[r], states[r][1] * old[r]);
    }
    constexpr int wide = ROWS > 4 ? 2 : 4;
    int64_t offset = 0;
    for (; offset + 16 * wide <= size; offset += 16 * wide)
        gather_values<ROWS, wide>(tile, offset, all, weights, old, fresh, out);
    for (; offset < size; offset += 16) gather_values<ROWS, 1>(tile, offset, all, weights, old, fresh, out);
}

// The rows [first, first + count) of a task, at most ROWS, against a tile.
template <int ROWS, class Tile>
inline void attend_some(const AttentionTask& task, const Tile& tile, int64_t number, int64_t first, int64_t count,
                        const AttentionScratch& scratch) {
    if constexpr (ROWS > 1) {
        if (count < ROWS) return attend_some<ROWS - 1>(task, tile, number, first, count, scratch);
    }
    const int64_t size = task.head.size;
    const float* queries[ROWS];
    float* states[ROWS];
    Range ranges[ROWS];
    bool is_seen = false;
    for (int64_t r = 0; r < ROWS; ++r) {
        const int64_t token = (first + r) / task.heads_per_kv, head = (first + r) % task.heads_per_kv;
        queries[r] = task.queries + token * task.query_stride + head * size;
        states[r] = scratch.state + (first + r) * (16 + size);
        ranges[r] = task.seen_by(token).inside(number);
        is_seen |= !ranges[r].is_empty();
    }
    if (is_seen) attend_rows<ROWS>(tile, size, queries, ranges, task.softcap, states);
}

// Works a task off; `next` is where this thread reads on.
template <int DTYPE>
inline void attend_with(const AttentionTask& task, const TileBlocks& next, const AttentionScratch& scratch) {
    const int64_t size = task.head.size, state_size = 16 + size, rows = task.num_tokens * task.heads_per_kv;
    const Range all = task.seen();
    for (int64_t r = 0; r < rows; ++r) {
        float* state = scratch.state + r * state_size;
        std::fill(state, state + state_size, 0.0f);
        state[0] = -INFINITY;
    }
    TileBlocks blocks = task.first_blocks();
    for (int64_t number = all.first / kTile; number * kTile < all.last; ++number) {
        const bool is_last = (number + 1) * kTile >= all.last;
        const TileBlocks ahead = is_last ? next : task.head.blocks(number + 1, all.first, all.last);
        const StoredTile<DTYPE> stored(blocks, ahead, size);
        if (rows <= kQueryRows) {
            attend_some<kQueryRows>(task, stored, number, 0, rows, scratch);
        } else {
            const OpenTile open(stored, size, scratch.keys, scratch.values);
            for (int64_t first = 0; first < rows; first += kQueryRows)
                attend_some<kQueryRows>(task, open, number, first, std::min<int64_t>(rows - first, kQueryRows), scratch);
        }
        blocks = ahead;
    }
    for (int64_t r = 0; r < rows; ++r) {
        const float* state = scratch.state + r * state_size;
        float* out = task.out + r / task.heads_per_kv * task.out_stride + r % task.heads_per_kv * size;
        for (int64_t i = 0; i < size; i += 16) store(out + i, div(load(state + 16 + i), splat(state[1])));
    }
}

inline void attend(const AttentionTask& task, const TileBlocks& next, const AttentionScratch& scratch) {
    const int64_t dtype = task.head.kv->dtype;
    if (dtype == kFloat32) attend_with<kFloat32>(task, next, scratch);
    if (dtype == kFloat16) attend_with<kFloat16>(task, next, scratch);
    if (dtype == kBfloat16) attend_with<kBfloat16>(task, next, scratch);
    if (dtype == kInt8) attend_with<kInt8>(task, next, scratch);
}

}  // namespace
