"""Which back end runs a model, and why: the choice behind "auto", and the list that `doctor` prints.

Preference: native CPU kernels where they were built and can run the model, else PyTorch on the CPU.
"""

from __future__ import annotations

from dataclasses import dataclass

from inglenook.engine.backend import Backend
from inglenook.engine.errors import InvalidRequestError
from inglenook.engine.models.spec import ModelSpec


@dataclass(frozen=True, slots=True)
class BackendStatus:
    """One back end on this computer: whether it can be used, and one sentence why or why not."""

    name: str
    usable: bool
    reason: str


def backend_statuses() -> tuple[BackendStatus, ...]:
    """List all back ends, the preferred one first."""
    from inglenook.engine.torch_backend import TORCH_BACKENDS

    return tuple(
        BackendStatus(name, True, TORCH_BACKENDS[name]().reason) for name in ("torch-cpu", "reference")
    )


def choose_backend(name: str, spec: ModelSpec) -> Backend:
    """Return the back end of a name, or for "auto" the best one for this model.

    Raises:
        InvalidRequestError: there is no back end of that name.
    """
    from inglenook.engine.torch_backend import TORCH_BACKENDS

    if name == "auto":
        return TORCH_BACKENDS["torch-cpu"]()
    if name not in TORCH_BACKENDS:
        raise InvalidRequestError(f"backend must be auto, {', '.join(TORCH_BACKENDS)}; got {name!r}.")
    return TORCH_BACKENDS[name]()
