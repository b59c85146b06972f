// Paged keys and values, 64 positions at a time: how they are stored, and two ways to read a tile of them.
//
// In a block the keys of a head lie as [head size][16 positions], so that one element of 16 keys is one vector, and the
// values as [16 positions][head size] (engine/kv_cache.py). A few rows of queries read a tile as it is stored; for many it
// is opened once into scratch, as floats. Both give the same numbers. Blocks lie anywhere in memory, so no hardware
// foresees them: while a tile is read, the same places of the one that follows are asked for.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "elementwise.h"

namespace {

constexpr int64_t kBlock = 16;
constexpr int64_t kTile = 64;
constexpr int kTileBlocks = kTile / kBlock;
constexpr float kHalfMax = 65504.0f;

constexpr int64_t element_bytes(int64_t dtype) { return dtype == kFloat32 ? 4 : dtype == kInt8 ? 1 : 2; }

// Converts 16 elements of a head; `divisor` is an int8 cache's.
inline void store_elements(Floats v, int64_t dtype, Floats divisor, uint8_t* out) {
    if (dtype == kFloat32) store(reinterpret_cast<float*>(out), v);
    // Large numbers are cut to what fits; v - v keeps NaN and makes infinities NaN.
    if (dtype == kFloat16) store_half(out, add(min(splat(kHalfMax), max(splat(-kHalfMax), v)), sub(v, v)));
    if (dtype == kBfloat16) store_bfloat(out, v);
    if (dtype == kInt8) store_bytes(reinterpret_cast<int8_t*>(out), to_ints(div(v, divisor)));
}

// The scale of one head of a token in an int8 cache.
inline float scale_of(const float* x, int64_t head_size) {
    Floats peak = zeros(), sum = zeros();
    for (int64_t i = 0; i < head_size; i += 16) {
        peak = max(absolute(load(x + i)), peak);
        sum = add(sum, load(x + i));
    }
    // NaN and infinities must not hide in rounding: such a head reads as NaN.
    const float most = reduce_max(peak);
    return any_nan(sum) || !(most < INFINITY) ? NAN : most / 127.0f;
}

template <class Element>
inline void scatter(const uint8_t* from, uint8_t* to) {
    for (int64_t i = 0; i < 16; ++i)
        std::memcpy(to + i * kBlock * sizeof(Element), from + i * sizeof(Element), sizeof(Element));
}

// Stores the key and the value of one head of one token; `head_block` counts heads of blocks in the tensors.
inline void store_head(const KvGroup& kv, int64_t head_block, int64_t offset, const float* key, const float* value,
                       int64_t head_size) {
    const int64_t bytes = element_bytes(kv.dtype), at = head_block * kBlock * head_size * bytes;
    uint8_t* k = static_cast<uint8_t*>(kv.k) + at + offset * bytes;
    uint8_t* v = static_cast<uint8_t*>(kv.v) + at + offset * head_size * bytes;
    Floats key_divisor = splat(1.0f), value_divisor = splat(1.0f);
    if (kv.dtype == kInt8) {
        const float key_scale = scale_of(key, head_size), value_scale = scale_of(value, head_size);
        kv.k_scale[head_block * kBlock + offset] = key_scale;
        kv.v_scale[head_block * kBlock + offset] = value_scale;
        key_divisor = splat(key_scale > 0.0f ? key_scale : 1.0f);
        value_divisor = splat(value_scale > 0.0f ? value_scale : 1.0f);
    }
    alignas(64) uint8_t elements[64];
    for (int64_t i = 0; i < head_size; i += 16) {
        store_elements(load(value + i), kv.dtype, value_divisor, v + i * bytes);
        store_elements(load(key + i), kv.dtype, key_divisor, elements);
        uint8_t* to = k + i * kBlock * bytes;
        if (bytes == 4) scatter<float>(elements, to);
        if (bytes == 2) scatter<uint16_t>(elements, to);
        if (bytes == 1) scatter<uint8_t>(elements, to);
    }
}

// Where the four blocks of a tile are, of one head.
struct TileBlocks {
    const uint8_t *k[kTileBlocks], *v[kTileBlocks];
    const float *k_scale[kTileBlocks], *v_scale[kTileBlocks];
};

// One KV head of one sequence in one layer.
struct KvHead {
    const KvGroup* kv;
    const int32_t* block_table;
    int64_t layer, head, num_heads, size;

    // The blocks of a tile. One that holds no position of [first, last) need not exist: another stands for it, since its
    // numbers are read and never used.
    TileBlocks blocks(int64_t tile, int64_t first, int64_t last) const {
        TileBlocks found;
        const int64_t low = std::max(first, tile * kTile) / kBlock;
        const int64_t high = (std::min(last, (tile + 1) * kTile) - 1) / kBlock;
        for (int b = 0; b < kTileBlocks; ++b) {
            const int64_t number = block_table[std::min(std::max(tile * kTileBlocks + b, low), high)];
            const int64_t at = ((number * kv->num_layers + layer) * num_heads + head) * kBlock;
            const int64_t bytes = at * size * element_bytes(kv->dtype);
            found.k[b] = static_cast<const uint8_t*>(kv->k) + bytes;
            found.v[b] = static_cast<const uint8_t*>(kv->v) + bytes;
            found.k_scale[b] = kv->k_scale + at;
            found.v_scale[b] = kv->v_scale + at;
        }
        return found;
    }
};

template <int DTYPE>
inline Floats load_elements(const uint8_t* p) {
    if constexpr (DTYPE == kFloat32) return load(reinterpret_cast<const float*>(p));
    if constexpr (DTYPE == kFloat16) return load_half(p);
    if constexpr (DTYPE == kBfloat16) return load_bfloat(p);
    return load_signed(reinterpret_cast<const int8_t*>(p));
}

// A tile as it is stored, and where the one that is read next is.
template <int DTYPE>
class StoredTile {
  public:
    StoredTile(const TileBlocks& blocks, const TileBlocks& next, int64_t size) : blocks_(blocks), next_(next), size_(size) {
        if constexpr (DTYPE == kInt8) {
            for (int b = 0; b < kTileBlocks; ++b) {
                prefetch_far(reinterpret_cast<const uint8_t*>(next.k_scale[b]));
                prefetch_far(reinterpret_cast<const uint8_t*>(next.v_scale[b]));
            }
        }
    }

    // Element `i` of the 16 keys of a block.
    inline Floats key(int block, int64_t i) const {
        const Floats elements = load_elements<DTYPE>(blocks_.k[block] + i * kBlock * kBytes);
        return DTYPE == kInt8 ? mul(elements, load(blocks_.k_scale[block])) : elements;
    }

    // Elements i .. i + 15 of the value at a place of the tile.
    inline Floats value(int64_t place, int64_t i) const {
        const int64_t block = place / kBlock, offset = place % kBlock;
        const Floats elements = load_elements<DTYPE>(blocks_.v[block] + (offset * size_ + i) * kBytes);
        return DTYPE == kInt8 ? mul(elements, splat(blocks_.v_scale[block][offset])) : elements;
    }

    // Ask for the same of the next tile: once for each line.
    inline void ask_key(int block, int64_t i) const {
        if (i * kBlock * kBytes % 64 == 0) prefetch_far(next_.k[block] + i * kBlock * kBytes);
    }
    inline void ask_values(int64_t place, int64_t i, int64_t count) const {
        const uint8_t* p = next_.v[place / kBlock] + (place % kBlock * size_ + i) * kBytes;
        for (int64_t line = 0; line < count * kBytes; line += 64) prefetch_far(p + line);
    }

  private:
    static constexpr int64_t kBytes = element_bytes(DTYPE);
    const TileBlocks &blocks_, &next_;
    const int64_t size_;
};

// A tile as floats in scratch: keys [4 blocks][size][16], values [64][size].
class OpenTile {
  public:
    template <int DTYPE>
    OpenTile(const StoredTile<DTYPE>& stored, int64_t size, float* keys, float* values) : keys_(keys), values_(values), size_(size) {
        for (int b = 0; b < kTileBlocks; ++b) {
            for (int64_t i = 0; i < size; ++i) {
                stored.ask_key(b, i);
                store(keys + (b * size + i) * kBlock, stored.key(b, i));
            }
        }
        for (int64_t place = 0; place < kTile; ++place) {
            stored.ask_values(place, 0, size);
            for (int64_t i = 0; i < size; i += 16) store(values + place * size + i, stored.value(place, i));
        }
    }

    inline Floats key(int block, int64_t i) const { return load(keys_ + (block * size_ + i) * kBlock); }
    inline Floats value(int64_t place, int64_t i) const { return load(values_ + place * size_ + i); }
    inline void ask_key(int, int64_t) const {}
    inline void ask_values(int64_t, int64_t, int64_t) const {}

  private:
    const float *keys_, *values_;
    const int64_t size_;
};

}  // namespace
