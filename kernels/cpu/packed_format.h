// Packed weights: how the bytes of a matrix lie for every instruction set.
//
// A matrix is cut into tiles of 16 output rows (the lanes), a tile into chunks of up to 8 groups of 32 inputs. A chunk is
// a header with its scales and then the quants of each group; all parts start at multiples of 64 bytes, and a matrix is
// one forward stream. Vector j (0..7) of a group holds, for each row r, the 4 inputs 4j..4j+3 at bytes 4r..4r+3, which is
// what one 32-bit-lane dot-product instruction takes. Widths are the file's own:
//
//   nibbles   4 vectors; byte of vector i = vector i in the low half, vector i + 4 in the high half
//   5th bit   1 vector; bit j of each byte belongs to vector j
//   2 bits    2 vectors; bits 2j, 2j+1 of a byte of vector 0 belong to vector j, of vector 1 to vector j + 4
//   8 bits    8 vectors of signed bytes
//   floats    32 vectors, one an input, of the 16 rows' float8 (e4m3), fp16 or bf16
//
//   headers   Q4_0 Q5_0 Q8_0: d[16] fp16 a group.   Q4_1 Q5_1: d[16], m[16] fp16 a group.
//             Int4, Int8, Float8 in groups of G inputs: the same, once for G / 32 groups.   F16 Bf16: none.
//             Q4_K Q5_K: d[16], dmin[16] fp16, then 6-bit scales and mins as three vectors (see KScales).
//             Q6_K: d[16] fp16, 32 bytes unused, then two int8 scales (inputs 0..15, 16..31) [2][16] a group.
#pragma once
#include <cstdint>

#include "inglenook.h"

constexpr int64_t kLanes = 16;
constexpr int64_t kGroup = 32;
constexpr int64_t kChunkGroups = 8;

struct FormatShape {
    int bits;          // of the stored level
    int offset;        // subtracted from the level
    bool has_min;      // an additive minimum a group
    bool is_super;     // 256-wide super-blocks with scales of scales
    int quant_bytes;   // of one packed group
    int source_block;  // elements and bytes of one block in the file
    int source_bytes;
    int scale_groups = 1;  // groups of 32 that share their scales
    int float_bytes = 0;   // of one element, where elements are floats

    constexpr bool is_float() const { return float_bytes > 0; }
};

constexpr FormatShape shape_of(int format) {
    switch (format) {
        case kQ4_0: return {4, 8, false, false, 256, 32, 18};
        case kQ4_1: return {4, 0, true, false, 256, 32, 20};
        case kQ5_0: return {5, 16, false, false, 320, 32, 22};
        case kQ5_1: return {5, 0, true, false, 320, 32, 24};
        case kQ8_0: return {8, 128, false, false, 512, 32, 34};
        case kQ4_K: return {4, 0, true, true, 256, 256, 144};
        case kQ5_K: return {5, 0, true, true, 320, 256, 176};
        case kQ6_K: return {6, 32, false, true, 384, 256, 210};
        case kInt4G64: return {4, 0, true, false, 256, 64, 36, 2};
        case kInt4G128: return {4, 0, true, false, 256, 128, 68, 4};
        case kInt8G64: return {8, 128, false, false, 512, 64, 66, 2};
        case kInt8G128: return {8, 128, false, false, 512, 128, 130, 4};
        case kFloat8G32: return {8, 0, false, false, 512, 32, 34, 1, 1};
        case kFloat8G64: return {8, 0, false, false, 512, 64, 66, 2, 1};
        case kFloat8G128: return {8, 0, false, false, 512, 128, 130, 4, 1};
        default: return {16, 0, false, false, 1024, 1, 2, 1, 2};
    }
}

constexpr int64_t header_bytes(int format, int64_t groups) {
    const FormatShape shape = shape_of(format);
    if (format == kQ6_K) return 64 + 32 * kChunkGroups;
    if (shape.is_super) return 256;
    if (shape.float_bytes == 2) return 0;
    const int64_t scales = groups / shape.scale_groups;
    return shape.has_min ? 64 * scales : (32 * scales + 63) / 64 * 64;
}

constexpr int64_t chunk_bytes(int format, int64_t groups) {
    return header_bytes(format, groups) + groups * shape_of(format).quant_bytes;
}

inline int64_t tile_bytes(int format, int64_t columns) {
    const int64_t groups = columns / kGroup;
    const int64_t rest = groups % kChunkGroups;
    return groups / kChunkGroups * chunk_bytes(format, kChunkGroups) + (rest ? chunk_bytes(format, rest) : 0);
}

inline int64_t num_tiles(int64_t rows) { return (rows + kLanes - 1) / kLanes; }
