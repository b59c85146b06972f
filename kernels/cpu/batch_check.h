// Whether a step names only tokens, rows, blocks and slots that exist: what the kernels rely on.
#pragma once
#include <algorithm>
#include <cstdint>

#include "attention.h"

namespace {

// Whether the block table of a sequence has what its tokens of this step read and write.
inline bool has_blocks(const Batch& batch, const KvGroup& group, int64_t sequence) {
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

inline bool is_valid(const Model& model, const Batch& batch, const KvGroup* groups) {
    if (batch.num_tokens < 0 || batch.num_sequences < 0 || batch.num_logits < 0) return false;
    if (batch.query_starts[0] != 0 || batch.query_starts[batch.num_sequences] != batch.num_tokens) return false;
    for (int64_t r = 0; r < batch.num_logits; ++r) {
        const int64_t row = batch.logits_rows[r], before = r ? batch.logits_rows[r - 1] : -1;
        if (row <= before || row >= batch.num_tokens) return false;
    }
    for (int64_t t = 0; t < batch.num_tokens; ++t)
        if (batch.token_ids[t] < 0 || batch.token_ids[t] >= model.vocab_size || batch.positions[t] < 0) return false;
    for (int64_t g = 0; g < model.num_kv_groups; ++g) {
        for (int64_t t = 0; t < batch.num_tokens; ++t)
            if (groups[g].slots[t] < -1 || groups[g].slots[t] >= groups[g].num_blocks * kBlock) return false;
        for (int64_t b = 0; b < batch.num_sequences; ++b)
            if (!has_blocks(batch, groups[g], b)) return false;
    }
    return true;
}

}  // namespace
