"""Which sentence encoder of the library search by meaning uses: the user's, else the one that the vectors are of. Pure.

The name in use is kept as a setting once the user chose one; another takes its place only when all its vectors are made,
so that searching never falls back in between.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inglenook.engine.model_library import InstalledModel

EMBEDDER_SETTING = "documents.embedder"
NEXT_EMBEDDER_SETTING = "documents.next_embedder"
"""The one whose vectors are being made beside those in use, "" for none."""


def embedder_in_use(
    models: Sequence[InstalledModel],
    preferred: InstalledModel | None,
    *,
    chosen: str = "",
    counts: Mapping[str, int] | None = None,
) -> InstalledModel | None:
    """Return the encoder to search with: the one `chosen`, the one with most vectors, else the `preferred` one.

    `counts` are numbers of vectors by encoder. Only what is there is returned: one that was removed is passed over.
    """
    there = {
        model.name: model for model in models if model.record.kind == "embedding" and not model.is_missing
    }
    ranked = sorted((counts or {}).items(), key=lambda item: -item[1])
    for name in (chosen, *(name for name, count in ranked if count)):
        if name in there:
            return there[name]
    return preferred
