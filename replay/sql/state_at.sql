-- The state of a conversation as it was after a turn: one row per part, in order.
-- Parameters: $tenant, $conversation, $turn.

WITH asked AS (SELECT $tenant AS tenant_id, $conversation AS conversation_id)
SELECT 'turn' AS part, 0 AS place,
       to_json({sequence: min(sequence), digest: arg_min(digest, sequence),
                state_digest: arg_min(state_digest, sequence)}) AS value
FROM log JOIN asked USING (tenant_id, conversation_id)
WHERE turn = $turn AND ($turn > 0 OR type = 'standfast.setup.v1')
UNION ALL
SELECT 'agent', place, to_json({id: agent, role: role})
FROM agent_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'policy', place, to_json(version)
FROM policy_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'record', place,
       to_json({record: record, kind: kind, claim: claim, formula: formula, atoms: [],
                speaker: speaker, turn: introduced_turn, standing: standing,
                in_good_standing: in_good_standing, grounded: grounded, grade: grade,
                disputed: disputed, links: [], attackers: [], answers: answers,
                committed: committed})
FROM record_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'link', place, to_json({of: record, record: support, kind: kind})
FROM link_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'attack', place, to_json([attacker, target])
FROM attack_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'atom', place,
       to_json({record: record, entity: entity, attribute: attribute, facet: facet,
                value: value, polarity: polarity, valid_from: valid_from, valid_to: valid_to,
                relation: relation, of: of_records})
FROM atom_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'problem', place,
       to_json({problem: problem, kind: kind, text: text, about: about, speaker: speaker,
                turn: posed_turn, answers: answers, open: open})
FROM problem_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
UNION ALL
SELECT 'missing', place, to_json(place)
FROM missing_versions JOIN asked USING (tenant_id, conversation_id)
WHERE from_turn <= $turn AND (to_turn IS NULL OR to_turn > $turn)
ORDER BY part, place
