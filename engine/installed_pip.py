"""Whether this Python has pip, asked without a trace."""

from __future__ import annotations

from importlib.machinery import PathFinder


def pip_is_installed() -> bool:
    """Whether `python -m pip` would find pip.

    `importlib.util.find_spec("pip")` would ask setuptools' finder too, which then takes this process for pip's own and
    lets nothing import setuptools any more (Python below 3.12); optimum-quanto needs it.
    """
    return PathFinder.find_spec("pip") is not None
