"""Erasure on Apache Kafka: the canary, and everything that could still have it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from processor.app.messages import OPERATIONS
from tests.erasure.sites import CANARY, found_in
from tests.erasure.story import (
    BOUNDED,
    BROKER,
    CLOSED,
    NEAR,
    TOLD,
    Story,
    begin,
    erase,
    forget,
)
from tests.kafka.cluster import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("erasure_on_kafka")]


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    """Everything that happens."""
    with Kafka(settings=BROKER) as cluster:
        told_here = Story(cluster, tmp_path_factory.mktemp("site"))
        begin(told_here)
        erase(told_here)
        forget(told_here)
        yield told_here


def test_topics_have_to_lose_what_is_in_the_clear(story: Story) -> None:
    """Topics made for a window pass its check; a shorter one names each that keeps for too long."""
    assert story.seen["checked"] == 0
    day = f"should be at most {12 * 3_600_000}, half the erasure window"
    for topic in BOUNDED:
        assert f"{topic}: retention.ms is {24 * 3_600_000}, {day}" in story.seen["too long"]


def test_what_is_kept_for_ever_is_ciphertext(story: Story) -> None:
    """Before the erasure the canary stands in the bounded topics, and in nothing kept for ever."""
    assert story.seen["kept before"] == []
    assert story.seen["kept near"] == []
    topics = {Path(path).parent.name.rpartition("-")[0] for path in story.seen["in topics before"]}
    assert topics == set(BOUNDED) - {"retraction-impacts"}  # they name records by their ids alone
    assert all(story.seen["sealed"])
    assert len(story.seen["sealed"]) == 14


def test_the_canary_is_nowhere(story: Story) -> None:
    """After the window no file has it: of the broker, of workers, archive, export or logs."""
    assert found_in(CANARY, story.cluster.folder, story.folder) == []
    assert found_in(story.seen["wrapped text"], story.cluster.folder, story.folder) == []
    assert found_in(NEAR, *story.on_disk(OPERATIONS)) == []


def test_the_neighbour_is_as_it_was(story: Story) -> None:
    """Its state and digests are those of a run without keys, before and after."""
    assert story.seen["near before"] == story.seen["near unsealed"]
    before, after = (orjson.loads(story.seen[f"near {when}"]) for when in ("before", "after"))
    assert before["records"] == after["records"]
    assert before["turn"] + 2 == after["turn"]
    assert before["state_digest"] == after["state_digest"]


def test_later_utterances_are_dead_letters_without_their_text(story: Story) -> None:
    """An erased id is closed, also while its erasure is half done; the letters say nothing."""
    assert [letter.key for letter in story.seen["cut short"]] == [CLOSED]
    assert sorted(letter.key for letter in story.seen["letters"]) == [CLOSED, TOLD]
    assert all(letter.value == b"" for letter in story.seen["letters"])
    status, said = story.seen["unknown"]
    assert (status, "acme/nobody was not known; its id is closed now" in said) == (1, True)


def test_the_audit_names_what_it_could_not_read(story: Story) -> None:
    """The archive's audit is clean and says that of the erased ones the chain alone was checked."""
    audit = story.seen["audit"]
    assert audit.returncode == 0, audit.stdout
    for name in ("told", "cut"):
        what = f"acme/{name} was erased: the chain of its 14 events was checked, not what they said"
        assert what in audit.stdout


def test_a_moved_ciphertext_is_passed_over(story: Story) -> None:
    """Sealed bytes under another conversation's key are skipped, with their place in the log."""
    skipped, *_ = [e for e in story.events("first") if e["event"] == "log_bytes_skipped"]
    assert "acme/near" in skipped["problem"]
    assert skipped["offset"] > 0


def test_a_key_file_that_is_away_is_waited_for(story: Story) -> None:
    """A worker with an empty disk and no key file folds nothing and loses nothing; then it does."""
    assert story.seen["when back"] == story.seen["while away"] + 1
    events = story.of_partition("second", b"acme/near")
    assert events.index("keys_waited_for") < events.index("recovered")
    assert "dead_letter" not in events


def test_data_keys_are_wrapped_anew(story: Story) -> None:
    """All data keys get the tenant's newest key once, and the older one is not needed any more."""
    assert story.seen["rewrapped"] == [{"rewrapped": 1}, {"rewrapped": 0}]


def test_a_sealed_archive_is_restored(story: Story) -> None:
    """With the wrapped keys beside it: the neighbour is as it was, and the erased id is closed."""
    assert story.seen["near restored"] == story.seen["near after"]
    assert TOLD in [letter.key for letter in story.seen["letters after restore"]]
