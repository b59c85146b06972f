// The C interface over one instruction set; each isa_*.cpp includes its vector header and then this file.
#pragma once
#include <chrono>

#include "step.h"

INGLENOOK_API int32_t inglenook_interface_version() { return kInterfaceVersion; }

INGLENOOK_API void* inglenook_create(const Model* model, int32_t num_threads) try {
    return new Engine(*model, num_threads);
} catch (const std::exception&) {
    return nullptr;
}

INGLENOOK_API void inglenook_destroy(void* engine) { delete static_cast<Engine*>(engine); }

INGLENOOK_API void inglenook_wake(void* engine) { static_cast<Engine*>(engine)->wake(); }

INGLENOOK_API int32_t inglenook_step(void* engine, const Batch* batch, const KvGroup* groups, float* logits,
                                     const volatile int32_t* cancel) try {
    return static_cast<Engine*>(engine)->step(*batch, groups, logits, cancel);
} catch (const std::bad_alloc&) {
    return kNoMemory;
}

INGLENOOK_API int64_t inglenook_packed_bytes(int32_t format, int64_t rows, int64_t columns) {
    return num_tiles(rows) * tile_bytes(format, columns);
}

INGLENOOK_API void inglenook_pack(int32_t format, const uint8_t* source, int64_t row_bytes, int64_t rows, int64_t columns,
                                  uint8_t* packed, int64_t first_tile, int64_t last_tile) {
    for (int64_t tile = first_tile; tile < last_tile; ++tile)
        pack_tile(format, source, row_bytes, rows, columns, packed, tile);
}

INGLENOOK_API void inglenook_dequantize_row(const Matrix* matrix, int64_t row, float* out) {
    const FloatMode mode;
    dequantize_row(*matrix, row, out);
}

// Eight chains of multiply and xor: against damage on disk, not against an adversary.
INGLENOOK_API uint64_t inglenook_checksum(const uint8_t* data, int64_t size) {
    constexpr uint64_t prime = 0x9e3779b97f4a7c15u;
    uint64_t chains[8];
    for (uint64_t i = 0; i < 8; ++i) chains[i] = prime * (i + 1);
    int64_t at = 0;
    for (; at + 64 <= size; at += 64) {
        uint64_t words[8];
        std::memcpy(words, data + at, 64);
        for (int i = 0; i < 8; ++i) chains[i] = (chains[i] ^ words[i]) * prime + (chains[i] >> 29);
    }
    uint64_t sum = static_cast<uint64_t>(size);
    for (; at < size; ++at) sum = (sum ^ data[at]) * prime + (sum >> 29);
    for (uint64_t chain : chains) sum = (sum ^ chain ^ chain >> 31) * prime + (sum >> 29);
    return sum ^ sum >> 32;
}

INGLENOOK_API int64_t inglenook_record_bytes(int64_t columns) {
    return columns / kGroup * kRecordBytes;
}

INGLENOOK_API void inglenook_quantize(const float* x, int64_t rows, int64_t columns, uint8_t* records) {
    const FloatMode mode;
    for (int64_t r = 0; r < rows; ++r)
        quantize_row(x + r * columns, columns, Records(records + r * columns / kGroup * kRecordBytes, columns / kGroup, 1).row(0));
}

INGLENOOK_API void inglenook_matmul(void* engine, const Matrix* matrix, const float* x, int64_t rows, float* out) {
    static_cast<Engine*>(engine)->matmul(*matrix, x, rows, out);
}

INGLENOOK_API void inglenook_exp(const float* x, int64_t count, float* out) {
    const FloatMode mode;
    for (int64_t i = 0; i < count; i += kLanes) store(out + i, exponential(load(x + i)));
}

// Seconds that all threads take to read `data` once: the yardstick for decoding.
INGLENOOK_API double inglenook_read_seconds(void* engine, const uint8_t* data, int64_t size) {
    Workers& workers = static_cast<Engine*>(engine)->workers();
    std::atomic<uint64_t> total{0};
    const auto start = std::chrono::steady_clock::now();
    workers.run([&](int thread) {
        const int64_t part = size / workers.size() / 512 * 512;
        const uint8_t* p = data + thread * part;
        Bytes sum = splat_byte(0);
        const Bytes all = splat_byte(0xff);
        for (int64_t i = 0; i < part; i += 64) {
            prefetch_far(p + i + kFar);
            sum = merge(sum, load_bytes(p + i), all);
        }
        alignas(64) uint8_t bytes[64];
        store_bytes(bytes, sum);
        total.fetch_add(bytes[0]);
    });
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    // `total` is used, so that the reads cannot be left out.
    return total.load() == UINT64_MAX ? -1.0 : elapsed.count();
}
