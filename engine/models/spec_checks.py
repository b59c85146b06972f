"""What both readers of settings check alike: limits, divisibility, and the words of a refusal."""

from __future__ import annotations

from inglenook.engine.errors import UnsupportedModelError
from inglenook.engine.weights.metadata import Metadata

MAX_LAYERS = 512
MAX_SIZE = 1 << 20
MAX_HEADS = 1024
MAX_HEAD_SIZE = 1024
MAX_VOCAB = 1 << 21
MAX_CONTEXT = 1 << 24
MAX_EXPERTS = 1024
MAX_FACTOR = 1e4


def check_divides(metadata: Metadata, key: str, part: int, whole: int) -> None:
    """Raise ModelFileError unless `part`, the value of `key`, divides `whole`."""
    if whole % part:
        raise metadata.error(key, f"is {part:,}, which does not divide {whole:,}")


def check_even(metadata: Metadata, key: str, value: int) -> None:
    """Raise ModelFileError unless `value` is even."""
    if value % 2:
        raise metadata.error(key, f"is {value}; it must be even")


def unsupported(metadata: Metadata, key: str, problem: str) -> UnsupportedModelError:
    """The refusal of a setting, by its name."""
    return UnsupportedModelError(f"{metadata.source}: {key} {problem}. Such models are not supported.")


def windows_of(layers: int, window: int, context: int, full_period: int) -> tuple[int, ...]:
    """Each layer's window: `window`, but 0 in every `full_period`-th layer, and all 0 if the context fits in it."""
    if not 0 < window < context:
        return (0,) * layers
    return tuple(0 if full_period and (i + 1) % full_period == 0 else window for i in range(layers))


def unrotated_layers(layers: int, period: int) -> tuple[int, ...]:
    """Every `period`-th layer; none for 0."""
    return tuple(i for i in range(layers) if period and (i + 1) % period == 0)
