-- The store of one file. `log` is the truth: the bytes of every event as they were appended.
-- Everything else can be made again from it.

CREATE TABLE IF NOT EXISTS store (
    format INTEGER NOT NULL
);

CREATE TABLE IF NOT EXISTS log (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    sequence BIGINT NOT NULL,       -- place in the conversation, from 1
    turn BIGINT NOT NULL,           -- statements up to and including this event
    type VARCHAR NOT NULL,
    utterance_id VARCHAR NOT NULL,
    speaker VARCHAR NOT NULL,
    said_at TIMESTAMP WITH TIME ZONE NOT NULL,
    rules_version INTEGER NOT NULL,
    digest VARCHAR NOT NULL,        -- chain of the log after this event
    state_digest VARCHAR NOT NULL,  -- the state after this event
    record_hash VARCHAR NOT NULL,   -- SHA-256 of `event`
    event BLOB NOT NULL             -- canonical bytes
);

CREATE TABLE IF NOT EXISTS derived (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    sequence BIGINT NOT NULL,       -- the log event it came from
    place BIGINT NOT NULL,          -- order among the derived events of that log event, from 0
    turn BIGINT NOT NULL,
    type VARCHAR NOT NULL,
    event_id VARCHAR NOT NULL,
    data JSON NOT NULL
);

CREATE TABLE IF NOT EXISTS snapshots (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    sequence BIGINT NOT NULL,       -- the last event folded into it
    turn BIGINT NOT NULL,
    format INTEGER NOT NULL,
    state_digest VARCHAR NOT NULL,
    size BIGINT NOT NULL,           -- bytes of `conversation`
    bytes_hash VARCHAR NOT NULL,    -- SHA-256 of `conversation`
    conversation BLOB NOT NULL      -- canonical bytes, compressed by zlib
);

CREATE TABLE IF NOT EXISTS positions (
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL,    -- the store has the partition's log before this offset
    record_hash VARCHAR NOT NULL    -- SHA-256 of the record before it
);

CREATE TABLE IF NOT EXISTS places ( -- only in the store of a worker
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL,    -- the conversation's events before this offset are here
    record_hash VARCHAR NOT NULL,   -- SHA-256 of the record before this offset
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    sequence BIGINT NOT NULL        -- the last of them
);

CREATE OR REPLACE VIEW turns AS
SELECT tenant_id, conversation_id, turn, sequence,
       data->>'$.utterance_id' AS utterance_id,
       data->>'$.failed' AS failed,
       json_array_length(data, '$.applied') AS applied,
       json_array_length(data, '$.rejections') AS rejected,
       data->>'$.state_digest' AS state_digest,
       data
FROM derived WHERE type = 'standfast.turn.v1';

CREATE OR REPLACE VIEW verdicts AS
SELECT tenant_id, conversation_id, turn, sequence, event_id,
       data->>'$.candidate.utterance_id' AS candidate,
       CAST(data->>'$.candidate.claim_index' AS BIGINT) AS claim_index,
       data->>'$.record' AS record,
       data->>'$.outcome' AS outcome,
       data->>'$.grade' AS grade,
       data->>'$.reason' AS reason,
       data
FROM derived WHERE type = 'standfast.verdict.v1';

CREATE OR REPLACE VIEW retraction_impacts AS
SELECT tenant_id, conversation_id, turn, sequence, event_id,
       data->>'$.withdrawn' AS withdrawn,
       data->>'$.standing' AS standing,
       data->>'$.by' AS withdrawn_by,
       json_array_length(data, '$.in_good_standing') AS in_good_standing,
       json_array_length(data, '$.newly_ungrounded') AS newly_ungrounded,
       data->>'$.message' AS message,
       data
FROM derived WHERE type = 'standfast.retraction_impact.v1';

CREATE OR REPLACE VIEW ungrounded_alerts AS
SELECT tenant_id, conversation_id, turn, sequence, event_id,
       data->>'$.record' AS record,
       data->>'$.candidate.utterance_id' AS candidate,
       data->>'$.severity' AS severity,
       data->>'$.reason' AS reason,
       data->>'$.message' AS message,
       data
FROM derived WHERE type = 'standfast.ungrounded_alert.v1';
