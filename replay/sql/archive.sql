-- What `standfast archive` adds to a store: every message of the topics as the brokers had it.
-- A message stands here once by (topic, partition, "offset"): it is written in one transaction with
-- the `copied` row that says up to where its partition was copied.

CREATE TABLE IF NOT EXISTS messages (
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    "offset" BIGINT NOT NULL,
    timestamp_ms BIGINT NOT NULL,       -- as the message has it, whatever it says
    timestamp TIMESTAMP WITH TIME ZONE, -- the same, if it is a time of this calendar
    tenant_id VARCHAR,                  -- of the key, if it is a conversation's
    conversation_id VARCHAR,
    key BLOB,
    headers STRUCT("name" VARCHAR, "value" BLOB)[] NOT NULL,
    value BLOB,                         -- null is a tombstone
    hash VARCHAR NOT NULL               -- of everything above that the broker gave
);

CREATE TABLE IF NOT EXISTS copied (
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    next_offset BIGINT NOT NULL,        -- the partition is copied up to here
    message_hash VARCHAR NOT NULL       -- of the message before it; empty if it had none
);

CREATE TABLE IF NOT EXISTS gaps (       -- offsets that the brokers did not give us
    topic VARCHAR NOT NULL,
    partition INTEGER NOT NULL,
    first_offset BIGINT NOT NULL,
    next_offset BIGINT NOT NULL,        -- the first that they gave after it
    reason VARCHAR NOT NULL             -- deleted: before the log's start; empty: no message there
);
