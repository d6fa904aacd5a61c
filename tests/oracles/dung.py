"""Argumentation frameworks by definition (Dung, 1995): subsets are tried one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, combinations

Attacks = frozenset[tuple[str, str]]
Extension = frozenset[str]


def restricted(attacks: Iterable[tuple[str, str]], remaining: Iterable[str]) -> Attacks:
    """The attacks among the remaining arguments."""
    kept = set(remaining)
    return frozenset((one, other) for one, other in attacks if one in kept and other in kept)


def is_conflict_free(attacks: Attacks, members: Iterable[str]) -> bool:
    """No member attacks a member."""
    return not restricted(attacks, members)


def is_admissible(attacks: Attacks, members: Iterable[str]) -> bool:
    """Conflict-free, and every attacker of a member is attacked by a member."""
    inside = set(members)
    attacked = {other for one, other in attacks if one in inside}
    attackers = {one for one, other in attacks if other in inside}
    return is_conflict_free(attacks, inside) and attackers <= attacked


def preferred_extensions(attacks: Attacks, arguments: Iterable[str]) -> list[Extension]:
    """The maximal admissible sets; for a dozen arguments at most."""
    admissible = [s for s in subsets(sorted(arguments)) if is_admissible(attacks, s)]
    return [s for s in admissible if not any(s < other for other in admissible)]


def subsets(arguments: list[str]) -> Iterator[Extension]:
    """Every subset, the empty one first."""
    sizes = range(len(arguments) + 1)
    return map(frozenset, chain.from_iterable(combinations(arguments, n) for n in sizes))
