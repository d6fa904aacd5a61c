"""Kinds of settings: what is no address, no name or no span of time is refused where it is read.

Whatever passes here is handed to libraries that would fail later, and not in one line.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import from_json
from pydantic_settings import NoDecode

from schemas.ids import TenantId

SECONDS_MAX = 31_536_000.0
"""A year; clocks and timers of the system do not take much more."""
WINDOW_DAYS_MAX = 36_500
"""A hundred years, which in milliseconds brokers take."""
_PORTS = {"http": 80, "https": 443}
_ORIGIN = "a worker's address reads http://HOST:PORT"
_BROKERS = "reads HOST:PORT, with commas between several"


def _listed(given: Any) -> Any:
    """A list from the environment, written in JSON. Raises ValueError."""
    if not isinstance(given, str):
        return given
    try:
        return from_json(given)
    except ValueError as invalid:
        raise ValueError('a list is written in JSON, as ["one", "two"]') from invalid


def is_host(host: str) -> bool:
    """Whether it can be looked up at all."""
    try:
        return bool(host.encode("idna")) and host.isprintable() and not set(host) & set(" /@[]")
    except UnicodeError:
        return False


def is_port(port: str) -> bool:
    """Whether something can listen there."""
    return port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) <= 65_535


def origin_of(address: str) -> str:
    """The address of a worker as it is compared: scheme, host and port. Raises ValueError."""
    try:
        parts = urlsplit(address)
        port = parts.port
    except ValueError as invalid:
        raise ValueError(_ORIGIN) from invalid
    is_origin = not (parts.query or parts.fragment or parts.username or parts.path.strip("/"))
    is_plain = address.isprintable() and " " not in address
    if parts.scheme not in _PORTS or not is_origin or not is_plain or port == 0:
        raise ValueError(_ORIGIN)
    if not parts.hostname or not is_host(parts.hostname):
        raise ValueError(_ORIGIN)
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or _PORTS[parts.scheme]}"


def brokers(written: str) -> str:
    """Addresses of brokers as their client takes them. Raises ValueError."""
    named = [each.strip() for each in written.split(",") if each.strip()]
    if not named or not all(map(_is_broker, named)):
        raise ValueError(_BROKERS)
    return ",".join(named)


def _is_broker(address: str) -> bool:
    """HOST, HOST:PORT, or [IPV6]:PORT."""
    host, bracket, rest = address.removeprefix("[").partition("]")
    if address.startswith("[") != bool(bracket):
        return False
    if not bracket:
        host, colon, port = address.partition(":")
        rest = colon + port
    return is_host(host) and (not rest or (rest[0] == ":" and is_port(rest[1:])))


Brokers: TypeAlias = Annotated[str, Field(min_length=1), AfterValidator(brokers)]
Origin: TypeAlias = Annotated[str, AfterValidator(origin_of)]
Origins: TypeAlias = Annotated[frozenset[Origin], NoDecode, BeforeValidator(_listed)]
TenantIds: TypeAlias = Annotated[frozenset[TenantId], NoDecode, BeforeValidator(_listed)]
Group: TypeAlias = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,255}$")]
"""What brokers take as the name of a group."""
Instance: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,249}$")]
"""What brokers take as the name of a member."""
Seconds: TypeAlias = Annotated[float, Field(ge=0.001, le=SECONDS_MAX)]
PerSecond: TypeAlias = Annotated[float, Field(ge=0.001, le=1e9)]
