"""How many tokens a text takes at most, for every tokenizer that is likely to read it."""

from __future__ import annotations

import re

_PIECE = re.compile(r"[^\W\d_]+|\d|[^\w\s]|_|\s{2,}|\n")


def estimate_tokens(text: str) -> int:
    """A conservative count: no common tokenizer makes more of ordinary text.

    A word of Latin letters takes a token for four letters, begun ones included, a digit and a mark
    one each; what is not ASCII takes one for each byte but the first of two.
    """
    return sum(map(_piece_tokens, _PIECE.findall(text)))


def _piece_tokens(piece: str) -> int:
    if piece.isascii():
        return -(-len(piece) // 4)
    return max(len(piece), len(piece.encode("utf-8", "surrogatepass")) * 2 // 3)
