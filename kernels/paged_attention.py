"""Attention over a paged KV cache: storing keys and values, the plain reference, and PyTorch's fused twin.

For query row t of sequence b at position p, over cached positions j of the same sequence:

    y[t, h] = sum_j softmax_j(scale * <q[t, h], k[j, h']>) * v[j, h'],   h' = h // (H / H_kv)

with s a softcap, scores are s * tanh(score / s) before the softmax; where j <= p and, with a sliding window W > 0, p - j < W (the current token counts). One layer's keys and values are
[num_blocks, H_kv, S, D]; position j of a sequence lies in block block_table[j // S] at offset j % S. Softmax and
accumulation are in float32; masked scores are -inf, and every row sees at least itself.

Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention", 2023.
"""

from __future__ import annotations

import torch

from inglenook.kernels.softcap import softcap as cap_scores


def store_kv(
    k: torch.Tensor, v: torch.Tensor, k_cache: torch.Tensor, v_cache: torch.Tensor, slots: torch.Tensor
) -> None:
    """Write this step's keys and values, in place.

    k, v: [T, H_kv, D].  k_cache, v_cache: [num_blocks, H_kv, S, D], written in their dtype.
    slots: int64 [T], block * S + offset; rows of slot -1 are not stored.
    """
    size = k_cache.shape[2]
    kept = slots >= 0
    if not bool(kept.all()):
        k, v, slots = k[kept], v[kept], slots[kept]
    block, offset = slots // size, slots % size
    k_cache[block, :, offset] = k.to(k_cache.dtype)
    v_cache[block, :, offset] = v.to(v_cache.dtype)


def gather_kv(cache: torch.Tensor, block_table: torch.Tensor, first: int, length: int) -> torch.Tensor:
    """Collect positions `first` to `length` (exclusive) of one sequence: returns [H_kv, length - first, D]."""
    size = cache.shape[2]
    start = first // size
    blocks = block_table[start : (length + size - 1) // size].long()
    tiles = cache[blocks].transpose(0, 1).flatten(1, 2)
    return tiles[:, first - start * size : length - start * size]


def _visible(
    position: int, rows: int, first: int, length: int, window: int, device: torch.device
) -> torch.Tensor:
    """Mask [rows, length - first]: which cached positions each query row, from `position` on, may see."""
    queries = torch.arange(position, position + rows, device=device)
    distance = queries[:, None] - torch.arange(first, length, device=device)[None, :]
    mask = distance >= 0
    return mask & (distance < window) if window else mask


def paged_attention(
    q: torch.Tensor,
    k_cache: torch.Tensor,
    v_cache: torch.Tensor,
    block_tables: torch.Tensor,
    query_starts: torch.Tensor,
    context_lengths: torch.Tensor,
    *,
    scale: float,
    window: int = 0,
    softcap: float = 0.0,
    fused: bool = False,
) -> torch.Tensor:
    """Attend, sequence by sequence; keys and values of this step are already stored.

    q: [T, H, D].  block_tables: int32 [B, max blocks].  query_starts: int32 [B + 1].  context_lengths: int32 [B].
    window: 0 for the whole context.  softcap: 0 for none.  fused: use PyTorch's scaled_dot_product_attention in the
    cache's dtype instead of the formula in float32; it knows no softcap, which always goes by the formula.
    Returns a new [T, H, D] in q's dtype.
    """
    out = torch.empty_like(q)
    groups = q.shape[1] // k_cache.shape[1]
    starts, lengths = query_starts.tolist(), context_lengths.tolist()
    for row, length in enumerate(lengths):
        begin, end = starts[row], starts[row + 1]
        if begin == end:
            continue
        position = length - (end - begin)
        first = max(0, position - window + 1) if window else 0
        keys = gather_kv(k_cache, block_tables[row], first, length)
        values = gather_kv(v_cache, block_tables[row], first, length)
        mask = None
        if end - begin > 1 or (window and length - first > window):
            mask = _visible(position, end - begin, first, length, window, q.device)
        queries = q[begin:end].transpose(0, 1)
        if fused and not softcap:
            attended = torch.nn.functional.scaled_dot_product_attention(
                queries.to(keys.dtype)[None],
                keys[None],
                values[None],
                attn_mask=mask,
                scale=scale,
                enable_gqa=groups > 1,
            )[0]
        else:
            keys = keys.float().repeat_interleave(groups, dim=0)
            values = values.float().repeat_interleave(groups, dim=0)
            scores = queries.float() @ keys.transpose(1, 2) * scale
            if softcap:
                scores = cap_scores(scores, softcap)
            if mask is not None:
                scores = scores.masked_fill(~mask, -torch.inf)
            attended = torch.softmax(scores, dim=-1) @ values
        out[begin:end] = attended.transpose(0, 1).to(q.dtype)
    return out
