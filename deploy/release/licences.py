"""The licence of every package in an environment, from its own metadata; fails on one not allowed.

`licences.py SITE_PACKAGES` prints one line each: name, version, licence, and where it was found. A
package that states its licence as a text of its own has its SPDX name in STATED, with the reason.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import NamedTuple

_SPDX = """
0BSD Apache-2.0 BSD-2-Clause BSD-3-Clause BSD-3-Clause-Modification CC0-1.0 ISC MIT MIT-0 MIT-CMU
MPL-2.0 PSF-2.0 Unlicense Zlib
"""
ALLOWED = frozenset(_SPDX.split())
"""Licences that allow what we do: use, and distribution beside ours."""
STATED: dict[str, tuple[str, str]] = {
    "protobuf": ("BSD-3-Clause", "its metadata is silent; the licence file in its wheel says so"),
    "venusian": ("BSD-3-Clause-Modification", "the SPDX name of the Repoze Public License"),
}
"""Package: (SPDX name, why it is that one)."""
_CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-2-Clause OR BSD-3-Clause",  # it does not say which
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "MIT No Attribution License (MIT-0)": "MIT-0",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
}
_TEXTS = {
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache 2": "Apache-2.0",
    "bsd": "BSD-2-Clause OR BSD-3-Clause",
    "bsd license": "BSD-2-Clause OR BSD-3-Clause",
    "bsd 3-clause": "BSD-3-Clause",
    "bsd 3-clause license": "BSD-3-Clause",
    "mit license": "MIT",
    "psf": "PSF-2.0",
}


class Licence(NamedTuple):
    """What a package says of itself, as SPDX; `source` is the field that says it."""

    name: str
    version: str
    licence: str | None
    source: str

    @property
    def is_allowed(self) -> bool:
        """Whether every licence that it names is on the list; of alternatives one is enough."""
        return self.licence is not None and is_allowed(self.licence)


def is_allowed(expression: str) -> bool:
    """Whether an expression of SPDX names is, such as `A AND (B OR C)`."""
    return all(
        any(name in ALLOWED for name in _names(part, "OR")) for part in _names(expression, "AND")
    )


def _names(expression: str, word: str) -> list[str]:
    return [part.strip(" ()") for part in re.split(rf"\s+{word}\s+", expression)]


def licence_of(package: Distribution) -> Licence:
    """From the expression, else our own list, else the classifiers, else the short text."""
    told, name = package.metadata, package.metadata["Name"]
    if name in STATED:
        return Licence(name, package.version, *STATED[name])
    if expression := told["License-Expression"]:
        return Licence(name, package.version, expression, "License-Expression")
    named = [
        _CLASSIFIERS.get(classifier.rpartition(" :: ")[2], classifier)
        for classifier in told.get_all("Classifier") or ()
        if classifier.startswith("License :: ") and classifier != "License :: OSI Approved"
    ]
    text = (told["License"] or "").strip()
    written = _TEXTS.get(text.lower(), text if is_allowed(text) else None)
    if written is not None:
        return Licence(name, package.version, written, "License")
    if named:
        return Licence(name, package.version, " AND ".join(sorted(set(named))), "Classifier")
    return Licence(name, package.version, None, "nothing")


def licences(folder: Path) -> Iterator[Licence]:
    """Of every package in a folder, by name."""
    found = {package.metadata["Name"]: package for package in distributions(path=[str(folder)])}
    for name in sorted(found, key=str.lower):
        yield licence_of(found[name])


def main(arguments: list[str]) -> int:
    """Status 1 where a licence is not allowed, 2 where there is nothing to look at."""
    if len(arguments) != 1:
        print("usage: licences.py SITE_PACKAGES", file=sys.stderr)
        return 2
    found = list(licences(Path(arguments[0])))
    if not found:
        print(f"{arguments[0]}: no packages are installed there", file=sys.stderr)
        return 2
    for each in found:
        print(f"{each.name}\t{each.version}\t{each.licence or '?'}\t{each.source}")
    refused = [each for each in found if not each.is_allowed]
    for each in refused:
        print(f"{each.name}: {each.licence or 'no licence'}: not allowed", file=sys.stderr)
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
