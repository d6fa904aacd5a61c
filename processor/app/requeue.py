"""Sending the originals of dead letters to the utterances again.

The worker treats such a message as any other, but for one thing: if the turn of that utterance is
missing, it reads it again and appends an event that fills its place. Nothing in the log is
rewritten. What could only become a dead letter again is refused here, with the reason.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterable
from typing import NamedTuple, final

from aiokafka.errors import MessageSizeTooLargeError

from processor.app.interpret import DeadLetterClass
from processor.app.letters import Letter
from processor.app.messages import REQUEUED, UTTERANCES, Outgoing, utterance_message
from processor.app.partitions import partition_of
from processor.app.produce import idempotent_producer
from processor.app.settings import KafkaSettings
from processor.app.topics import partition_count
from schemas.ids import conversation_key
from schemas.wire import WireError, decode_utterance

HOPELESS = {
    DeadLetterClass.WRONG_KEY: "its key and its content name two conversations; "
    "produce it again where it belongs",
    DeadLetterClass.ID_REUSED: "its id stands for another utterance, for ever",
    DeadLetterClass.SETUP_NOT_FIRST: "a setup opens its conversation, and that is open",
    DeadLetterClass.ERASED: "its conversation was erased, and nothing of it was kept",
}
"""Classes of letters that would only come back, and why."""


@final
class Requeued(NamedTuple):
    """What became of a letter: sent, refused for a reason, or sent for another letter already."""

    letter: Letter
    refusal: str | None = None
    is_repeat: bool = False


async def requeue(
    settings: KafkaSettings, letters: AsyncIterable[Letter]
) -> AsyncGenerator[Requeued, None]:
    """Send each letter that can succeed, in order, each original once; the brokers have it then.

    Letters pile up while an utterance fails again and again: sent all, they would double each time.
    Raises BrokerError.
    """
    partitions = await partition_count(settings, UTTERANCES)
    seen: set[bytes] = set()
    async with idempotent_producer(settings) as producer:
        async for letter in letters:
            original = hashlib.sha256(letter.key + b"\n" + letter.original).digest()
            message = requeued_message(letter, partitions)
            if isinstance(message, str):
                yield Requeued(letter, message)
                continue
            if original in seen:
                yield Requeued(letter, is_repeat=True)
                continue
            try:
                await producer.send_and_wait(
                    message.topic,
                    message.value,
                    message.key,
                    message.partition,
                    headers=list(message.headers),
                )
            except MessageSizeTooLargeError:
                yield Requeued(letter, f"the topic {UTTERANCES} takes no message of its size")
                continue
            seen.add(original)
            yield Requeued(letter)


def requeued_message(letter: Letter, partitions: int) -> Outgoing | str:
    """The message that brings the original back, or why there is none.

    It goes to the partition of its key, so what stood on a wrong one is repaired.
    """
    known = {each.value: each for each in DeadLetterClass}
    letter_class = known.get(letter.letter_class)
    if letter_class is None:
        return "this version does not know its class"
    if letter_class in HOPELESS:
        return HOPELESS[letter_class]
    if letter.source_topic != UTTERANCES:
        return f"it did not come from {UTTERANCES}"
    if letter.is_truncated:
        return f"only the first {len(letter.original):,} bytes of it were kept"
    try:
        utterance = decode_utterance(letter.original)
    except WireError as invalid:
        return f"it is no valid utterance: {invalid}"
    key = conversation_key(utterance.tenant_id, utterance.conversation_id).encode()
    if key != letter.key:
        return HOPELESS[DeadLetterClass.WRONG_KEY]
    message = utterance_message(utterance, letter.original, partition_of(key, partitions))
    return message._replace(headers=(*message.headers, (REQUEUED, letter.place.encode())))
