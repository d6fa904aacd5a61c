"""The estimate of tokens is held to two real tokenizers, which the package itself does not need."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.render.tokens import estimate_tokens
from processor.scenarios import NAMES, utterances

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # how it opens its own data
    from bpe_openai import get_encoding

TEXTS_OF_A_BENCHMARK = 1_500
ALPHABETS = {
    "lower": "abcdefghijklmnopqrstuvwxyz",
    "upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "rare": "zxqjkv",
    "vowels": "aeiou",
    "digits": "0123456789",
    "hexadecimal": "0123456789abcdef",
    "base64": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=",
    "blanks": " \n\t\r\u00a0\u2028\u3000",
    "marks": ".,;:!?-_\"'()[]{}<|>`~@#$%^&*/\\",
    "markup": "<|im_start|>\n```json {}",
    "accents": "éàüßøñçłŵǎ aeo",
    "combining": "a\u0301\u0300\u0336\u20dde ",
    "scripts": "漢字かなカナ한국어العربيةעבריתไทยहिन्दी",
    "invisible": "a\u200b\u200d\u2060\ufeff\u202e\u2066b",
    "emoji": "😀👩🏽‍🚀🇳🇴❤️🧵",
    "alike": "a\u0430e\u0435o\u043ep\u0440c\u0441x\u0445",
    "mathematical": "𝐢𝐠𝐧𝐨𝐫𝐞𝔸𝕓①",
    "beyond": "\U00020000\U000e0041\U0010ffff\ue000\ufffd",
    "mixed": "aB3 .é漢😀\n",
}


@cache
def tokenizers() -> list[Any]:
    """Made once: each reads a vocabulary of some hundred thousand entries."""
    return [get_encoding(name) for name in ("cl100k_base", "o200k_base")]


def tokens(text: str) -> int:
    """What the greedier of the two tokenizers makes of a text."""
    return max(len(tokenizer.encode_ordinary(text)) for tokenizer in tokenizers())


def strings(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from strings(part)
    elif isinstance(value, list):
        for part in value:
            yield from strings(part)


def texts_of(path: Path) -> list[str]:
    """A fixed sample of the texts of a benchmark."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    texts = sorted({text for line in lines for text in strings(json.loads(line))})
    return Random(7).sample(texts, min(len(texts), TEXTS_OF_A_BENCHMARK))


@pytest.mark.parametrize("folder", ["dyknow", "locomo", "memab_fc", "reviseqa", "templama"])
def test_no_text_of_a_benchmark_takes_more_than_estimated(shared_data: Path, folder: str) -> None:
    """Names, questions, dialogues and documents of the benchmarks stay below the estimate."""
    (path,) = [path for path in (shared_data / folder).iterdir() if "json" in path.suffix]
    assert [text for text in texts_of(path) if tokens(text) > estimate_tokens(text)] == []


@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_no_hostile_text_takes_more_than_estimated(alphabet: str) -> None:
    """Random texts of every length over alphabets that tokenizers are bad at stay below it."""
    dice = Random(alphabet)
    texts = ["".join(dice.choices(ALPHABETS[alphabet], k=length)) for length in range(1, 150)]
    assert [text for text in texts if tokens(text) > estimate_tokens(text)] == []


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_unicode_text_takes_more_than_estimated(text: str) -> None:
    """Whatever Hypothesis finds in all of Unicode stays below the estimate."""
    assert tokens(text) <= estimate_tokens(text)


def test_english_prose_is_estimated_at_about_half_as_much_again(shared_data: Path) -> None:
    """The price of never being below: at most 1.65 of what the tokenizers count on long prose."""
    texts = [text for text in texts_of(shared_data / "locomo" / "locomo.json") if len(text) > 200]
    said = [utterance.text for name in NAMES for utterance in utterances(name)]
    for prose in ("\n".join(texts), "\n".join(said)):
        assert tokens(prose) <= estimate_tokens(prose) <= 1.65 * tokens(prose)


def test_nothing_is_next_to_nothing() -> None:
    """An empty text takes no token, and half a surrogate pair is counted, not an error."""
    assert 0 <= estimate_tokens("") <= 3
    assert estimate_tokens("\ud800") >= 3
