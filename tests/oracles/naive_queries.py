"""The queries on a naive map, each worked out from its definition every time it is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.oracles.naive_map import EVERYONE, GOOD, Map

Path = tuple[str, ...]


def good_standing(m: Map) -> set[str]:
    """S_t: the active and the resolved records."""
    return {name for name, record in m.records.items() if record.standing in GOOD}


def supports(m: Map, name: str, *, corroboration: bool = True) -> set[str]:
    """Dep_t(name), with or without the links that only corroborate."""
    links = m.records[name].links
    return {cited for cited, kind in links if corroboration or kind != "corroboration"}


def closure(m: Map, starts: Iterable[str], *, corroboration: bool = True) -> set[str]:
    """Dep_t*: everything reachable over support links, the starts included."""
    reached = set(starts)
    while True:
        wider = reached.union(*(supports(m, name, corroboration=corroboration) for name in reached))
        if wider == reached:
            return reached
        reached = wider


def grounded(m: Map, name: str) -> bool:
    """Lemma 2.1: the whole closure is in good standing."""
    return closure(m, [name]) <= good_standing(m)


def grounded_without_corroboration(m: Map, name: str) -> bool:
    """The same for the walk over premise and subsumption links alone, at every depth."""
    return closure(m, [name], corroboration=False) <= good_standing(m)


def grade(m: Map, names: Iterable[str]) -> str:
    """The grade of a claim that rests on all the named records."""
    everything = list(names)
    if all(grounded(m, name) for name in everything):
        return "grounded"
    if all(grounded_without_corroboration(m, name) for name in everything):
        return "corroboration_lost"
    return "ungrounded"


def affected(m: Map, withdrawn: Iterable[str]) -> set[str]:
    """Affected: the records with a link to one of the withdrawn."""
    gone = set(withdrawn)
    return {name for name in m.records if supports(m, name) & gone}


def affected_rounds(m: Map, withdrawn: Iterable[str]) -> list[set[str]]:
    """Definition 2.3: X_0 = Affected; X_k+1 adds what rests on X_k; until nothing is added."""
    rounds = [affected(m, withdrawn)]
    while True:
        following = rounds[-1] | affected(m, rounds[-1])
        if following == rounds[-1]:
            return rounds
        rounds.append(following)


def affected_closure(m: Map, withdrawn: Iterable[str]) -> set[str]:
    """Affected*: the union of the rounds, which is the last of them."""
    return affected_rounds(m, withdrawn)[-1]


def shortest_paths(m: Map, starts: Iterable[str]) -> dict[str, Path]:
    """For each reachable record the smallest, by ids, of the shortest paths from any start."""
    paths: dict[str, Path] = {start: (start,) for start in starts}
    newest = dict(paths)
    while newest:
        longer: dict[str, Path] = {}
        for name, path in newest.items():
            for cited in supports(m, name) - set(paths):
                candidate = (*path, cited)
                longer[cited] = min(longer.get(cited, candidate), candidate)
        paths.update(longer)
        newest = longer
    return paths


def open_problems(m: Map) -> list[str]:
    """The questions that no record in good standing answers, by id."""
    standing = good_standing(m)
    settled = {problem for record, problem in m.answers if record in standing}
    return sorted(m.questions - settled)


def commitments(m: Map) -> dict[str, list[str]]:
    """Each speaker's records; a speaker without any is not listed."""
    return grouped(m.commitments)


def awareness(m: Map) -> dict[str, list[str]]:
    """Each agent's propositions, those that everyone is aware of under `EVERYONE` alone."""
    shared = {proposition for agent, proposition in m.awareness if agent == EVERYONE}
    return grouped(
        (agent, proposition)
        for agent, proposition in m.awareness
        if agent == EVERYONE or proposition not in shared
    )


def grouped(pairs: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The second parts by their first, both in order."""
    groups: dict[str, list[str]] = {}
    for first, second in sorted(pairs):
        groups.setdefault(first, []).append(second)
    return groups


def worse(before: Map, after: Map, name: str) -> bool:
    """Either answer about a record that existed before went from yes to no."""
    answers: tuple[Callable[[Map, str], bool], ...] = (grounded, grounded_without_corroboration)
    return any(answer(before, name) and not answer(after, name) for answer in answers)
