// Reading packed weights: a chunk's scales as fp32, and a group's quants as eight vectors of unsigned levels (signed
// bytes for Q8_0 where the instruction set wants them so). Every scale here is exact in fp32.
#pragma once
#include <cstdint>
#include <cstring>

#include "packed_format.h"

namespace {

// The scales of one group: w = scale * (level - offset) + minimum; Q6_K: w = scale * sub[half] * (level - 32).
struct Scales {
    Floats scale, minimum, sub[2];
};

template <int FORMAT>
class Chunk {
  public:
    static constexpr FormatShape kShape = shape_of(FORMAT);

    Chunk(const uint8_t* data, int64_t groups) : header_(data), quants_(data + header_bytes(FORMAT, groups)) {
        if constexpr (FORMAT == kQ4_K || FORMAT == kQ5_K) read_super_block();
        if constexpr (FORMAT == kQ6_K) scale_ = load_half(header_);
    }

    inline Scales scales(int64_t group) const {
        Scales s;
        if constexpr (FORMAT == kQ4_K || FORMAT == kQ5_K) {
            s.scale = mul(scale_, load_unsigned(levels_ + 16 * group));
            s.minimum = mul(minimum_, load_unsigned(levels_ + 128 + 16 * group));
        } else if constexpr (FORMAT == kQ6_K) {
            const auto* sub = reinterpret_cast<const int8_t*>(header_ + 64 + 32 * group);
            s.scale = scale_;
            s.sub[0] = load_signed(sub);
            s.sub[1] = load_signed(sub + 16);
        } else if constexpr (kShape.has_min) {
            const uint8_t* own = header_ + 64 * (group / kShape.scale_groups);
            s.scale = load_half(own);
            s.minimum = load_half(own + 32);
        } else if constexpr (kShape.float_bytes == 1) {
            // what `load_column` leaves out
            s.scale = mul(load_half(header_ + 32 * (group / kShape.scale_groups)), splat(256.0f));
        } else if constexpr (!kShape.is_float()) {
            s.scale = load_half(header_ + 32 * (group / kShape.scale_groups));
        }
        return s;
    }

    inline void weights(int64_t group, Bytes* w) const {
        const uint8_t* p = quants_ + kShape.quant_bytes * group;
        if constexpr (kShape.bits == 8) {
#pragma GCC unroll 8
            for (int j = 0; j < 8; ++j) w[j] = signed_weights(load_bytes(p + 64 * j));
        } else {
            const Bytes low = splat_byte(0x0f);
#pragma GCC unroll 4
            for (int j = 0; j < 4; ++j) {
                const Bytes pair = load_bytes(p + 64 * j);
                w[j] = bit_and(pair, low);
                w[j + 4] = bit_and(shift_right<4>(pair), low);
            }
            if constexpr (kShape.bits == 5) add_fifth_bits(load_bytes(p + 256), w);
            if constexpr (kShape.bits == 6) {
                add_two_bits(load_bytes(p + 256), w);
                add_two_bits(load_bytes(p + 320), w + 4);
            }
        }
    }

    // The floats of a group, one vector an input.
    const uint8_t* floats(int64_t group) const { return quants_ + kShape.quant_bytes * group; }

  private:
    // KScales: bytes [group][row] of the low halves, scale in bits 0-3 and minimum in bits 4-7, groups 0-3 and 4-7 one
    // vector each; then one vector of high pairs: scale and minimum of group g % 4 in bits 0-3, of g % 4 + 4 in bits 4-7.
    void read_super_block() {
        scale_ = load_half(header_);
        minimum_ = sub(zeros(), load_half(header_ + 32));
        const Bytes first = load_bytes(header_ + 64), second = load_bytes(header_ + 128);
        const Bytes high = load_bytes(header_ + 192), low = splat_byte(0x0f), pair = splat_byte(0x30);
        store_bytes(levels_, merge(bit_and(first, low), shift_left<4>(high), pair));
        store_bytes(levels_ + 64, merge(bit_and(second, low), high, pair));
        store_bytes(levels_ + 128, merge(bit_and(shift_right<4>(first), low), shift_left<2>(high), pair));
        store_bytes(levels_ + 192, merge(bit_and(shift_right<4>(second), low), shift_right<2>(high), pair));
    }

    static inline void add_fifth_bits(Bytes bits, Bytes* w) {
        const Bytes mask = splat_byte(0x10);
        w[0] = merge(w[0], shift_left<4>(bits), mask);
        w[1] = merge(w[1], shift_left<3>(bits), mask);
        w[2] = merge(w[2], shift_left<2>(bits), mask);
        w[3] = merge(w[3], shift_left<1>(bits), mask);
        w[4] = merge(w[4], bits, mask);
        w[5] = merge(w[5], shift_right<1>(bits), mask);
        w[6] = merge(w[6], shift_right<2>(bits), mask);
        w[7] = merge(w[7], shift_right<3>(bits), mask);
    }

    static inline void add_two_bits(Bytes bits, Bytes* w) {
        const Bytes mask = splat_byte(0x30);
        w[0] = merge(w[0], shift_left<4>(bits), mask);
        w[1] = merge(w[1], shift_left<2>(bits), mask);
        w[2] = merge(w[2], bits, mask);
        w[3] = merge(w[3], shift_right<2>(bits), mask);
    }

    const uint8_t* header_;
    const uint8_t* quants_;
    Floats scale_, minimum_;
    alignas(64) uint8_t levels_[256];
};

// One input's floats of all lanes; of a float8, 1/256 of each.
template <int FORMAT>
inline Floats load_column(const uint8_t* floats, int column) {
    if constexpr (FORMAT == kF16) return load_half(floats + 2 * kLanes * column);
    if constexpr (FORMAT == kBf16) return load_bfloat(floats + 2 * kLanes * column);
    if constexpr (shape_of(FORMAT).float_bytes == 1) return load_float8(floats + kLanes * column);
}

// How far ahead of its use packed data is asked for, into the second cache: three pages, where hardware prefetchers do not
// reach. Asking for it once more close by, into the first, takes the places of those requests and costs a third.
constexpr int64_t kFar = 12288;

// A tile's bytes, and those of the tile that this thread takes next.
struct TileBytes {
    const uint8_t* data;
    const uint8_t* next;
    int64_t size;

    // What lies kFar, or one tile, after `offset`.
    const uint8_t* ahead(int64_t offset) const {
        const int64_t far = offset + (kFar < size ? kFar : size);
        return far < size ? data + far : next + (far - size);
    }
};

// From one group of a chunk to the next, more or less.
template <int FORMAT>
constexpr int64_t kGroupStep = shape_of(FORMAT).quant_bytes + 64;

// Asks for the bytes of about one group at `p`.
template <int FORMAT>
inline void prefetch_group(const uint8_t* p) {
#pragma GCC unroll 16
    for (int i = 0; i < kGroupStep<FORMAT>; i += 64) prefetch_far(p + i);
}

// A group already taken apart, for many rows of activations: 8 vectors of levels and up to three of scales, or 32 of floats
// as they are packed and one of scales.
constexpr int64_t kOpenGroupBytes = 8 * 64 + 3 * 64;
constexpr int64_t kOpenFloatsBytes = 16 * 64 + 64;
constexpr int64_t kOpenChunkBytes = kChunkGroups * kOpenFloatsBytes;

// Takes group `g` of a chunk apart.
template <int FORMAT>
__attribute__((always_inline)) inline void open_group(const Chunk<FORMAT>& chunk, int64_t g, uint8_t* out) {
    Bytes w[8];
    chunk.weights(g, w);
#pragma GCC unroll 8
    for (int j = 0; j < 8; ++j) store_bytes(out + 64 * j, opened(w[j], shape_of(FORMAT).offset));
    const Scales s = chunk.scales(g);
    auto* floats = reinterpret_cast<float*>(out + 512);
    store(floats, s.scale);
    if constexpr (shape_of(FORMAT).has_min) store(floats + 16, s.minimum);
    if constexpr (FORMAT == kQ6_K) {
        store(floats + 16, s.sub[0]);
        store(floats + 32, s.sub[1]);
    }
}

// Takes apart a chunk of `count` groups and returns its size in bytes.
template <int FORMAT>
inline int64_t open_chunk(const uint8_t* packed, int64_t count, uint8_t* out) {
    const Chunk<FORMAT> chunk(packed, count);
    if constexpr (shape_of(FORMAT).is_float()) {
        for (int64_t g = 0; g < count; ++g, out += kOpenFloatsBytes) {
            std::memcpy(out, chunk.floats(g), shape_of(FORMAT).quant_bytes);
            if constexpr (shape_of(FORMAT).float_bytes == 1) store(reinterpret_cast<float*>(out + 1024), chunk.scales(g).scale);
        }
    } else {
        for (int64_t g = 0; g < count; ++g) open_group<FORMAT>(chunk, g, out + g * kOpenGroupBytes);
    }
    return chunk_bytes(FORMAT, count);
}

template <int FORMAT>
class OpenChunk {
  public:
    explicit OpenChunk(const uint8_t* data) : data_(data) {}

    const uint8_t* floats(int64_t group) const { return data_ + kOpenFloatsBytes * group; }

    inline Scales scales(int64_t group) const {
        if constexpr (shape_of(FORMAT).is_float()) {
            Scales s;
            if constexpr (shape_of(FORMAT).float_bytes == 1) s.scale = load(reinterpret_cast<const float*>(floats(group) + 1024));
            return s;
        }
        const auto* floats = reinterpret_cast<const float*>(data_ + kOpenGroupBytes * group + 512);
        Scales s;
        s.scale = load(floats);
        if constexpr (shape_of(FORMAT).has_min) s.minimum = load(floats + 16);
        if constexpr (FORMAT == kQ6_K) {
            s.sub[0] = load(floats + 16);
            s.sub[1] = load(floats + 32);
        }
        return s;
    }

    inline void weights(int64_t group, Bytes* w) const {
#pragma GCC unroll 8
        for (int j = 0; j < 8; ++j) w[j] = load_bytes(data_ + kOpenGroupBytes * group + 64 * j);
    }

  private:
    const uint8_t* data_;
};

}  // namespace
