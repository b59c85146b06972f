// A whole step of a decoder, run by all threads of a pool together. Work is split over outputs, rows or heads, never over
// a sum, so the number of threads changes nothing but the time.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <vector>

#include "attention.h"
#include "matmul.h"
#include "pack.h"
#include "thread_pool.h"

namespace {

// Memory aligned to cache lines that grows and never shrinks; contents are lost when it grows.
template <class T>
class Buffer {
  public:
    T* reserve(int64_t count) {
        if (count > size_) {
            const size_t bytes = (static_cast<size_t>(count) * sizeof(T) + 4095) / 4096 * 4096;
            data_.reset(static_cast<T*>(std::aligned_alloc(4096, bytes)));
            if (!data_) throw std::bad_alloc();
            std::memset(static_cast<void*>(data_.get()), 0, bytes);
            size_ = count;
        }
        return data_.get();
    }
    T* get() const { return data_.get(); }

  private:
    struct Free {
        void operator()(T* p) const { std::free(p); }
    };
    std::unique_ptr<T, Free> data_;
    int64_t size_ = 0;
};

// One product of a region: `columns` of `out` are written, or added to.
struct Product {
    const Matrix* matrix;
    float* out;
    int64_t stride;
    bool adds;
};

// Up to this many rows every thread quantises all of them for itself, which is cheaper than to meet.
constexpr int64_t kOwnRows = 2;
// Tokens of one attention task.
constexpr int64_t kTaskTokens = 32;

class Engine {
  public:
    Engine(const Model& model, int num_threads)
        : model_(model), layers_(model.layers, model.layers + model.num_layers), pool_(num_threads),
          counters_(static_cast<size_t>(8 * model.num_layers + 8)), scratch_(static_cast<size_t>(pool_.size())) {}

    ThreadPool& pool() { return pool_; }

    int32_t step(const Batch& batch, const KvGroup* groups, float* logits, const volatile int32_t* cancel) {
        if (!is_valid(batch, groups)) return kBadBatch;
        if (batch.num_tokens == 0) return kDone;
        batch_ = &batch;
        groups_ = groups;
        logits_ = logits;
        cancel_ = cancel;
        is_cancelled_ = cancel && *cancel;
        reserve();
        for (auto& counter : counters_) counter.next.store(0);
        pool_.run([this](int thread) { run(thread); });
        return is_cancelled_ ? kCancelled : kDone;
    }

    // out [rows, matrix rows] = x [rows, matrix columns] * matrix: one product by itself.
    void matmul(const Matrix& matrix, const float* x, int64_t rows, float* out) {
        const int64_t groups = matrix.columns / kGroup;
        const int64_t block = block_of(rows);
        const Records records{hidden_records_.reserve((rows + block) * groups), groups, block};
        for (int64_t r = 0; r < rows; ++r)
            quantize_row(x + r * matrix.columns, matrix.columns, records.row(r), records.step());
        for (auto& scratch : scratch_) scratch.open.reserve(kTilesTogether * groups * kOpenGroupBytes);
        counters_[0].next.store(0);
        const Product product{&matrix, out, matrix.rows, false};
        pool_.run([&](int thread) { multiply(thread, 0, &product, 1, records.data, rows); });
    }

  private:
    struct alignas(64) Counter {
        std::atomic<int64_t> next{0};
    };
    struct Scratch {
        Buffer<uint8_t> open;
        Buffer<Record> records;
        Buffer<float> keys, values, state;
    };

    bool is_valid(const Batch& batch, const KvGroup* groups) const {
        if (batch.num_tokens < 0 || batch.num_sequences < 0 || batch.num_logits < 0) return false;
        if (batch.query_starts[0] != 0 || batch.query_starts[batch.num_sequences] != batch.num_tokens) return false;
        for (int64_t r = 0; r < batch.num_logits; ++r) {
            const int64_t row = batch.logits_rows[r], before = r ? batch.logits_rows[r - 1] : -1;
            if (row <= before || row >= batch.num_tokens) return false;
        }
        for (int64_t t = 0; t < batch.num_tokens; ++t)
            if (batch.token_ids[t] < 0 || batch.token_ids[t] >= model_.vocab_size || batch.positions[t] < 0) return false;
        for (int64_t g = 0; g < model_.num_kv_groups; ++g) {
            for (int64_t t = 0; t < batch.num_tokens; ++t)
                if (groups[g].slots[t] < -1 || groups[g].slots[t] >= groups[g].num_blocks * kBlock) return false;
            for (int64_t b = 0; b < batch.num_sequences; ++b)
                if (!has_blocks(batch, groups[g], b)) return false;
        }
        return true;
    }

    static bool has_blocks(const Batch& batch, const KvGroup& group, int64_t sequence) {
        const int64_t begin = batch.query_starts[sequence], end = batch.query_starts[sequence + 1];
        if (end < begin) return false;
        for (int64_t t = begin; t < end; ++t) {
            const int64_t position = batch.positions[t];
            if (position / kBlock >= group.max_blocks) return false;
            const int64_t first = group.window ? std::max<int64_t>(position - group.window + 1, 0) : 0;
            // A token whose predecessor is in the same chunk needs no block that the predecessor did not, but its own.
            const bool follows = t > begin && batch.positions[t - 1] == position - 1;
            for (int64_t i = follows ? position / kBlock : first / kBlock; i <= position / kBlock; ++i) {
                const int32_t block = group.block_tables[sequence * group.max_blocks + i];
                if (block < 0 || block >= group.num_blocks) return false;
            }
        }
        return true;
    }

    int64_t query_size() const { return model_.num_heads * model_.head_size; }
    int64_t kv_size() const { return model_.num_kv_heads * model_.head_size; }
    int64_t qkv_size() const { return query_size() + 2 * kv_size(); }

    void reserve() {
        const int64_t tokens = batch_->num_tokens, widest = std::max(model_.hidden_size, query_size());
        hidden_.reserve(tokens * model_.hidden_size);
        qkv_.reserve(tokens * qkv_size());
        attended_.reserve(tokens * query_size());
        cosines_.reserve(tokens * model_.rope_size / 2);
        sines_.reserve(tokens * model_.rope_size / 2);
        hidden_records_.reserve((tokens + kBlockRows) * widest / kGroup);
        mlp_records_.reserve((tokens + kBlockRows) * model_.intermediate_size / kGroup);
        const int64_t columns = std::max(widest, model_.intermediate_size);
        const int64_t rows = std::min(tokens, kTaskTokens) * model_.num_heads / model_.num_kv_heads;
        for (auto& scratch : scratch_) {
            scratch.records.reserve(kOwnRows * widest / kGroup);
            scratch.open.reserve(kTilesTogether * columns / kGroup * kOpenGroupBytes);
            scratch.keys.reserve(kTile * model_.head_size);
            scratch.values.reserve(kTile * model_.head_size);
            scratch.state.reserve(rows * (16 + model_.head_size));
        }
    }

    // Calls work(first, last) for runs of `grain` units until none are left; every thread calls it.
    template <class Work>
    void share(int64_t counter, int64_t total, int64_t grain, Work work) {
        auto& next = counters_[static_cast<size_t>(counter)].next;
        while (true) {
            const int64_t first = next.fetch_add(grain);
            if (first >= total) return;
            work(first, std::min(first + grain, total));
        }
    }

    // This thread's part of `total` rows.
    template <class Work>
    void split(int thread, int64_t total, Work work) {
        const int64_t size = pool_.size();
        for (int64_t i = total * thread / size; i < total * (thread + 1) / size; ++i) work(i);
    }

    // Quantises rows with make(row, record, step): alone when they are few, else together and with a meeting at the end.
    template <class Make>
    const Record* quantize(int thread, int64_t rows, int64_t columns, Make make) {
        Record* own = scratch_[static_cast<size_t>(thread)].records.get();
        const Records records{rows <= kOwnRows ? own : hidden_records_.get(), columns / kGroup, block_of(rows)};
        if (rows <= kOwnRows) {
            for (int64_t r = 0; r < rows; ++r) make(r, records.row(r), records.step());
        } else {
            split(thread, rows, [&](int64_t r) { make(r, records.row(r), records.step()); });
            pool_.barrier();
        }
        return records.data;
    }

    int64_t grain(int64_t total, int64_t rows) const {
        const int64_t fair = total / (pool_.size() * (rows > kMaxRows ? 3 : 6));
        return std::max<int64_t>(1, std::min<int64_t>(fair, 8));
    }

    // Products that share their activations, tile by tile.
    void multiply(int thread, int64_t counter, const Product* products, int count, const Record* x, int64_t rows) {
        int64_t total = 0;
        for (int i = 0; i < count; ++i) total += num_tiles(products[i].matrix->rows);
        uint8_t* open = scratch_[static_cast<size_t>(thread)].open.get();
        share(counter, total, grain(total, rows), [&](int64_t first, int64_t last) {
            while (first < last) {
                const Product* product = products;
                int64_t tile = first;
                while (tile >= num_tiles(product->matrix->rows)) tile -= num_tiles((product++)->matrix->rows);
                const int64_t end = std::min(tile + last - first, num_tiles(product->matrix->rows));
                const int together = static_cast<int>(std::min<int64_t>(end - tile, kTilesTogether));
                TileRef tiles[kTilesTogether];
                for (int i = 0; i < together; ++i) tiles[i] = {product->matrix, tile + i};
                multiply_tiles(tiles, together, x, rows, open, [&](int64_t row, int64_t block, const float* values) {
                    for (int i = 0; i < together; ++i)
                        for (int64_t r = 0; r < block; ++r)
                            write(*product, tile + i, row + r, values + (i * kBlockRows + r) * kLanes);
                });
                first += together;
            }
        });
    }

    static void write(const Product& product, int64_t tile, int64_t row, const float* values) {
        float* out = product.out + row * product.stride + tile * kLanes;
        const int64_t left = product.matrix->rows - tile * kLanes;
        if (left < kLanes) {
            for (int64_t i = 0; i < left; ++i) out[i] = product.adds ? out[i] + values[i] : values[i];
        } else {
            store(out, product.adds ? add(load(out), load(values)) : load(values));
        }
    }

    void run(int thread) {
        if (is_cancelled_) return;
        split(thread, batch_->num_tokens, [&](int64_t t) { start_token(t); });
        pool_.barrier();
        int64_t counter = 0;
        for (const Layer& layer : layers_) {
            const bool is_last = &layer == &layers_.back();
            const int64_t rows = is_last ? batch_->num_logits : batch_->num_tokens;
            attention(thread, layer, counter, rows);
            if (rows == 0) return;
            mlp(thread, layer, counter, rows);
            if (thread == 0) is_cancelled_ = cancel_ && *cancel_;
            pool_.barrier();
            if (is_cancelled_) return;
        }
        head(thread, counter);
    }

    // The token's embedding and the angles of its position.
    void start_token(int64_t t) {
        dequantize_row(model_.embedding, batch_->token_ids[t], hidden_.get() + t * model_.hidden_size);
        const int64_t half = model_.rope_size / 2;
        for (int64_t i = 0; i < half; ++i) {
            const double angle = static_cast<double>(batch_->positions[t]) * model_.inverse_frequencies[i];
            cosines_.get()[t * half + i] = static_cast<float>(std::cos(angle));
            sines_.get()[t * half + i] = static_cast<float>(std::sin(angle));
        }
    }

    const Record* norm(int thread, const float* weight, int64_t rows) {
        const int64_t size = model_.hidden_size;
        return quantize(thread, rows, size, [&](int64_t r, Record* out, int64_t step) {
            norm_and_quantize_row(hidden_.get() + r * size, weight, size, static_cast<float>(model_.norm_eps), out, step);
        });
    }

    // Of the last layer only the `rows` whose logits are wanted go on, in the places 0 .. rows - 1.
    void attention(int thread, const Layer& layer, int64_t& counter, int64_t rows) {
        const int64_t tokens = batch_->num_tokens;
        const Record* x = norm(thread, layer.attention_norm, tokens);
        float* qkv = qkv_.get();
        const Product products[] = {{&layer.q, qkv, qkv_size(), false},
                                    {&layer.k, qkv + query_size(), qkv_size(), false},
                                    {&layer.v, qkv + query_size() + kv_size(), qkv_size(), false}};
        multiply(thread, counter++, products, 3, x, tokens);
        pool_.barrier();

        share(counter++, tokens * model_.num_kv_heads, 1, [&](int64_t unit, int64_t) {
            store_token(layer, unit / model_.num_kv_heads, unit % model_.num_kv_heads);
        });
        pool_.barrier();
        if (rows == 0) return;
        attend_all(thread, layer, counter++);
        if (thread == 0 && rows < tokens) keep_rows();
        pool_.barrier();

        const int64_t size = query_size();
        const Record* mixed = quantize(thread, rows, size, [&](int64_t r, Record* out, int64_t step) {
            const int64_t row = rows < tokens ? batch_->logits_rows[r] : r;
            quantize_row(attended_.get() + row * size, size, out, step);
        });
        const Product product{&layer.o, hidden_.get(), model_.hidden_size, true};
        multiply(thread, counter++, &product, 1, mixed, rows);
        pool_.barrier();
    }

    void keep_rows() {
        const int64_t size = model_.hidden_size;
        for (int64_t r = 0; r < batch_->num_logits; ++r) {
            const float* from = hidden_.get() + batch_->logits_rows[r] * size;
            std::copy(from, from + size, hidden_.get() + r * size);
        }
    }

    // Biases, rotation and scaling of one KV head's queries and key, and the store of its key and value.
    void store_token(const Layer& layer, int64_t t, int64_t kv_head) {
        const KvGroup& kv = groups_[layer.kv_group];
        const int64_t size = model_.head_size, half = model_.rope_size / 2;
        const int64_t per_kv = model_.num_heads / model_.num_kv_heads;
        const float *cosine = cosines_.get() + t * half, *sine = sines_.get() + t * half;
        float* q = qkv_.get() + t * qkv_size() + kv_head * per_kv * size;
        float* k = qkv_.get() + t * qkv_size() + query_size() + kv_head * size;
        float* v = k + kv_size();
        if (layer.q_bias) add_bias(q, layer.q_bias + kv_head * per_kv * size, per_kv * size);
        if (layer.k_bias) add_bias(k, layer.k_bias + kv_head * size, size);
        if (layer.v_bias) add_bias(v, layer.v_bias + kv_head * size, size);
        for (int64_t h = 0; h < per_kv; ++h) rotate(q + h * size, cosine, sine, half);
        const Floats scale = splat(static_cast<float>(model_.attention_scale));
        for (int64_t i = 0; i < per_kv * size; i += 16) store(q + i, mul(load(q + i), scale));
        rotate(k, cosine, sine, half);
        const int64_t slot = kv.slots[t];
        if (slot < 0) return;
        const int64_t block = layer.kv_index * kv.num_blocks + slot / kBlock;
        const int64_t at = (block * model_.num_kv_heads + kv_head) * kBlock + slot % kBlock;
        store_head(k, size, kv.dtype, kv.k, kv.k_scale, at);
        store_head(v, size, kv.dtype, kv.v, kv.v_scale, at);
    }

    void attend_all(int thread, const Layer& layer, int64_t counter) {
        const KvGroup& kv = groups_[layer.kv_group];
        const int64_t per_kv = model_.num_heads / model_.num_kv_heads, size = model_.head_size;
        Scratch& own = scratch_[static_cast<size_t>(thread)];
        AttentionScratch scratch{own.keys.get(), own.values.get(), own.state.get()};
        int64_t total = 0;
        const auto tasks_of = [&](int64_t b) {
            return (batch_->query_starts[b + 1] - batch_->query_starts[b] + kTaskTokens - 1) / kTaskTokens;
        };
        for (int64_t b = 0; b < batch_->num_sequences; ++b) total += tasks_of(b) * model_.num_kv_heads;
        share(counter, total, 1, [&](int64_t unit, int64_t) {
            int64_t b = 0;
            while (unit >= tasks_of(b) * model_.num_kv_heads) unit -= tasks_of(b++) * model_.num_kv_heads;
            const int64_t kv_head = unit % model_.num_kv_heads;
            // The latest tokens first: they have the most to read.
            const int64_t run = tasks_of(b) - 1 - unit / model_.num_kv_heads;
            const int64_t first = batch_->query_starts[b] + run * kTaskTokens;
            const int64_t last = std::min<int64_t>(first + kTaskTokens, batch_->query_starts[b + 1]);
            const int64_t offset = kv_head * per_kv * size;
            attend({&kv, kv.block_tables + b * kv.max_blocks, batch_->positions + first, last - first, layer.kv_index,
                    kv_head, model_.num_kv_heads, per_kv, size, qkv_.get() + first * qkv_size() + offset, qkv_size(),
                    attended_.get() + first * query_size() + offset, query_size()},
                   scratch);
        });
    }

    void mlp(int thread, const Layer& layer, int64_t& counter, int64_t rows) {
        const int64_t units = model_.intermediate_size / kGroup;
        const Record* x = norm(thread, layer.mlp_norm, rows);
        const Records activated{mlp_records_.get(), units, block_of(rows)};
        uint8_t* open = scratch_[static_cast<size_t>(thread)].open.get();
        share(counter++, units, grain(units, rows), [&](int64_t first, int64_t last) {
            for (int64_t unit = first; unit < last; ++unit) {
                const TileRef tiles[] = {{&layer.gate, 2 * unit}, {&layer.gate, 2 * unit + 1},
                                         {&layer.up, 2 * unit}, {&layer.up, 2 * unit + 1}};
                multiply_tiles(tiles, 4, x, rows, open, [&](int64_t row, int64_t block, const float* values) {
                    const auto value = [&](int tile, int64_t r) { return load(values + (tile * kBlockRows + r) * kLanes); };
                    for (int64_t r = 0; r < block; ++r)
                        quantize_group(mul(silu(value(0, r)), value(2, r)), mul(silu(value(1, r)), value(3, r)),
                                       activated.row(row + r) + unit * activated.step());
                });
            }
        });
        pool_.barrier();
        const Product product{&layer.down, hidden_.get(), model_.hidden_size, true};
        multiply(thread, counter++, &product, 1, activated.data, rows);
    }

    void head(int thread, int64_t counter) {
        const Record* x = norm(thread, model_.output_norm, batch_->num_logits);
        const Product product{&model_.head, logits_, model_.vocab_size, false};
        multiply(thread, counter, &product, 1, x, batch_->num_logits);
    }

    const Model model_;
    const std::vector<Layer> layers_;
    ThreadPool pool_;
    std::vector<Counter> counters_;
    std::vector<Scratch> scratch_;
    Buffer<float> hidden_, qkv_, attended_, cosines_, sines_;
    Buffer<Record> hidden_records_, mlp_records_;
    const Batch* batch_ = nullptr;
    const KvGroup* groups_ = nullptr;
    float* logits_ = nullptr;
    const volatile int32_t* cancel_ = nullptr;
    bool is_cancelled_ = false;
};

}  // namespace
