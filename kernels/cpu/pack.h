// From the blocks of a model file to packed tiles and back to rows; levels and scales are copied bit for bit. One thing
// only is not: a group with a float8 in it that is no number gets a scale that is none, so that kernels need not look.
#pragma once
#include <cstdint>
#include <cstring>

#include "half.h"
#include "packed_format.h"

namespace {

// One group of a file's row: levels 0..2^bits-1 (signed bytes where they have 8), or the bytes of 32 floats, and its
// scales as the file has them.
struct SourceGroup {
    uint8_t level[64];
    uint16_t d, m;         // fp16 bits; of the super-block for K formats
    uint8_t scale[2], minimum;  // K formats: 6-bit scale and minimum, or two int8 sub-scales
};

inline uint16_t read_16(const uint8_t* p) { return static_cast<uint16_t>(p[0] | p[1] << 8); }
inline uint32_t read_32(const uint8_t* p) { return read_16(p) | static_cast<uint32_t>(read_16(p + 2)) << 16; }

inline void read_simple(int format, const uint8_t* p, SourceGroup& out) {
    const FormatShape shape = shape_of(format);
    out.d = read_16(p);
    p += 2;
    if (shape.has_min) {
        out.m = read_16(p);
        p += 2;
    }
    if (shape.bits == 8) {
        std::memcpy(out.level, p, 32);
        return;
    }
    uint32_t high = 0;
    if (shape.bits == 5) {
        high = read_32(p);
        p += 4;
    }
    for (int i = 0; i < 16; ++i) {
        out.level[i] = static_cast<uint8_t>((p[i] & 15) | (high >> i & 1) << 4);
        out.level[i + 16] = static_cast<uint8_t>(p[i] >> 4 | (high >> (i + 16) & 1) << 4);
    }
}

// Q4_K, Q5_K: groups 2c and 2c + 1 share 32 bytes of nibbles; the 12 bytes hold 8 scales and 8 minimums of 6 bits.
inline void read_k(int format, const uint8_t* p, int group, SourceGroup& out) {
    out.d = read_16(p);
    out.m = read_16(p + 2);
    const uint8_t* packed = p + 4;
    if (group < 4) {
        out.scale[0] = packed[group] & 63;
        out.minimum = packed[group + 4] & 63;
    } else {
        out.scale[0] = static_cast<uint8_t>((packed[group + 4] & 15) | packed[group - 4] >> 6 << 4);
        out.minimum = static_cast<uint8_t>(packed[group + 4] >> 4 | packed[group] >> 6 << 4);
    }
    const uint8_t* high = p + 16;
    const uint8_t* nibbles = (format == kQ5_K ? high + 32 : high) + group / 2 * 32;
    for (int i = 0; i < 32; ++i) {
        out.level[i] = static_cast<uint8_t>(nibbles[i] >> 4 * (group % 2) & 15);
        if (format == kQ5_K) out.level[i] = static_cast<uint8_t>(out.level[i] | (high[i] >> group & 1) << 4);
    }
}

inline void read_q6_k(const uint8_t* p, int group, SourceGroup& out) {
    const int half = group / 4, quarter = group % 4;
    const uint8_t* nibbles = p + 64 * half + 32 * (quarter % 2);
    const uint8_t* pairs = p + 128 + 32 * half;
    for (int i = 0; i < 32; ++i)
        out.level[i] = static_cast<uint8_t>((nibbles[i] >> 4 * (quarter / 2) & 15) | (pairs[i] >> 2 * quarter & 3) << 4);
    std::memcpy(out.scale, p + 192 + 2 * group, 2);
    out.d = read_16(p + 208);
}

// Formats of one or more groups under one scale. Two groups of nibbles share 32 bytes.
inline void read_shared(int format, const uint8_t* p, int64_t part, SourceGroup& out) {
    const FormatShape shape = shape_of(format);
    out.d = read_16(p);
    p += 2;
    if (shape.has_min) {
        out.m = read_16(p);
        p += 2;
        for (int i = 0; i < 32; ++i) out.level[i] = static_cast<uint8_t>(p[32 * (part / 2) + i] >> 4 * (part % 2) & 15);
        return;
    }
    std::memcpy(out.level, p + kGroup * part, kGroup);
    for (int64_t i = 0; shape.is_float() && i < kGroup * shape.scale_groups; ++i)
        if ((p[i] & 0x7f) == 0x7f) out.d = 0x7e00;
}

inline SourceGroup read_group(int format, const uint8_t* row, int64_t group) {
    SourceGroup out{};
    const FormatShape shape = shape_of(format);
    const uint8_t* block = row + group * kGroup / shape.source_block * shape.source_bytes;
    if (shape.float_bytes == 2) {
        std::memcpy(out.level, block, 2 * kGroup);
    } else if (shape.scale_groups > 1 || shape.is_float()) {
        read_shared(format, block, group % shape.scale_groups, out);
    } else if (!shape.is_super) {
        read_simple(format, block, out);
    } else if (format == kQ6_K) {
        read_q6_k(block, static_cast<int>(group % 8), out);
    } else {
        read_k(format, block, static_cast<int>(group % 8), out);
    }
    return out;
}

// Puts the floats of one row into a group, or takes them out of it.
inline void pack_floats(int size, const uint8_t* floats, int64_t row, uint8_t* quants) {
    for (int i = 0; i < 32; ++i) std::memcpy(quants + (kLanes * i + row) * size, floats + size * i, static_cast<size_t>(size));
}
inline void unpack_floats(int size, const uint8_t* quants, int64_t row, uint8_t* floats) {
    for (int i = 0; i < 32; ++i) std::memcpy(floats + size * i, quants + (kLanes * i + row) * size, static_cast<size_t>(size));
}

inline float float_of(int format, const uint8_t* floats, int i) {
    if (shape_of(format).float_bytes == 1)
        return (floats[i] & 0x7f) == 0x7f ? NAN : 256.0f * half_to_float(half_of_float8(floats[i]));
    const uint16_t bits = read_16(floats + 2 * i);
    if (format == kF16) return half_to_float(bits);
    const uint32_t wide = static_cast<uint32_t>(bits) << 16;
    float result;
    std::memcpy(&result, &wide, 4);
    return result;
}

// Adds the levels of one row to a group of quants that starts as zeros.
inline void pack_levels(int bits, const uint8_t* level, int64_t row, uint8_t* quants) {
    for (int j = 0; j < 8; ++j) {
        for (int t = 0; t < 4; ++t) {
            const int64_t at = 4 * row + t;
            const uint8_t value = level[4 * j + t];
            if (bits == 8) {
                quants[64 * j + at] = value;
                continue;
            }
            quants[64 * (j % 4) + at] |= static_cast<uint8_t>((value & 15) << 4 * (j / 4));
            if (bits == 5) quants[256 + at] |= static_cast<uint8_t>(value >> 4 << j);
            if (bits == 6) quants[256 + 64 * (j / 4) + at] |= static_cast<uint8_t>(value >> 4 << 2 * (j % 4));
        }
    }
}

inline void unpack_levels(int bits, const uint8_t* quants, int64_t row, uint8_t* level) {
    for (int j = 0; j < 8; ++j) {
        for (int t = 0; t < 4; ++t) {
            const int64_t at = 4 * row + t;
            if (bits == 8) {
                level[4 * j + t] = quants[64 * j + at];
                continue;
            }
            int value = quants[64 * (j % 4) + at] >> 4 * (j / 4) & 15;
            if (bits == 5) value |= (quants[256 + at] >> j & 1) << 4;
            if (bits == 6) value |= (quants[256 + 64 * (j / 4) + at] >> 2 * (j % 4) & 3) << 4;
            level[4 * j + t] = static_cast<uint8_t>(value);
        }
    }
}

inline void pack_scales(int format, const SourceGroup& s, int64_t row, int64_t group, uint8_t* header) {
    const FormatShape shape = shape_of(format);
    if (shape.float_bytes == 2) return;
    if (!shape.is_super) {
        uint8_t* p = header + (shape.has_min ? 64 : 32) * (group / shape.scale_groups) + 2 * row;
        std::memcpy(p, &s.d, 2);
        if (shape.has_min) std::memcpy(p + 32, &s.m, 2);
        return;
    }
    std::memcpy(header + 2 * row, &s.d, 2);
    if (format == kQ6_K) {
        header[64 + 32 * group + row] = s.scale[0];
        header[64 + 32 * group + 16 + row] = s.scale[1];
        return;
    }
    std::memcpy(header + 32 + 2 * row, &s.m, 2);
    const int64_t at = 16 * (group % 4) + row;
    header[64 + 64 * (group / 4) + at] |= static_cast<uint8_t>((s.scale[0] & 15) | (s.minimum & 15) << 4);
    header[192 + at] |= static_cast<uint8_t>((s.scale[0] >> 4 | s.minimum >> 4 << 2) << 4 * (group / 4));
}

inline void unpack_scales(int format, const uint8_t* header, int64_t row, int64_t group, SourceGroup& s) {
    const FormatShape shape = shape_of(format);
    if (shape.float_bytes == 2) return;
    if (!shape.is_super) {
        const uint8_t* p = header + (shape.has_min ? 64 : 32) * (group / shape.scale_groups) + 2 * row;
        s.d = read_16(p);
        if (shape.has_min) s.m = read_16(p + 32);
        return;
    }
    s.d = read_16(header + 2 * row);
    if (format == kQ6_K) {
        s.scale[0] = header[64 + 32 * group + row];
        s.scale[1] = header[64 + 32 * group + 16 + row];
        return;
    }
    s.m = read_16(header + 32 + 2 * row);
    const int64_t at = 16 * (group % 4) + row;
    const uint8_t low = header[64 + 64 * (group / 4) + at];
    const int high = header[192 + at] >> 4 * (group / 4) & 15;
    s.scale[0] = static_cast<uint8_t>((low & 15) | (high & 3) << 4);
    s.minimum = static_cast<uint8_t>(low >> 4 | high >> 2 << 4);
}

inline void pack_tile(int format, const uint8_t* source, int64_t row_bytes, int64_t rows, int64_t columns, uint8_t* packed,
                      int64_t tile) {
    const int64_t groups = columns / kGroup, bytes = tile_bytes(format, columns);
    const FormatShape shape = shape_of(format);
    uint8_t* p = packed + tile * bytes;
    std::memset(p, 0, static_cast<size_t>(bytes));
    for (int64_t first = 0; first < groups; first += kChunkGroups) {
        const int64_t count = groups - first < kChunkGroups ? groups - first : kChunkGroups;
        uint8_t* quants = p + header_bytes(format, count);
        for (int64_t row = 0; row < kLanes && kLanes * tile + row < rows; ++row) {
            const uint8_t* from = source + (kLanes * tile + row) * row_bytes;
            for (int64_t g = 0; g < count; ++g) {
                const SourceGroup group = read_group(format, from, first + g);
                pack_scales(format, group, row, g, p);
                uint8_t* out = quants + shape.quant_bytes * g;
                if (shape.is_float()) {
                    pack_floats(shape.float_bytes, group.level, row, out);
                } else {
                    pack_levels(shape.bits, group.level, row, out);
                }
            }
        }
        p += chunk_bytes(format, count);
    }
}

// One row as fp32, rounded as the plain formula rounds: each product of scales is exact, the last step rounds once.
inline void dequantize_row(const Matrix& matrix, int64_t row, float* out) {
    const int format = static_cast<int>(matrix.format);
    const FormatShape shape = shape_of(format);
    const int64_t groups = matrix.columns / kGroup, lane = row % kLanes;
    const uint8_t* p = matrix.data + row / kLanes * tile_bytes(format, matrix.columns);
    for (int64_t first = 0; first < groups; first += kChunkGroups) {
        const int64_t count = groups - first < kChunkGroups ? groups - first : kChunkGroups;
        for (int64_t g = 0; g < count; ++g) {
            SourceGroup s{};
            unpack_scales(format, p, lane, g, s);
            const uint8_t* quants = p + header_bytes(format, count) + shape.quant_bytes * g;
            float* values = out + 32 * (first + g);
            if (shape.is_float()) {
                unpack_floats(shape.float_bytes, quants, lane, s.level);
                const float d = shape.float_bytes == 1 ? half_to_float(s.d) : 1.0f;
                for (int i = 0; i < 32; ++i) values[i] = d * float_of(format, s.level, i);
                continue;
            }
            unpack_levels(shape.bits, quants, lane, s.level);
            const float d = half_to_float(s.d), m = half_to_float(s.m);
            for (int i = 0; i < 32; ++i) {
                const int level = s.level[i];
                float value;
                if (shape.bits == 8) {
                    value = d * static_cast<float>(static_cast<int8_t>(level));
                } else if (format == kQ6_K) {
                    value = d * static_cast<float>(static_cast<int8_t>(s.scale[i / 16])) * static_cast<float>(level - 32);
                } else if (shape.is_super) {
                    value = d * static_cast<float>(s.scale[0]) * static_cast<float>(level) -
                            m * static_cast<float>(s.minimum);
                } else if (shape.has_min) {
                    value = d * static_cast<float>(level) + m;
                } else {
                    value = d * static_cast<float>(level - shape.offset);
                }
                values[i] = value;
            }
        }
        p += chunk_bytes(format, count);
    }
}

}  // namespace
