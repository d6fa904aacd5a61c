-- Interval rows: each version of a record, link, attack, atom and problem, with the turns in which
-- it holds: from `from_turn` to before `to_turn`, which is null while it holds still. They are made
-- from the log by `standfast replay index` and can be made again at any time.

CREATE TABLE IF NOT EXISTS indexed (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    sequence BIGINT NOT NULL,           -- the last event that the interval rows know of
    digest VARCHAR NOT NULL             -- of the log there
);

CREATE TABLE IF NOT EXISTS record_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- records introduced before it
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    kind VARCHAR NOT NULL,
    claim VARCHAR NOT NULL,
    formula VARCHAR,
    speaker VARCHAR NOT NULL,
    introduced_turn BIGINT NOT NULL,
    standing VARCHAR NOT NULL,
    in_good_standing BOOLEAN NOT NULL,
    grounded BOOLEAN NOT NULL,
    grade VARCHAR NOT NULL,
    disputed BOOLEAN NOT NULL,
    committed BOOLEAN NOT NULL,         -- whether its speaker stands by it
    answers VARCHAR[] NOT NULL
);

CREATE TABLE IF NOT EXISTS link_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- order among the links of the record
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    support VARCHAR NOT NULL,
    kind VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS attack_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    target VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- attacks made before it
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    attacker VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS atom_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    record VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- order among the atoms of the record
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    entity VARCHAR NOT NULL,
    attribute VARCHAR NOT NULL,
    facet VARCHAR,
    value VARCHAR NOT NULL,
    polarity BOOLEAN NOT NULL,
    valid_from VARCHAR,
    valid_to VARCHAR,
    relation VARCHAR,
    of_records VARCHAR[]
);

CREATE TABLE IF NOT EXISTS problem_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    problem VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- problems posed before it
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    kind VARCHAR NOT NULL,
    text VARCHAR NOT NULL,
    about VARCHAR[] NOT NULL,
    speaker VARCHAR NOT NULL,
    posed_turn BIGINT NOT NULL,
    answers VARCHAR[] NOT NULL,
    open BOOLEAN NOT NULL
);

CREATE TABLE IF NOT EXISTS agent_versions (
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    agent VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- agents declared before it
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    role VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS policy_versions ( -- the authority policy in force
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    policy VARCHAR NOT NULL,            -- 'in force'
    place BIGINT NOT NULL,
    from_turn BIGINT NOT NULL,
    to_turn BIGINT,
    version VARCHAR NOT NULL
);

CREATE TABLE IF NOT EXISTS missing_versions ( -- turns that were not interpreted
    tenant_id VARCHAR NOT NULL,
    conversation_id VARCHAR NOT NULL,
    utterance_id VARCHAR NOT NULL,
    place BIGINT NOT NULL,              -- the turn
    from_turn BIGINT NOT NULL,
    to_turn BIGINT                      -- the turn that filled it
);

CREATE OR REPLACE VIEW depended_on AS -- what rests on each record as it is now, in one step
SELECT l.tenant_id, l.conversation_id, l.support AS record, count(*) AS dependents,
       any_value(r.standing) AS standing, any_value(r.claim) AS claim
FROM link_versions l
JOIN record_versions r
  ON (r.tenant_id, r.conversation_id, r.record) = (l.tenant_id, l.conversation_id, l.support)
 AND r.to_turn IS NULL
WHERE l.to_turn IS NULL
GROUP BY ALL;
