"""The AsyncAPI document describes the topics, and every reference in it leads somewhere.

The document was validated against the schema that AsyncAPI publishes for version 3.0.0; no
Python package carries that schema, so these tests check the structure that it asks for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from jsonschema import Draft202012Validator

from schemas.asyncapi import JsonObject, asyncapi_document
from schemas.contract import UTTERANCE_BYTES_MAX
from schemas.generate import event_models, generated_files
from schemas.topics import (
    BY_NAME,
    LOG_TYPES,
    TENANT_PARAMETER,
    TOPICS,
    Cleanup,
    Payload,
    Topic,
    topic_at,
)

DOCUMENT = asyncapi_document()
EACH_TOPIC = pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.name)

HEADERS = {
    "ce_specversion": "1.0",
    "ce_id": "0f" * 32,
    "ce_source": "/standfast/reduce",
    "ce_type": "standfast.verdict.v1",
    "ce_time": "2026-03-01T02:31:00Z",
    "content-type": "application/json",
}


def _references(node: object) -> Iterator[str]:
    if isinstance(node, dict):
        for key, part in node.items():
            if key == "$ref":
                yield part
            else:
                yield from _references(part)
    elif isinstance(node, list):
        for part in node:
            yield from _references(part)


def _resolve(reference: str) -> JsonObject:
    here: object = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        assert isinstance(here, dict)
        here = here[part]
    assert isinstance(here, dict)
    return _resolve(here["$ref"]) if "$ref" in here else here


def test_every_reference_leads_somewhere() -> None:
    """A reference points into the document or to a generated schema file beside it."""
    references = set(_references(DOCUMENT))
    files = {reference for reference in references if reference.startswith("./")}
    assert {name.removeprefix("./") for name in files} <= set(generated_files())
    for reference in references - files:
        assert reference.startswith("#/")
        assert _resolve(reference)


def test_names_fit_the_patterns_of_the_specification() -> None:
    """Names in the document consist of word characters, dots and dashes; its parts are known."""
    components = DOCUMENT["components"]
    groups = [DOCUMENT["channels"], DOCUMENT["operations"], *components.values()]
    names = [name for group in groups for name in group]
    assert all(re.fullmatch(r"[\w.\-]+", name) for name in names)
    assert set(DOCUMENT) <= {
        *("asyncapi", "id", "info", "servers", "defaultContentType"),
        *("channels", "operations", "components"),
    }
    assert re.fullmatch(r"3\.\d+\.\d+", DOCUMENT["asyncapi"])
    assert {"title", "version"} <= set(DOCUMENT["info"])


@EACH_TOPIC
def test_each_topic_is_a_channel(topic: Topic) -> None:
    """Address, retention, clean-up and size of a topic stand in its channel."""
    channel = DOCUMENT["channels"][topic.name]
    configuration = channel["bindings"]["kafka"]["topicConfiguration"]
    assert channel["address"] == topic.address
    assert configuration["cleanup.policy"] == [topic.cleanup]
    assert configuration["retention.ms"] == (topic.retention_ms or -1)
    assert configuration["retention.bytes"] == -1
    assert configuration["max.message.bytes"] == topic.message_bytes_max
    assert ("parameters" in channel) is (TENANT_PARAMETER in topic.address)


@EACH_TOPIC
def test_each_topic_has_its_operations(topic: Topic) -> None:
    """What the workers read they receive, what they write they send, with all its messages."""
    operations = DOCUMENT["operations"]
    assert (f"receive-{topic.name}" in operations) is topic.reads
    assert (f"send-{topic.name}" in operations) is topic.writes
    for name in (f"receive-{topic.name}", f"send-{topic.name}"):
        if name in operations:
            assert operations[name]["action"] == name.split("-")[0]
            assert len(operations[name]["messages"]) == max(1, len(topic.carries))


@EACH_TOPIC
def test_each_event_message_has_its_schema_and_headers(topic: Topic) -> None:
    """An event's message names its type in `ce_type` and refers to the schema of that type."""
    for event_type in topic.carries:
        message = _resolve(f"#/channels/{topic.name}/messages/{event_type}")
        assert message["payload"]["schema"]["$ref"] == f"./{event_type}.schema.json"
        assert message["headers"]["properties"]["ce_type"] == {"const": event_type}
        assert message["bindings"]["kafka"]["key"]["pattern"] == topic.key_pattern


@pytest.mark.parametrize("missing", HEADERS)
def test_the_attributes_of_a_cloud_event_are_required(missing: str) -> None:
    """Each attribute that the reader needs is required among the headers."""
    schema = Draft202012Validator(_resolve("#/components/schemas/cloud-event-headers"))
    assert schema.is_valid(HEADERS)
    assert not schema.is_valid({name: HEADERS[name] for name in HEADERS if name != missing})


def test_topics_have_names_that_kafka_takes() -> None:
    """An address, with the longest tenant id in place, is a legal and unique topic name."""
    addresses = [topic.address.replace(TENANT_PARAMETER, "t" * 64) for topic in TOPICS]
    assert all(re.fullmatch(r"[a-zA-Z0-9._-]{1,249}", address) for address in addresses)
    assert len(set(addresses)) == len(addresses) == len(BY_NAME)


@EACH_TOPIC
def test_a_topic_is_found_by_its_address(topic: Topic) -> None:
    """The name on the broker leads back to the topic, for any tenant."""
    assert topic_at(topic.address_for("acme-7")) is topic


@pytest.mark.parametrize(
    "address",
    ["", "verdict", "verdicts.acme", "ungrounded-alerts.", "ungrounded-alerts.a.b", "__offsets"],
)
def test_another_topic_of_the_broker_is_none_of_ours(address: str) -> None:
    """A name that only resembles one of ours leads nowhere."""
    assert topic_at(address) is None


def test_topics_carry_known_types() -> None:
    """Events on topics are published types, and the log carries exactly the log's types."""
    models = event_models()
    assert {event_type for topic in TOPICS for event_type in topic.carries} <= set(models)
    assert set(LOG_TYPES) == {
        name for name, (model, _) in models.items() if model.__module__ == "schemas.log"
    }
    assert all(bool(topic.carries) is (topic.payload is Payload.EVENT) for topic in TOPICS)


def test_the_log_is_kept_for_ever() -> None:
    """The log is the truth: nothing of it is deleted for its age, or compacted away."""
    assert BY_NAME["operations"].retention_ms is None
    assert BY_NAME["operations"].cleanup is Cleanup.DELETE


def test_a_dead_letter_holds_the_largest_utterance() -> None:
    """Every utterance that a broker accepts fits into the dead letters with its headers."""
    utterances, letters = BY_NAME["utterances"], BY_NAME["dead-letters"]
    assert UTTERANCE_BYTES_MAX < utterances.message_bytes_max < letters.message_bytes_max
