"""The AsyncAPI 3 document of the topics, built from `schemas.topics`.

Message values are described by the JSON Schema files beside the document; headers are the
CloudEvents 1.0 attributes in Kafka's binary content mode (`ce_` before each attribute's name, and
`content-type` for `datacontenttype`).
"""

from __future__ import annotations

from typing import TypeAlias

from schemas.topics import TENANT_PARAMETER, TOPICS, Payload, Topic

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | bool | None"
JsonObject: TypeAlias = dict[str, Json]

ASYNCAPI_VERSION = "3.0.0"
CONTRACTS_VERSION = "1.0.0"
KAFKA_BINDING_VERSION = "0.5.0"
JSON_SCHEMA_FORMAT = "application/schema+json;version=draft-2020-12"

_DEAD_LETTER_HEADERS: JsonObject = {
    "reason": {"type": "string", "description": "What was wrong, in one line."},
    "class": {"type": "string", "description": "The kind of failure, a closed set."},
    "attempts": {"type": "integer", "minimum": 0},
    "tenant": {"type": "string"},
    "source_topic": {"type": "string"},
    "source_partition": {"type": "integer", "minimum": 0},
    "source_offset": {"type": "integer", "minimum": 0},
    "schema_version": {"type": "string", "description": "The type the original claimed to be."},
    "sha256": {
        "type": "string",
        "pattern": "^[0-9a-f]{64}$",
        "description": "Of the whole original, where the value was cut.",
    },
}
_CLOUD_EVENT_HEADERS: JsonObject = {
    "ce_specversion": {"const": "1.0"},
    "ce_id": {
        "type": "string",
        "minLength": 1,
        "description": "Unique within the source; deterministic for log and derived events.",
    },
    "ce_source": {"type": "string", "format": "uri-reference", "minLength": 1},
    "ce_type": {"type": "string", "minLength": 1},
    "ce_time": {
        "type": "string",
        "format": "date-time",
        "description": "The utterance's time, on derived events too: the reducer has no clock.",
    },
    "ce_subject": {"type": "string", "description": "The conversation: tenant/conversation."},
    "ce_dataschema": {"type": "string", "format": "uri"},
    "content-type": {"const": "application/json"},
}


def schema_id(event_type: str) -> str:
    """The `$id` of the JSON Schema of an event type."""
    return f"urn:standfast:schema:{event_type}"


def schema_file(event_type: str) -> str:
    """The name of the file that holds the JSON Schema of an event type."""
    return f"{event_type}.schema.json"


def asyncapi_document() -> JsonObject:
    """The whole document, with keys in a fixed order."""
    return {
        "asyncapi": ASYNCAPI_VERSION,
        "id": "urn:standfast:topics",
        "info": {
            "title": "Standfast topics",
            "version": CONTRACTS_VERSION,
            "description": "What goes in and out of the workers over Kafka.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {topic.name: _channel(topic) for topic in TOPICS},
        "operations": {
            f"{action}-{topic.name}": _operation(action, topic)
            for topic in TOPICS
            for action, done in (("receive", topic.reads), ("send", topic.writes))
            if done
        },
        "components": {
            "messages": {
                name: message for topic in TOPICS for name, message in _messages(topic).items()
            },
            "schemas": {
                "cloud-event-headers": {
                    "type": "object",
                    "properties": _CLOUD_EVENT_HEADERS,
                    "required": [
                        "ce_specversion",
                        "ce_id",
                        "ce_source",
                        "ce_type",
                        "ce_time",
                        "content-type",
                    ],
                },
            },
        },
    }


def _channel(topic: Topic) -> JsonObject:
    configuration: JsonObject = {**topic.configuration(), "cleanup.policy": [topic.cleanup.value]}
    channel: JsonObject = {
        "address": topic.address,
        "summary": topic.summary,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in _messages(topic)},
        "bindings": {
            "kafka": {
                "topicConfiguration": configuration,
                "bindingVersion": KAFKA_BINDING_VERSION,
            }
        },
    }
    if topic.per_tenant:
        channel["parameters"] = {TENANT_PARAMETER.strip("{}"): {"description": "A tenant's id."}}
    return channel


def _operation(action: str, topic: Topic) -> JsonObject:
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{topic.name}"},
        "summary": topic.summary,
        "messages": [
            {"$ref": f"#/channels/{topic.name}/messages/{name}"} for name in _messages(topic)
        ],
    }


def _messages(topic: Topic) -> dict[str, JsonObject]:
    """The messages of a topic by name; an event's message has the name of its type."""
    if topic.payload is Payload.EVENT:
        return {event_type: _event_message(event_type, topic) for event_type in topic.carries}
    message: JsonObject = {
        "name": topic.name,
        "summary": topic.summary,
        "contentType": "application/octet-stream",
        "bindings": _key_binding(topic),
    }
    if topic.payload is Payload.ORIGINAL_BYTES:
        message["headers"] = {
            "type": "object",
            "properties": _DEAD_LETTER_HEADERS,
            "required": ["reason", "class", "attempts", "source_topic"],
        }
    return {topic.name: message}


def _event_message(event_type: str, topic: Topic) -> JsonObject:
    return {
        "name": event_type,
        "contentType": "application/json",
        "headers": {
            "type": "object",
            "allOf": [{"$ref": "#/components/schemas/cloud-event-headers"}],
            "properties": {
                "ce_type": {"const": event_type},
                "ce_dataschema": {"const": schema_id(event_type)},
            },
        },
        "payload": {
            "schemaFormat": JSON_SCHEMA_FORMAT,
            "schema": {"$ref": f"./{schema_file(event_type)}"},
        },
        "bindings": _key_binding(topic),
    }


def _key_binding(topic: Topic) -> JsonObject:
    return {
        "kafka": {
            "key": {"type": "string", "pattern": topic.key_pattern},
            "bindingVersion": KAFKA_BINDING_VERSION,
        }
    }
