"""Requests without a valid token, counted by the address that they come from.

Who sends many is answered 429 in place of 401. Nobody else is: a valid token is served wherever it
comes from, because behind a proxy all come from one address, and whoever guesses there must not
shut out the rest.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Callable
from typing import final

from processor.app.web.limits import Rates
from processor.app.web.problem_details import Kind, ProblemRaised

PER_SECOND = 1.0
BURST = 100
_IPV6_NETWORK_BITS = 64


@final
class WrongTokens:
    """`burst` at once from an address, and `per_second` in the long run; memory is bounded."""

    def __init__(
        self,
        per_second: float = PER_SECOND,
        burst: int = BURST,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rates = Rates(per_second, burst, clock)

    def problem(self, remote: str | None) -> ProblemRaised:
        """How to answer one more from this address."""
        retry_s = self._rates.take(sender(remote))
        if retry_s is None:
            return ProblemRaised(Kind.UNAUTHORISED)
        return ProblemRaised(Kind.TOO_MANY_WRONG_TOKENS, retry_s=retry_s)


def sender(remote: str | None) -> str:
    """Who sends from an address: in IPv6 whoever has one has the whole network around it."""
    try:
        address = ipaddress.ip_address(remote or "")
    except ValueError:
        return ""
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ipaddress.ip_network((address.packed, _IPV6_NETWORK_BITS), strict=False))
