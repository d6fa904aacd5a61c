"""The type of options that name a store or an archive: a path, or the URL of a bucket."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, final

import click

from replay.bucket_path import SCHEME, store_path


@final
class StorePath(click.Path):
    """Like click.Path, and takes `s3://BUCKET/PREFIX` too."""

    def __init__(self, *, file_okay: bool = True) -> None:
        super().__init__(file_okay=file_okay, path_type=Path)

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Any:
        """The path of what was given."""
        text = os.fspath(value)
        if not text.startswith(SCHEME):
            return super().convert(value, param, ctx)
        try:
            return store_path(text)
        except ValueError as wrong:
            self.fail(str(wrong), param, ctx)
