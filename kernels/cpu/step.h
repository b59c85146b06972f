// A whole step of a decoder, run by all threads of a pool together. Work is split over outputs, rows or heads, never over
// a sum, so the number of threads changes nothing but the time.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "attention.h"
#include "batch_check.h"
#include "buffer.h"
#include "pack.h"
#include "products.h"
#include "workers.h"

namespace {

// Up to this many rows every thread quantises all of them for itself, which is cheaper than to meet.
constexpr int64_t kOwnRows = 4;
// Tokens of one attention task.
constexpr int64_t kTaskTokens = 32;
// Operations that share their work, in a layer.
constexpr int64_t kLayerOperations = 6;

class Engine {
  public:
    Engine(const Model& model, int num_threads)
        : model_(model), layers_(model.layers, model.layers + model.num_layers),
          workers_(num_threads, kLayerOperations * model.num_layers + 1), scratch_(static_cast<size_t>(workers_.size())) {}

    Workers& workers() { return workers_; }
    void wake() { workers_.wake(); }

    int32_t step(const Batch& batch, const KvGroup* groups, float* logits, const volatile int32_t* cancel) {
        workers_.wake();
        if (!is_valid(model_, batch, groups)) return kBadBatch;
        if (batch.num_tokens == 0) return kDone;
        batch_ = &batch;
        groups_ = groups;
        logits_ = logits;
        cancel_ = cancel;
        is_cancelled_ = cancel && *cancel;
        reserve();
        if (batch.num_tokens <= kOwnRows)
            for (int64_t t = 0; t < batch.num_tokens; ++t) start_token(t);
        workers_.run([this](int thread) { run(thread); });
        return is_cancelled_ ? kCancelled : kDone;
    }

    // out [rows, matrix rows] = x [rows, matrix columns] * matrix: one product by itself.
    void matmul(const Matrix& matrix, const float* x, int64_t rows, float* out) {
        const int64_t groups = matrix.columns / kGroup;
        const Records records(hidden_records_.reserve(Records::bytes(rows, groups)), groups, rows);
        for (auto& scratch : scratch_) reserve_matmul(scratch);
        const Product product{&matrix, out, matrix.rows};
        workers_.run([&](int thread) {
            workers_.split(thread, rows, [&](int64_t r) { quantize_row(x + r * matrix.columns, matrix.columns, records.row(r)); });
            workers_.barrier();
            multiply(workers_, thread, 0, &product, 1, records, matmul_scratch(thread));
        });
    }

  private:
    struct Scratch {
        Buffer<uint8_t> open, records;
        Buffer<float> product, keys, values, state;
    };

    int64_t query_size() const { return model_.num_heads * model_.head_size; }
    int64_t kv_size() const { return model_.num_kv_heads * model_.head_size; }
    int64_t qkv_size() const { return query_size() + 2 * kv_size(); }
    int64_t heads_per_kv() const { return model_.num_heads / model_.num_kv_heads; }

    static void reserve_matmul(Scratch& scratch) {
        scratch.open.reserve(kTilesTogether * kOpenChunkBytes);
        scratch.product.reserve(kTilesTogether * kMaxPassRows * kLanes);
    }

    MatmulScratch matmul_scratch(int thread) const {
        const Scratch& own = scratch_[static_cast<size_t>(thread)];
        return {own.product.get(), own.open.get()};
    }

    void reserve() {
        const int64_t tokens = batch_->num_tokens, widest = std::max(model_.hidden_size, query_size());
        hidden_.reserve(tokens * model_.hidden_size);
        branch_.reserve(tokens * model_.hidden_size);
        qkv_.reserve(tokens * qkv_size());
        attended_.reserve(tokens * query_size());
        for (int i = 0; i < 2; ++i) {
            cosines_[i].reserve(tokens * model_.ropes[i].size / 2);
            sines_[i].reserve(tokens * model_.ropes[i].size / 2);
        }
        hidden_records_.reserve(Records::bytes(tokens, widest / kGroup));
        mlp_records_.reserve(Records::bytes(tokens, model_.intermediate_size / kGroup));
        const int64_t rows = std::min(tokens, kTaskTokens) * heads_per_kv();
        for (auto& scratch : scratch_) {
            reserve_matmul(scratch);
            scratch.records.reserve(Records::bytes(kOwnRows, widest / kGroup));
            scratch.keys.reserve(kTile * model_.head_size);
            scratch.values.reserve(kTile * model_.head_size);
            scratch.state.reserve(rows * (16 + model_.head_size));
        }
    }

    // Quantises rows with make(row, where to): alone when they are few, else together and with a meeting at the end.
    template <class Make>
    Records quantize(int thread, int64_t rows, int64_t columns, Make make) {
        const bool alone = rows <= kOwnRows;
        uint8_t* own = scratch_[static_cast<size_t>(thread)].records.get();
        const Records records(alone ? own : hidden_records_.get(), columns / kGroup, rows);
        if (alone) {
            for (int64_t r = 0; r < rows; ++r) make(r, records.row(r));
        } else {
            workers_.split(thread, rows, [&](int64_t r) { make(r, records.row(r)); });
            workers_.barrier();
        }
        return records;
    }

    void run(int thread) {
        if (is_cancelled_) return;
        if (batch_->num_tokens > kOwnRows) {
            workers_.split(thread, batch_->num_tokens, [&](int64_t t) { start_token(t); });
            workers_.barrier();
        }
        int64_t operation = 0;
        for (const Layer& layer : layers_) {
            const bool is_last = &layer == &layers_.back();
            const int64_t rows = is_last ? batch_->num_logits : batch_->num_tokens;
            attention(thread, layer, operation, rows);
            if (rows == 0) return;
            mlp(thread, layer, operation + 4, rows);
            operation += kLayerOperations;
            if (is_cancelled_) return;
        }
        if (model_.head.data)
            head(thread, operation);
        else
            hand_on(thread);
    }

    // Without a head, the hidden states themselves go where logits would: another device has the layers that follow.
    void hand_on(int thread) {
        const int64_t size = model_.hidden_size;
        workers_.split(thread, batch_->num_logits, [&](int64_t r) {
            std::copy(hidden_.get() + r * size, hidden_.get() + (r + 1) * size, logits_ + r * size);
        });
    }

    // The token's embedding and the angles of its position.
    void start_token(int64_t t) {
        float* x = hidden_.get() + t * model_.hidden_size;
        dequantize_row(model_.embedding, batch_->token_ids[t], x);
        if (model_.embedding_scale != 1.0) {
            const Floats scale = splat(static_cast<float>(model_.embedding_scale));
            for (int64_t i = 0; i < model_.hidden_size; i += 16) store(x + i, mul(load(x + i), scale));
        }
        for (int rope = 0; rope < 2; ++rope) {
            const Rope& by = model_.ropes[rope];
            const int64_t half = by.size / 2;
            for (int64_t i = 0; i < half; ++i) {
                const double angle = static_cast<double>(batch_->positions[t]) * by.inverse_frequencies[i];
                cosines_[rope].get()[t * half + i] = static_cast<float>(std::cos(angle) * by.factor);
                sines_[rope].get()[t * half + i] = static_cast<float>(std::sin(angle) * by.factor);
            }
        }
    }

    Records norm(int thread, const float* weight, int64_t rows) {
        const int64_t size = model_.hidden_size;
        return quantize(thread, rows, size, [&](int64_t r, const RowOut& out) {
            const float* x = hidden_.get() + r * size;
            if (!weight) return quantize_row(x, size, out);
            norm_and_quantize_row(x, weight, size, static_cast<float>(model_.norm_eps), out);
        });
    }

    // Of the last layer only the `rows` whose logits are wanted go on, in the places 0 .. rows - 1.
    void attention(int thread, const Layer& layer, int64_t operation, int64_t rows) {
        const int64_t tokens = batch_->num_tokens;
        const Records x = norm(thread, layer.attention_norm, tokens);
        float* qkv = qkv_.get();
        const Product products[] = {{&layer.q, qkv, qkv_size()},
                                    {&layer.k, qkv + query_size(), qkv_size()},
                                    {&layer.v, qkv + query_size() + kv_size(), qkv_size()}};
        multiply(workers_, thread, operation, products, 3, x, matmul_scratch(thread));
        workers_.barrier();

        // Norms over whole rows need all heads of a token in one place.
        const int64_t together = model_.qk_norm == kWholeNorm ? model_.num_kv_heads : 1;
        workers_.share(thread, operation + 1, tokens * model_.num_kv_heads / together, 1, [&](int64_t unit, int64_t) {
            store_token(layer, unit * together / model_.num_kv_heads, unit * together % model_.num_kv_heads, together);
        });
        workers_.barrier();
        if (rows == 0) return;
        attend_all(thread, layer, operation + 2);
        if (thread == 0 && rows < tokens) keep_rows();
        workers_.barrier();

        const int64_t size = query_size();
        const Records mixed = quantize(thread, rows, size, [&](int64_t r, const RowOut& out) {
            const int64_t row = rows < tokens ? batch_->logits_rows[r] : r;
            quantize_row(attended_.get() + row * size, size, out);
        });
        finish_branch(thread, operation + 3, layer.o, layer.o_bias, layer.attention_post_norm, mixed);
    }

    void keep_rows() {
        const int64_t size = model_.hidden_size;
        for (int64_t r = 0; r < batch_->num_logits; ++r) {
            const float* from = hidden_.get() + batch_->logits_rows[r] * size;
            std::copy(from, from + size, hidden_.get() + r * size);
        }
    }

    // Adds a branch's last product, with its bias, norm and scale, to the residual stream; a meeting at the end.
    void finish_branch(int thread, int64_t operation, const Matrix& matrix, const float* bias, const float* weight,
                       const Records& x) {
        const int64_t size = model_.hidden_size;
        const bool is_plain = !bias && !weight && model_.residual_scale == 1.0;
        const Product product{&matrix, is_plain ? hidden_.get() : branch_.get(), size, is_plain};
        multiply(workers_, thread, operation, &product, 1, x, matmul_scratch(thread));
        workers_.barrier();
        if (is_plain) return;
        const Floats scale = splat(static_cast<float>(model_.residual_scale));
        workers_.split(thread, x.rows, [&](int64_t r) {
            float *y = branch_.get() + r * size, *out = hidden_.get() + r * size;
            if (bias) add_bias(y, bias, size);
            if (weight) scale_row(y, norm_factor(y, size, static_cast<float>(model_.norm_eps)), weight, size, y);
            for (int64_t i = 0; i < size; i += 16) store(out + i, add(load(out + i), mul(load(y + i), scale)));
        });
        workers_.barrier();
    }

    // Biases, norms, rotation and scaling of the queries and keys of `heads` KV heads, and the store of keys and values.
    void store_token(const Layer& layer, int64_t t, int64_t first_head, int64_t heads) {
        const KvGroup& kv = groups_[layer.kv_group];
        const int64_t size = model_.head_size, per_kv = heads_per_kv(), queries = heads * per_kv;
        float* q = qkv_.get() + t * qkv_size() + first_head * per_kv * size;
        float* k = qkv_.get() + t * qkv_size() + query_size() + first_head * size;
        float* v = k + kv_size();
        if (layer.q_bias) add_bias(q, layer.q_bias + first_head * per_kv * size, queries * size);
        if (layer.k_bias) add_bias(k, layer.k_bias + first_head * size, heads * size);
        if (layer.v_bias) add_bias(v, layer.v_bias + first_head * size, heads * size);
        norm_heads(q, layer.q_norm, queries);
        norm_heads(k, layer.k_norm, heads);
        if (layer.rope >= 0) {
            const int64_t half = model_.ropes[layer.rope].size / 2;
            const float *cosine = cosines_[layer.rope].get() + t * half, *sine = sines_[layer.rope].get() + t * half;
            for (int64_t h = 0; h < queries; ++h) rotate(q + h * size, cosine, sine, half);
            for (int64_t h = 0; h < heads; ++h) rotate(k + h * size, cosine, sine, half);
        }
        const Floats scale = splat(static_cast<float>(model_.attention_scale));
        for (int64_t i = 0; i < queries * size; i += 16) store(q + i, mul(load(q + i), scale));
        if (kv.dtype == kInt8 && layer.key_unit) fit_keys(layer, q, k, first_head, heads);
        const int64_t slot = kv.slots[t];
        if (slot < 0) return;
        const int64_t block = slot / kBlock * kv.num_layers + layer.kv_index;
        for (int64_t h = 0; h < heads; ++h) {
            const int64_t head_block = block * model_.num_kv_heads + first_head + h;
            store_head(kv, head_block, slot % kBlock, k + h * size, v + h * size, size);
        }
    }

    // Brings the pairs of keys to one size, and the queries' the other way (engine/key_range.py).
    void fit_keys(const Layer& layer, float* q, float* k, int64_t first_head, int64_t heads) const {
        const int64_t size = model_.head_size, queries = heads_per_kv();
        for (int64_t h = 0; h < heads; ++h) {
            const float* offset = layer.key_offset + (first_head + h) * size;
            const float* unit = layer.key_unit + (first_head + h) * size;
            for (int64_t i = 0; i < size; i += 16) {
                float* key = k + h * size + i;
                store(key, div(sub(load(key), load(offset + i)), load(unit + i)));
                for (int64_t r = 0; r < queries; ++r) {
                    float* query = q + (h * queries + r) * size + i;
                    store(query, mul(load(query), load(unit + i)));
                }
            }
        }
    }

    void norm_heads(float* x, const float* weight, int64_t heads) const {
        if (!weight) return;
        const bool is_whole = model_.qk_norm == kWholeNorm;
        const int64_t size = is_whole ? heads * model_.head_size : model_.head_size;
        for (int64_t i = 0; i < heads * model_.head_size; i += size)
            scale_row(x + i, norm_factor(x + i, size, static_cast<float>(model_.norm_eps)), weight, size, x + i);
    }

    void attend_all(int thread, const Layer& layer, int64_t operation) {
        const KvGroup& kv = groups_[layer.kv_group];
        const int64_t per_kv = heads_per_kv(), size = model_.head_size;
        Scratch& own = scratch_[static_cast<size_t>(thread)];
        AttentionScratch scratch{own.keys.get(), own.values.get(), own.state.get()};
        int64_t total = 0;
        const auto tasks_of = [&](int64_t b) {
            return (batch_->query_starts[b + 1] - batch_->query_starts[b] + kTaskTokens - 1) / kTaskTokens;
        };
        for (int64_t b = 0; b < batch_->num_sequences; ++b) total += tasks_of(b) * model_.num_kv_heads;
        const auto task_of = [&](int64_t unit) {
            int64_t b = 0;
            while (unit >= tasks_of(b) * model_.num_kv_heads) unit -= tasks_of(b++) * model_.num_kv_heads;
            const int64_t kv_head = unit % model_.num_kv_heads;
            // The latest tokens first: they have the most to read.
            const int64_t run = tasks_of(b) - 1 - unit / model_.num_kv_heads;
            const int64_t first = batch_->query_starts[b] + run * kTaskTokens;
            const int64_t last = std::min<int64_t>(first + kTaskTokens, batch_->query_starts[b + 1]);
            const int64_t offset = kv_head * per_kv * size;
            const KvHead head{&kv, kv.block_tables + b * kv.max_blocks, layer.kv_index, kv_head, model_.num_kv_heads, size};
            return AttentionTask{head, batch_->positions + first, last - first, per_kv,
                                 qkv_.get() + first * qkv_size() + offset, qkv_size(),
                                 attended_.get() + first * query_size() + offset, query_size(),
                                 static_cast<float>(model_.attention_softcap)};
        };
        workers_.share(thread, operation, total, 1, [&](int64_t unit, int64_t) {
            // Most likely this thread's next.
            const AttentionTask task = task_of(unit);
            const TileBlocks next = unit + 1 < total ? task_of(unit + 1).first_blocks() : task.first_blocks();
            attend(task, next, scratch);
        });
    }

    void mlp(int thread, const Layer& layer, int64_t operation, int64_t rows) {
        const int64_t units = model_.intermediate_size / kGroup;
        const Records x = norm(thread, layer.mlp_norm, rows);
        const Records activated(mlp_records_.get(), units, rows);
        const MatmulScratch scratch = matmul_scratch(thread);
        const int64_t pass = rows <= kBlockRows ? rows : pass_rows(model_.hidden_size);
        const int64_t total = (rows + pass - 1) / pass * units;
        BlockScope scope;
        workers_.share(thread, operation, total, grain_of(total, rows, workers_.size()), [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i)
                activate(layer, x, i / units * pass, pass, i % units, activated, scope, scratch);
        });
        // Between the two barriers, so that all threads see the same.
        if (thread == 0) is_cancelled_ = cancel_ && *cancel_;
        workers_.barrier();
        finish_branch(thread, operation + 1, layer.down, layer.down_bias, layer.mlp_post_norm, activated);
    }

    // 32 outputs of gate and up for a pass of rows, through the activation into one group of records each.
    void activate(const Layer& layer, const Records& x, int64_t first_row, int64_t pass, int64_t unit,
                  const Records& activated, BlockScope& scope, const MatmulScratch& scratch) const {
        const int64_t rows = std::min(x.rows - first_row, pass);
        const Matrix *gate = &layer.gate, *up = &layer.up;
        const int64_t a = 2 * unit, b = a + 1;
        // Where each is read on: a few rows meet one tile or two after the other, many rows all four together.
        const int at_once = tiles_at_once(x.rows);
        const Matrix* matrices[] = {gate, gate, up, up, gate, gate, up, up};
        const int64_t order[] = {a, b, a, b, a + 2, b + 2, a + 2, b + 2};
        TileRef tiles[kTilesTogether];
        for (int i = 0; i < kTilesTogether; ++i)
            tiles[i] = TileRef(matrices[i], order[i], order[i + at_once], matrices[i + at_once]);
        multiply_tiles(tiles, 4, x, first_row, rows, scope, scratch);
        const auto value = [&](int64_t tile, int64_t r, const float* bias) {
            const Floats product = load(scratch.values + (tile * rows + r) * kLanes);
            return bias ? add(product, load(bias + kGroup * unit + kLanes * (tile % 2))) : product;
        };
        const auto gated = [&](int64_t half, int64_t r) {
            const Floats a = value(half, r, layer.gate_bias), b = value(2 + half, r, layer.up_bias);
            return mul(model_.activation == kSilu ? silu(a) : gelu_by_tanh(a), b);
        };
        for (int64_t r = 0; r < rows; ++r)
            quantize_group(gated(0, r), gated(1, r), activated.row(first_row + r).at(unit));
    }

    void head(int thread, int64_t operation) {
        const Records x = norm(thread, model_.output_norm, batch_->num_logits);
        const Product product{&model_.head, logits_, model_.vocab_size, false, static_cast<float>(model_.logit_scale),
                              static_cast<float>(model_.logit_softcap)};
        multiply(workers_, thread, operation, &product, 1, x, matmul_scratch(thread));
    }

    const Model model_;
    const std::vector<Layer> layers_;
    Workers workers_;
    std::vector<Scratch> scratch_;
    Buffer<float> hidden_, branch_, qkv_, attended_, cosines_[2], sines_[2];
    Buffer<uint8_t> hidden_records_, mlp_records_;
    const Batch* batch_ = nullptr;
    const KvGroup* groups_ = nullptr;
    float* logits_ = nullptr;
    const volatile int32_t* cancel_ = nullptr;
    bool is_cancelled_ = false;
};

}  // namespace
