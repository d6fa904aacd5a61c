"""Messages in hand: back-pressure by partition, and nothing of an old epoch counts."""

from __future__ import annotations

from processor.app.intake import Intake, Place
from processor.app.messages import Delivered


class Flow:
    """Notes where fetching was stopped, and what was acknowledged."""

    def __init__(self) -> None:
        self.stopped: set[Place] = set()
        self.acked: list[int] = []

    def stop(self, place: Place) -> None:
        """Fetch no more."""
        assert place not in self.stopped
        self.stopped.add(place)

    def resume(self, place: Place) -> None:
        """Fetch again."""
        self.stopped.remove(place)

    def acknowledge(self, _: Place, offset: int) -> None:
        """This one and all before it."""
        self.acked.append(offset)


def delivered(offset: int, partition: int = 0) -> Delivered:
    """A message."""
    return Delivered("utterances", partition, offset, b"a/b", b"{}")


def test_a_full_partition_is_not_fetched_from_until_half_is_done() -> None:
    """What was fetched already is taken all the same, and other partitions go on."""
    flow, told = Flow(), list[tuple[str, int]]()
    intake = Intake(
        flow,
        in_hand_max=4,
        clock=lambda: 0.0,
        on_acknowledged=lambda *of_topic: told.append(of_topic),
    )
    done = [intake.take(delivered(offset)) for offset in range(6)]
    assert flow.stopped == {("utterances", 0)}
    assert intake.take(delivered(0, 1)) is not None
    assert intake.in_hand() == {"utterances": 7}
    for finish in done[:3]:
        assert finish is not None
        finish()
        assert flow.stopped
    assert done[3] is not None
    done[3]()
    assert not flow.stopped
    assert flow.acked == [0, 1, 2, 3]
    assert told == [("utterances", 1)] * 4


def test_nothing_of_an_old_epoch_is_acknowledged() -> None:
    """After a rebalance the same offsets come again, and only those count."""
    flow = Flow()
    intake = Intake(flow, in_hand_max=4)
    before = intake.take(delivered(7))
    intake.forget()
    after = intake.take(delivered(7))
    assert before is not None
    assert after is not None
    before()
    assert (flow.acked, intake.in_hand()) == ([], {"utterances": 1})
    after()
    assert (flow.acked, intake.in_hand()) == ([7], {"utterances": 0})


def test_the_age_of_the_oldest_is_told() -> None:
    """Over all partitions."""
    now = [0.0]
    intake = Intake(Flow(), in_hand_max=4, clock=lambda: now[0])
    assert intake.oldest_age_s() == {}
    intake.take(delivered(1))
    now[0] = 5.0
    intake.take(delivered(1, 1))
    assert intake.oldest_age_s() == {"utterances": 5.0}
