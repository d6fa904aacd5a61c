-- Views for analysts, over the log and what came of it; `replay/README.md` has queries.

CREATE OR REPLACE VIEW alerts_by_day AS
SELECT a.tenant_id, CAST(make_timestamp(epoch_us(l.said_at)) AS DATE) AS day, a.severity,
       count(*) AS alerts
FROM ungrounded_alerts a JOIN log l USING (tenant_id, conversation_id, sequence)
GROUP BY ALL;

CREATE OR REPLACE VIEW verdict_failures AS -- one row for each failing record of a verdict
SELECT tenant_id, conversation_id, turn, sequence, record, candidate, claim_index, grade,
       failure->>'$.record' AS failing,
       failure->>'$.standing' AS standing,
       CAST(failure->>'$.since_turn' AS BIGINT) AS since_turn,
       failure->>'$.cause.op' AS cause,
       failure->>'$.cause.by' AS caused_by,
       failure->>'$.cause.speaker' AS speaker,
       CAST(failure->'$.path' AS VARCHAR[]) AS path
FROM (SELECT *, unnest(CAST(data->'$.failures' AS JSON[])) AS failure FROM verdicts);

CREATE OR REPLACE VIEW decisions_without_ground AS
SELECT tenant_id, conversation_id, turn, record AS decision, grade, failing, standing, since_turn,
       cause, caused_by, speaker, path
FROM verdict_failures WHERE record IS NOT NULL;

CREATE OR REPLACE VIEW withdrawal_to_alert AS -- how long an alert came after what it is about
SELECT a.tenant_id, a.conversation_id, a.turn, coalesce(a.record, a.candidate) AS alert, f.failing,
       a.turn - f.since_turn AS turns,
       epoch(said.said_at) - epoch(withdrawn.said_at) AS seconds
FROM ungrounded_alerts a
JOIN verdict_failures f
  ON (f.tenant_id, f.conversation_id, f.sequence) = (a.tenant_id, a.conversation_id, a.sequence)
 AND f.record IS NOT DISTINCT FROM a.record
 AND f.candidate IS NOT DISTINCT FROM a.candidate
 AND f.claim_index IS NOT DISTINCT FROM CAST(a.data->>'$.candidate.claim_index' AS BIGINT)
JOIN log said
  ON (said.tenant_id, said.conversation_id, said.sequence)
   = (a.tenant_id, a.conversation_id, a.sequence)
JOIN turns t
  ON (t.tenant_id, t.conversation_id, t.turn) = (a.tenant_id, a.conversation_id, f.since_turn)
JOIN log withdrawn
  ON (withdrawn.tenant_id, withdrawn.conversation_id, withdrawn.sequence)
   = (t.tenant_id, t.conversation_id, t.sequence);

CREATE OR REPLACE VIEW interpretations AS -- who read each utterance, and at what cost
SELECT tenant_id, conversation_id, sequence, turn, said_at,
       said->>'$.provenance.interpreter' AS interpreter,
       said->>'$.provenance.model' AS model,
       said->>'$.provenance.prompt_id' AS prompt,
       CAST(said->>'$.provenance.attempts' AS BIGINT) AS attempts,
       CAST(said->>'$.provenance.tokens_in' AS BIGINT) AS tokens_in,
       CAST(said->>'$.provenance.tokens_out' AS BIGINT) AS tokens_out,
       CAST(said->>'$.provenance.milliseconds' AS BIGINT) AS milliseconds
FROM (SELECT *, CAST(decode(event) AS JSON) AS said FROM log);
