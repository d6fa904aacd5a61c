"""The keyed dispatcher: order, limits, fairness, cancellation."""

from __future__ import annotations

import asyncio
import random
from contextvars import ContextVar

import pytest

from processor.app.dispatcher import Dispatcher, Job, Kind, Lane, Limits


def never(crash: BaseException) -> None:
    """No job of these tests fails."""
    raise AssertionError(crash)


def dispatcher(running_max: int = 8, per_tenant: int = 4) -> Dispatcher:
    """One whose jobs must not fail, with equal limits for both kinds."""
    return Dispatcher(dict.fromkeys(Kind, Limits(running_max, per_tenant)), on_crash=never)


def test_order_within_limits_across() -> None:
    """Jobs of a conversation run in order and alone; no limit is passed; all of them run."""
    chance = random.Random(7)
    lanes = [Lane(number % 3, f"t{number % 5}", f"c{number}") for number in range(20)]
    seen: dict[Lane, list[int]] = {lane: [] for lane in lanes}
    running: list[tuple[Kind, Lane]] = []

    async def main() -> None:
        work = dispatcher()

        def job(kind: Kind, lane: Lane, number: int) -> Job:
            async def run() -> None:
                assert lane not in [other for _, other in running]
                running.append((kind, lane))
                of_kind = [other for each, other in running if each is kind]
                assert len(of_kind) <= work.running()[kind] <= 8
                assert sum(each.tenant_id == lane.tenant_id for each in of_kind) <= 4
                for _ in range(chance.randint(0, 3)):
                    await asyncio.sleep(0)
                running.remove((kind, lane))
                seen[lane].append(number)

            return run

        for number in range(600):
            lane, kind = chance.choice(lanes), chance.choice(list(Kind))
            work.submit(lane, kind, job(kind, lane, number))
            if chance.random() < 0.1:
                await asyncio.sleep(0)
        await work.idle()
        assert work.running() == work.waiting() == dict.fromkeys(Kind, 0)

    asyncio.run(main())
    assert sum(map(len, seen.values())) == 600
    for numbers in seen.values():
        assert numbers == sorted(numbers)


def _finished_at(submitted: list[tuple[str, str]], probe: tuple[str, str]) -> int:
    """How many jobs were started before the one of the probe, with two places."""
    started: list[tuple[str, str]] = []

    async def main() -> None:
        work = dispatcher(running_max=2, per_tenant=2)

        def job(key: tuple[str, str]) -> Job:
            async def run() -> None:
                started.append(key)
                await asyncio.sleep(0)

            return run

        for key in [*submitted, probe]:
            work.submit(Lane(0, *key), Kind.WORK, job(key))
        await work.idle()

    asyncio.run(main())
    assert len(started) == len(submitted) + 1
    return started.index(probe)


def test_a_busy_conversation_does_not_hold_up_another() -> None:
    """A thousand jobs of one conversation delay another one by a job or two."""
    assert _finished_at([("a", "busy")] * 1_000, ("a", "calm")) <= 2


def test_a_busy_tenant_does_not_hold_up_another() -> None:
    """A thousand conversations of one tenant delay another tenant by a job or two."""
    assert _finished_at([("a", f"c{number}") for number in range(1_000)], ("b", "c")) <= 3


def test_a_tenant_at_its_limit_leaves_places_to_others() -> None:
    """Calls of one tenant that hang cannot take every place."""

    async def main() -> list[str]:
        work = dispatcher(running_max=8, per_tenant=4)
        done: list[str] = []
        hang = asyncio.Event()

        async def hanging() -> None:
            await hang.wait()

        async def quick() -> None:
            done.append("b")

        for number in range(50):
            work.submit(Lane(0, "a", f"c{number}"), Kind.CALL, hanging)
        work.submit(Lane(0, "b", "c"), Kind.CALL, quick)
        await asyncio.sleep(0.01)
        assert work.running() == {Kind.CALL: 4, Kind.WORK: 0}
        assert work.waiting() == {Kind.CALL: 46, Kind.WORK: 0}
        before = done.copy()
        hang.set()
        await work.idle()
        return before

    assert asyncio.run(main()) == ["b"]


def test_what_needs_no_model_does_not_wait_for_one() -> None:
    """Though every call hangs; but a conversation keeps its order, whatever comes in it."""

    async def main() -> tuple[list[str], list[str]]:
        work = dispatcher(running_max=2, per_tenant=2)
        done: list[str] = []
        answers = asyncio.Event()

        def job(name: str, *, is_call: bool) -> Job:
            async def run() -> None:
                if is_call:
                    await answers.wait()
                done.append(name)

            return run

        for number in range(5):
            lane = Lane(0, f"t{number}", "c")
            work.submit(lane, Kind.CALL, job(f"asked {number}", is_call=True))
            work.submit(lane, Kind.WORK, job(f"behind {number}", is_call=False))
            work.submit(Lane(0, "calm", str(number)), Kind.WORK, job("calm", is_call=False))
        await asyncio.sleep(0.01)
        meanwhile = done.copy()
        answers.set()
        await work.idle()
        return meanwhile, done[len(meanwhile) :]

    meanwhile, later = asyncio.run(main())
    assert meanwhile == ["calm"] * 5
    assert sorted(later) == sorted(f"{how} {n}" for n in range(5) for how in ("asked", "behind"))
    for number in range(5):
        assert later.index(f"asked {number}") < later.index(f"behind {number}")


def test_cancelling_a_partition_leaves_the_others() -> None:
    """What ran there is ended, what waited there is forgotten, and the lanes can be used again."""

    async def main() -> list[str]:
        work = dispatcher(running_max=2)
        done: list[str] = []

        def job(name: str, seconds: float) -> Job:
            async def run() -> None:
                await asyncio.sleep(seconds)
                done.append(name)

            return run

        for number in range(3):
            work.submit(Lane(0, "a", "gone"), Kind.CALL, job(f"gone {number}", 60))
            work.submit(Lane(0, "a", f"gone {number}"), Kind.CALL, job("gone too", 60))
        work.submit(Lane(1, "a", "stays"), Kind.CALL, job("stays", 0))
        await asyncio.sleep(0)
        await work.cancel(frozenset({0}))
        work.submit(Lane(0, "a", "gone"), Kind.CALL, job("next epoch", 0))
        await work.idle()
        return done

    assert sorted(asyncio.run(main())) == ["next epoch", "stays"]


def test_a_job_that_fails_is_told_and_does_not_stop_the_others() -> None:
    """Jobs deal with their own failures; one that does not is a crash somebody must hear of."""
    crashes: list[BaseException] = []

    async def main() -> None:
        work = Dispatcher(dict.fromkeys(Kind, Limits(1, 1)), on_crash=crashes.append)

        async def failing() -> None:
            raise ValueError("broken promise")

        async def fine() -> None:
            crashes.append(RuntimeError("ran"))

        work.submit(Lane(0, "a", "c"), Kind.CALL, failing)
        work.submit(Lane(0, "a", "c"), Kind.WORK, fine)
        await work.idle()

    asyncio.run(main())
    assert [str(crash) for crash in crashes] == ["broken promise", "ran"]


def test_there_is_at_least_one_place() -> None:
    """A dispatcher that could never run anything is a mistake in the settings."""
    with pytest.raises(AssertionError):
        dispatcher(running_max=0)


def test_a_job_runs_in_the_context_that_submitted_it() -> None:
    """However long it waits, and whichever job ended before it."""
    who: ContextVar[str] = ContextVar("who")
    seen: list[str] = []

    async def main() -> None:
        work = dispatcher(running_max=1)

        async def job() -> None:
            seen.append(who.get())
            who.set("a job")

        async def submit(name: str) -> None:
            who.set(name)
            for conversation in ("c", "d"):
                work.submit(Lane(0, "t", conversation), Kind.WORK, job)

        await asyncio.gather(*(submit(name) for name in ("one", "two", "three")))
        await work.idle()

    asyncio.run(main())
    assert sorted(seen) == ["one", "one", "three", "three", "two", "two"]
