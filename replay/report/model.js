// The conversation at any turn: lookups in the data, by the definitions of the engine. Nothing here
// knows the page. A record is known by its place, the number of records introduced before it.

const START = 0, STANDING = 2, GRADE = 3, DISPUTED = 4; // of a version
const TARGET = 0, LINK_KIND = 1, LINK_TURN = 2; // of a link

function openModel(data) {
  const records = data.records.map((told, place) => ({ ...told, place, dependents: [], attacked: [] }));
  const byId = new Map(records.map((record) => [record.id, record]));
  for (const record of records) {
    for (const [support, kind, turn] of record.links) {
      records[support].dependents.push([record.place, kind, turn]);
    }
    for (const [attacker, turn] of record.attacks) {
      byId.get(attacker).attacked.push([record.place, turn]);
    }
  }
  const problems = new Map(data.problems.map((problem) => [problem.id, problem]));
  const events = new Map();
  for (const event of data.events) {
    if (!events.has(event.turn)) events.set(event.turn, []);
    events.get(event.turn).push(event);
  }
  return { data, records, byId, problems, events, turns: data.turns };
}

// The version of a record after a turn, or null if it was not there yet.
function versionAt(record, turn) {
  for (let at = record.versions.length - 1; at >= 0; at -= 1) {
    if (record.versions[at][START] <= turn) return record.versions[at];
  }
  return null;
}

function stands(version) {
  return version[STANDING] === "active" || version[STANDING] === "resolved";
}

// Whether somebody may act on it.
function isDecision(record, version) {
  return record.kind === "decision" || version[STANDING] === "resolved";
}

// Affected, Affected* and what of it stands (Definition 2.3), for records withdrawn after a turn,
// in fact or in thought. Ids ascend.
function affected(model, withdrawn, turn) {
  const direct = new Set();
  for (const place of withdrawn) {
    for (const [dependent, , since] of model.records[place].dependents) {
      if (since <= turn) direct.add(dependent);
    }
  }
  const reached = new Set(direct); // grows while it is gone through
  for (const place of reached) {
    for (const [dependent, , since] of model.records[place].dependents) {
      if (since <= turn) reached.add(dependent);
    }
  }
  const standing = [...reached].filter((place) => stands(versionAt(model.records[place], turn)));
  const decisions = standing.filter((place) =>
    isDecision(model.records[place], versionAt(model.records[place], turn)));
  return {
    direct: sortedIds(model, direct),
    transitive: sortedIds(model, reached),
    in_good_standing: sortedIds(model, standing),
    decisions: sortedIds(model, decisions),
  };
}

function sortedIds(model, places) {
  return [...places].map((place) => model.records[place].id).sort();
}

// What a record rests on after a turn, itself first, as a map from each to the one above it on a
// shortest way.
function closure(model, place, turn) {
  const above = new Map([[place, null]]);
  for (const at of above.keys()) {
    for (const [support, , since] of model.records[at].links) {
      if (since <= turn && !above.has(support)) above.set(support, at);
    }
  }
  return above;
}

// Each record of the closure that does not stand, nearest first, with the way to it.
function failing(model, place, turn) {
  const above = closure(model, place, turn);
  const found = [];
  for (const at of above.keys()) {
    if (stands(versionAt(model.records[at], turn))) continue;
    const way = [];
    for (let step = at; step !== null; step = above.get(step)) way.unshift(step);
    found.push({ place: at, way });
  }
  return found;
}

// A problem is open as long as no record that answers it stands.
function isOpen(model, problem, turn) {
  return !problem.answers.some(([id, since]) =>
    since <= turn && stands(versionAt(model.byId.get(id), turn)));
}

// How a version looks: its standing, or what is wrong with it although it stands.
function lookOf(version) {
  if (!stands(version) || version[GRADE] === "grounded") return version[STANDING];
  return version[GRADE] === "ungrounded" ? "ungrounded" : "shaken";
}

const LOOKS = ["active", "resolved", "shaken", "ungrounded", "weakened", "abandoned"];

function countLooks(model, turn) {
  const counts = Object.fromEntries(LOOKS.map((look) => [look, 0]));
  for (const record of model.records) {
    const version = versionAt(record, turn);
    if (version !== null) counts[lookOf(version)] += 1;
  }
  return counts;
}

// The alert that was raised with a verdict, if one was.
function alertOf(event, verdict) {
  return event.alerts?.find((alert) =>
    alert.record === null ? alert.index === verdict.index : alert.record === verdict.records[0]);
}
