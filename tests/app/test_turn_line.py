"""The line and the metrics of an event that a worker worked on."""

from __future__ import annotations

from typing import Any

import orjson
from prometheus_client.parser import text_string_to_metric_families

from processor.app.interpret import AlreadyInLog, DeadLetterClass, Unusable, interpret
from processor.app.messages import Delivered
from processor.app.metrics import OTHER_TENANTS, Gauge, Metrics
from processor.app.reduce_agent import Folded
from processor.app.turn_line import said, turn_line
from processor.engine.conversation import Conversation
from processor.evidence.fold import Refused
from processor.render.reduce import reduce
from schemas.wire import decode_utterance

SECRET = "the launch code is 0000"


def folded(conversation: Conversation, utterance_id: str, **fields: Any) -> Folded:
    """What comes of one more utterance."""
    line = {
        "conversation_id": "c",
        "utterance_id": utterance_id,
        "speaker": "ann",
        "text": SECRET,
        "at": "2026-03-01T02:31:00Z",
        **fields,
    }
    event = interpret(conversation, decode_utterance(orjson.dumps(line)))
    assert not isinstance(event, AlreadyInLog | Unusable)
    derived = reduce(conversation, event)
    assert not isinstance(derived, Refused)
    return Folded(event, derived)


def conversation_of_three() -> list[Folded]:
    """A turn with a rejected operation, a text nobody can read, and a check."""
    conversation = Conversation.empty("default", "c")
    observe = {"op": "observe", "record": "o1", "claim": SECRET, "premises": []}
    support = {"op": "support", "target": "nobody", "evidence": "o1"}
    return [
        folded(conversation, "u1", operations=[observe, support]),
        folded(conversation, "u2"),
        folded(conversation, "u3", kind="candidate", claims=[{"text": SECRET, "record": "o1"}]),
    ]


def test_the_line_tells_everything_but_the_text() -> None:
    """Who, where, how long and what came of it; what was said only where it is asked for."""
    events = conversation_of_three()
    message = Delivered("operations", 3, 17, b"default/c", b"")
    lines = [turn_line(each, message, 0.0123) for each in events]
    assert SECRET not in str(lines)
    assert lines[0] == {
        "tenant": "default",
        "conversation": "c",
        "sequence": 1,
        "utterance": "u1",
        "partition": 3,
        "offset": 17,
        "outcome": "interpreted",
        "milliseconds": 12.3,
        "turn": 1,
        "rejections": 1,
        "ungrounded": 0,
    }
    assert [each["outcome"] for each in lines] == ["interpreted", "not_interpreted", "checked"]
    assert lines[2]["verdicts"] == {"grounded": 1}
    assert [said(each.event) for each in events] == [[SECRET], [], [SECRET]]


def test_the_metrics_can_be_scraped() -> None:
    """Counters add up, gauges are looked up when asked for, and no tenant is named."""
    lag = {("utterances", "0"): 5.0}
    metrics = Metrics(lambda: [Gauge("standfast_lag", "Behind.", lag, ("topic", "partition"))])
    for each in conversation_of_three():
        metrics.emitted(each, 0.02)
    metrics.dead_letter(DeadLetterClass.WRONG_KEY)
    lag["utterances", "0"] = 7.0
    samples = samples_of(metrics)
    assert samples["standfast_operations_rejected_total", ()] == 1
    assert samples["standfast_verdicts_total", ("grounded",)] == 1
    assert samples["standfast_dead_letters_total", ("wrong_key",)] == 1
    assert samples["standfast_dead_letters_total", ("invalid",)] == 0
    assert samples["standfast_events_folded_total", ("standfast.operations.v1",)] == 1
    assert samples["standfast_utterance_seconds_count", ()] == 3
    assert samples["standfast_lag", ("0", "utterances")] == 7
    assert not any("default" in labels for _, labels in samples)


def test_the_tenants_that_are_named_are_counted_apart() -> None:
    """Verdicts and alerts of a named tenant have its label, those of all others one together."""
    metrics = Metrics(tenants=frozenset({"acme"}))
    for tenant, times in (("acme", 1), ("default", 2), ("umbrella", 3)):
        conversation = Conversation.empty(tenant, "c")
        for number in range(times):
            claims = [{"text": "it holds", "record": "nobody"}]
            draft = {"tenant_id": tenant, "kind": "candidate", "claims": claims}
            metrics.emitted(folded(conversation, f"u{number}", **draft), 0.02)
    samples = samples_of(metrics)
    assert samples["standfast_tenant_verdicts_total", ("acme", "ungrounded")] == 1
    assert samples["standfast_tenant_verdicts_total", (OTHER_TENANTS, "ungrounded")] == 5


def samples_of(metrics: Metrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """What Prometheus reads, by name and the values of the labels."""
    return {
        (sample.name, tuple(sorted(sample.labels.values()))): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }
