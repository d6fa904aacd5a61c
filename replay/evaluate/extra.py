"""What only an evaluation needs and a deployment does not: the extra `evaluate`."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType
from typing import Any


class ExtraMissing(RuntimeError):  # noqa: N818 - it says what is wrong
    """A package of the extra is not installed; `str(error)` is one line that says what to do."""


def needed(module: str) -> Any:
    """A module of the extra. Raises ExtraMissing."""
    package = module.partition(".")[0]
    try:
        found: ModuleType = _quietly(module)
    except ModuleNotFoundError as missing:
        raise ExtraMissing(
            f"{package} is not installed; it comes with: pip install 'standfast[evaluate]'"
        ) from missing
    return found


def _quietly(module: str) -> ModuleType:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # how some open their own data
        return import_module(module)
