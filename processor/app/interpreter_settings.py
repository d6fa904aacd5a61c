"""Which interpreter reads text, and how: STANDFAST_INTERPRETER_KIND and so on.

Where the endpoint is and its key are also taken from OPENAI_BASE_URL and OPENAI_API_KEY, which
every client of that protocol reads.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, AliasChoices, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from processor.app.setting_kinds import SECONDS_MAX, Seconds
from processor.interpreter.dialects import ORDER
from processor.interpreter.prompts import BUDGET_TOKENS, Condition
from processor.interpreter.request import Dialect

INTERPRETER_PREFIX = "STANDFAST_INTERPRETER_"


class InterpreterKind(StrEnum):
    """Who reads text."""

    NATIVE = "native"
    """Nobody: the utterances bring their operations."""
    OPENAI = "openai"
    """A model behind an endpoint that speaks OpenAI's protocol."""
    RECORDED = "recorded"
    """Nobody anew: the answers of a cassette or of a history are given again."""


class BudgetPeriod(StrEnum):
    """In which time a tenant may spend its budget."""

    HOUR = "hour"
    DAY = "day"

    @property
    def seconds(self) -> int:
        """The length of the period."""
        return 3_600 if self is BudgetPeriod.HOUR else 86_400


_HOST = r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
_ADDRESS = re.compile(rf"https?://{_HOST}(:(?P<port>[0-9]{{1,5}}))?(/[!-~]*)?")
_KEY = re.compile(r"[!-~]+")


def _address(written: str) -> str:
    """Refuse what is no address, and one with a password or query, which messages would repeat."""
    read = _ADDRESS.fullmatch(written)
    told = read is not None and int(read["port"] or 0) < 65_536 and not set(written) & set("@?#")
    if not told or len(written) > 2_048:
        raise ValueError("an endpoint's address (OPENAI_BASE_URL) reads http://HOST:PORT/v1")
    return written


def _key(written: SecretStr) -> SecretStr:
    """Refuse what no header may hold, such as the end of the line that a file's key came with."""
    if not _KEY.fullmatch(written.get_secret_value()):
        raise ValueError(
            "a key (OPENAI_API_KEY) is one word of ASCII characters, without a blank or a line end"
        )
    return written


def _also(name: str, other: str) -> AliasChoices:
    return AliasChoices(f"{INTERPRETER_PREFIX}{name}".lower(), other.lower())


class InterpreterSettings(BaseSettings):
    """How text is read.

    `dialect` is how the endpoint is told the schema of answers; without one, that is found out.
    `condition` says what a prompt tells, within `prompt_tokens_max`. `temperature` and `seed` are
    not sent to an endpoint that does not take them. An answer may have `answer_tokens_max`, and
    once twice that. A call may take `call_seconds_max`, all calls for one reading
    `utterance_seconds_max`; a call that fails is tried `tries_max` times, and after
    `breaker_failures` failures in a row nothing is asked for `breaker_seconds`. An endpoint that
    stays away is waited for `outage_seconds_max`. A tenant may spend `tenant_tokens_max` and
    `tenant_calls_max` in a `tenant_period`; what comes beyond that is not read, and its turn fails.
    `cassette` is what kind recorded answers from, `record` where kind openai writes one.
    """

    model_config = SettingsConfigDict(
        env_prefix=INTERPRETER_PREFIX,
        env_ignore_empty=True,
        frozen=True,
        hide_input_in_errors=True,
        populate_by_name=True,
    )

    kind: InterpreterKind = InterpreterKind.NATIVE
    base_url: Annotated[str, AfterValidator(_address)] | None = Field(
        default=None, validation_alias=_also("BASE_URL", "OPENAI_BASE_URL")
    )
    api_key: Annotated[SecretStr, AfterValidator(_key)] | None = Field(
        default=None, validation_alias=_also("API_KEY", "OPENAI_API_KEY")
    )
    model: Annotated[str, Field(min_length=1, max_length=256)] | None = None
    dialect: Dialect | None = None
    condition: Condition = Condition.STATE_AUGMENTED
    prompt_tokens_max: int = Field(default=BUDGET_TOKENS, ge=256)
    temperature: float = Field(default=0.0, ge=0, le=2)
    seed: int = Field(default=0, ge=0, le=2**31)
    answer_tokens_max: int = Field(default=2_048, ge=16)
    call_seconds_max: Seconds = 60.0
    utterance_seconds_max: Seconds = 180.0
    tries_max: int = Field(default=3, ge=1, le=10)
    breaker_failures: int = Field(default=5, ge=1)
    breaker_seconds: Seconds = 15.0
    outage_seconds_max: float = Field(default=3_600.0, ge=0, le=SECONDS_MAX)
    tenant_tokens_max: int | None = Field(default=None, ge=1)
    tenant_calls_max: int | None = Field(default=None, ge=1)
    tenant_period: BudgetPeriod = BudgetPeriod.HOUR
    cassette: Path | None = None
    record: Path | None = None

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.kind is InterpreterKind.OPENAI and not (self.base_url or self.api_key):
            raise ValueError(
                "the interpreter openai needs an endpoint: set OPENAI_API_KEY, or OPENAI_BASE_URL "
                "for another endpoint than OpenAI's, such as http://127.0.0.1:8000/v1"
            )
        if self.kind is InterpreterKind.OPENAI and self.model is None:
            raise ValueError(
                f"the interpreter openai needs to know which model to ask: set "
                f"{INTERPRETER_PREFIX}MODEL"
            )
        if (self.kind is InterpreterKind.RECORDED) != (self.cassette is not None):
            raise ValueError("a cassette belongs to the interpreter recorded, which needs one")
        if self.record is not None and self.kind is not InterpreterKind.OPENAI:
            raise ValueError("only what the interpreter openai asks can be recorded")
        return self

    def dialects(self) -> tuple[Dialect, ...]:
        """Those that may be used, in the order in which they are tried."""
        return ORDER if self.dialect is None else (self.dialect,)
