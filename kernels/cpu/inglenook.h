// The C interface of the native kernels: plain structs and functions, called through ctypes (kernels/native.py mirrors
// every struct field by field). Each instruction set is a library of its own with exactly these symbols.
#pragma once
#include <cstdint>

#if defined(_WIN32)
#define INGLENOOK_API extern "C" __declspec(dllexport)
#else
#define INGLENOOK_API extern "C" __attribute__((visibility("default")))
#endif

constexpr int32_t kInterfaceVersion = 5;

enum FormatId : int32_t {
    kQ4_0, kQ4_1, kQ5_0, kQ5_1, kQ8_0, kQ4_K, kQ5_K, kQ6_K,
    // Groups of 64 or 128 inputs of models that were quantised here, and plain elements.
    kInt4G64, kInt4G128, kInt8G64, kInt8G128, kFloat8G32, kFloat8G64, kFloat8G128, kF16, kBf16,
    kFormatCount
};
enum KvDtype : int32_t { kFloat32, kFloat16, kBfloat16, kInt8 };
enum QkNorm : int32_t { kNoNorm, kHeadNorm, kWholeNorm };
enum Activation : int32_t { kSilu, kGeluTanh };
enum StepResult : int32_t { kDone = 0, kCancelled = 1, kBadBatch = -1, kNoMemory = -2 };

// A packed matrix: `rows` outputs, `columns` inputs (see packed_format.h for the bytes).
struct Matrix {
    const uint8_t* data;
    int64_t rows;
    int64_t columns;
    int64_t format;
};

// Vectors are null where a model has none.
struct Layer {
    const float* attention_norm;
    const float* q_bias;
    const float* k_bias;
    const float* v_bias;
    const float* q_norm;
    const float* k_norm;
    const float* o_bias;
    const float* attention_post_norm;
    const float* mlp_norm;
    const float* gate_bias;
    const float* up_bias;
    const float* down_bias;
    const float* mlp_post_norm;
    Matrix q, k, v, o, gate, up, down;
    int64_t kv_group;  // which KvGroup holds this layer, and at which index
    int64_t kv_index;
    int64_t rope;  // which of the model's, -1 for none
    // [num_kv_heads * head_size] or null, for int8 caches: they hold (key - offset) / unit, and queries are multiplied by
    // unit, a power of two (engine/key_range.py).
    const float* key_offset;
    const float* key_unit;
};

// Rotation of the first `size` elements of a head; pairs are (i, i + size / 2).
struct Rope {
    const double* inverse_frequencies;  // [size / 2]
    int64_t size;
    double factor;  // of cosine and sine
};

struct Model {
    int64_t vocab_size, hidden_size, num_layers, num_heads, num_kv_heads, head_size, intermediate_size;
    int64_t num_kv_groups;
    int64_t qk_norm;     // QkNorm
    int64_t activation;  // Activation
    double norm_eps;
    double attention_scale, attention_softcap;  // a cap of 0 is none
    double embedding_scale, residual_scale, logit_scale, logit_softcap;
    Rope ropes[2];
    const float* output_norm;
    Matrix embedding, head;
    const Layer* layers;
};

// One KV group's tensors, in the order of blocks, and this step's tables (engine/kv_cache.py, engine/batch.py).
struct KvGroup {
    void* k;
    void* v;
    float* k_scale;
    float* v_scale;
    const int32_t* block_tables;
    const int64_t* slots;
    int64_t num_blocks;
    int64_t num_layers;
    int64_t max_blocks;  // columns of block_tables
    int64_t window;      // 0 is the whole context
    int64_t dtype;
};

struct Batch {
    const int64_t* token_ids;
    const int64_t* positions;
    const int32_t* query_starts;
    const int32_t* context_lengths;
    const int64_t* logits_rows;
    int64_t num_tokens, num_sequences, num_logits;
};

INGLENOOK_API int32_t inglenook_interface_version();
INGLENOOK_API const char* inglenook_isa();
// 1 when this processor and operating system run this library's instructions.
INGLENOOK_API int32_t inglenook_is_supported();

INGLENOOK_API void* inglenook_create(const Model* model, int32_t num_threads);
INGLENOOK_API void inglenook_destroy(void* engine);
// Wakes the engine's threads, so that they are there when a step comes; they sleep again after 50 us without one.
INGLENOOK_API void inglenook_wake(void* engine);
// `cancel` is polled between layers; a cancelled step leaves the logits and the step's slots undefined.
INGLENOOK_API int32_t inglenook_step(void* engine, const Batch* batch, const KvGroup* groups, float* logits,
                                     const volatile int32_t* cancel);

INGLENOOK_API int64_t inglenook_packed_bytes(int32_t format, int64_t rows, int64_t columns);
// Packs the tiles [first_tile, last_tile) of a matrix whose file rows start `row_bytes` apart.
INGLENOOK_API void inglenook_pack(int32_t format, const uint8_t* source, int64_t row_bytes, int64_t rows, int64_t columns,
                                  uint8_t* packed, int64_t first_tile, int64_t last_tile);
INGLENOOK_API void inglenook_dequantize_row(const Matrix* matrix, int64_t row, float* out);
INGLENOOK_API uint64_t inglenook_checksum(const uint8_t* data, int64_t size);

// The pieces of a step by themselves, for tests and benchmarks.
INGLENOOK_API int64_t inglenook_record_bytes(int64_t columns);
INGLENOOK_API void inglenook_quantize(const float* x, int64_t rows, int64_t columns, uint8_t* records);
INGLENOOK_API void inglenook_matmul(void* engine, const Matrix* matrix, const float* x, int64_t rows, float* out);
INGLENOOK_API void inglenook_exp(const float* x, int64_t count, float* out);
// Seconds that all threads take to read `data` once.
INGLENOOK_API double inglenook_read_seconds(void* engine, const uint8_t* data, int64_t size);
