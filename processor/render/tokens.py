"""How many tokens a text takes at most, without the vocabulary of any tokenizer.

An estimate from above: whoever keeps a budget by it stays within the budget. It looks at what makes
byte-pair encodings split: letters that seldom follow each other, capitals, digits, punctuation, and
everything outside ASCII, where a token is never less than a byte. The numbers were set against
cl100k_base and o200k_base, and a test holds them to it: never less than either on the public
benchmarks and on hostile text, and on English prose about half as much again.
"""

from __future__ import annotations

import re
from typing import Final

THOUSAND: Final = 1_000
"""Parts of tokens are counted in thousandths: whole numbers add up the same on every machine."""
_MARGIN: Final = 3 * THOUSAND
"""For a short text, in which one rare name is all there is."""
_CAPITAL_FIRST: Final = 400
_CAPITAL_WITHIN: Final = 800
_USUAL_PAIR: Final = 70
_RARE_PAIR: Final = 900

_FOLLOWING: Final = {
    "a": "bcdgklmnprstvy",
    "b": "aeloru",
    "c": "aehikortu",
    "d": "aeiors",
    "e": "acdeflmnprstvwxy",
    "f": "aefioru",
    "g": "aehior",
    "h": "aeiot",
    "i": "cdefglmnoprstv",
    "j": "o",
    "k": "eis",
    "l": "adeilosy",
    "m": "aeiopu",
    "n": "acdeginost",
    "o": "cdgklmnoprstuvw",
    "p": "aehilopr",
    "r": "adeiknosty",
    "s": "acehiopstu",
    "t": "aehiorstuy",
    "u": "cdglnprst",
    "v": "aei",
    "w": "aehio",
    "x": "p",
    "y": "eos",
}
"""Which letters mostly follow which in English words; few vowels a vowel, for runs are split."""
_USUAL_PAIRS: Final = frozenset(
    first + second for first, seconds in _FOLLOWING.items() for second in seconds
)

_PIECE: Final = re.compile(r" ?([A-Za-z]+)| ?[!-/:-@\[-`{-~]|[0-9]{1,3}|.", re.DOTALL)
"""A word or a mark with the space before it, up to three digits, or any one character."""


def estimate_tokens(text: str) -> int:
    """At least as many tokens as the usual tokenizers make of the text."""
    return -(-(_MARGIN + token_thousandths(text)) // THOUSAND)


def token_thousandths(text: str) -> int:
    """The same in thousandths and without the margin, so that the parts of a text add up."""
    total = 0
    for piece in _PIECE.finditer(text):
        word = piece[1]
        if word is not None:
            total += _word(word)
        elif piece[0].isascii():
            total += THOUSAND
        else:
            total += THOUSAND * len(piece[0].encode("utf-8", "surrogatepass"))
    return total


def _word(word: str) -> int:
    total = THOUSAND
    if not word.islower():
        total += _CAPITAL_FIRST * word[0].isupper()
        total += _CAPITAL_WITHIN * sum(letter.isupper() for letter in word[1:])
        word = word.lower()
    pairs = len(word) - 1
    usual = sum(word[start : start + 2] in _USUAL_PAIRS for start in range(pairs))
    return total + usual * _USUAL_PAIR + (pairs - usual) * _RARE_PAIR
