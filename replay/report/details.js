// The cards beside the map: the record that is selected, what would fall, and what a turn did.

const TREE_DEPTH_MAX = 6, TREE_LINES_MAX = 60, LISTED_MAX = 40;

function recordButton(model, actions, id, turn) {
  const record = model.byId.get(id);
  if (record === undefined) {
    const problem = model.problems.get(id);
    return problem ? html("button", { type: "button", class: "ref", on: { click: () => actions.select({ problem }) } }, id) : html("code", {}, id);
  }
  const version = versionAt(record, turn);
  const mark = version === null ? null : glyph(lookOf(version), version[STANDING]);
  return html("button", { type: "button", class: "ref", title: record.claim, "aria-label": version === null ? id : `${id}, ${describe(version)}`, on: { click: () => actions.select({ record }) } }, mark, id);
}

function turnButton(actions, turn) {
  return html("button", { type: "button", class: "to-turn", on: { click: () => actions.goTo(turn) } }, `turn ${turn}`);
}

function recordLine(model, actions, id, turn, extra) {
  const record = model.byId.get(id);
  return html("li", { class: "line" }, recordButton(model, actions, id, turn), html("span", { class: "claim" }, record?.claim ?? ""), extra);
}

function listOf(model, actions, ids, turn, noun) {
  if (ids.length === 0) return html("p", { class: "none" }, `No ${noun}.`);
  const shown = ids.slice(0, LISTED_MAX).map((id) => recordLine(model, actions, id, turn));
  const more = ids.length - shown.length;
  return [html("ul", { class: "lines" }, shown), more > 0 && html("p", { class: "none" }, `and ${counted(more, "more record").replace("more records", "more")}`)];
}

function chip(version) {
  const look = lookOf(version);
  return html("span", { class: `chip look-${look}` }, glyph(look, version[STANDING]), describe(version));
}

function fillRecord(card, model, actions, view) {
  const { turn, selected } = view;
  if (selected === null) {
    fillAttention(card, model, actions, turn);
    return;
  }
  if (selected.problem) fillProblem(card, model, actions, turn, selected.problem);
  else if (selected.record) fillOne(card, model, actions, view, selected.record);
  else fillCheck(card, model, actions, turn, selected);
}

// What somebody should look at first: what stands on failing ground, decisions before the rest.
function fillAttention(card, model, actions, turn) {
  const shaky = [];
  for (const record of model.records) {
    const version = versionAt(record, turn);
    if (version !== null && stands(version) && version[GRADE] !== "grounded") shaky.push([isDecision(record, version) ? 0 : 1, record]);
  }
  const open = [...model.problems.values()].filter((problem) => problem.turn <= turn && isOpen(model, problem, turn));
  shaky.sort((a, b) => a[0] - b[0] || b[1].turn - a[1].turn);
  if (open.length === 0 && !model.records.some((record) => record.turn <= turn)) {
    put(card, html("h2", { id: "record-title" }, "No record yet"), html("p", { class: "hint" }, "What is said becomes records; each can be chosen here to see what it rests on, what rests on it, and what would fall with it."));
    return;
  }
  const more = (count) => count > 0 && html("p", { class: "none" }, `and ${number.format(count)} more`);
  put(card,
    html("h2", { id: "record-title" }, shaky.length + open.length === 0 ? "Nothing stands on failing ground" : "Worth a look"),
    shaky.length > 0 && [html("h3", {}, "Standing, but no longer grounded"), html("ul", { class: "lines" }, shaky.slice(0, 6).map(([, record]) => recordLine(model, actions, record.id, turn))), more(shaky.length - 6)],
    open.length > 0 && [html("h3", {}, "Still open"), html("ul", { class: "lines" }, open.slice(-4).map((problem) => html("li", {}, recordButton(model, actions, problem.id, turn), html("span", { class: "claim" }, problem.text)))), more(open.length - 4)],
    html("p", { class: "hint" }, "Choose a mark on the map or a row of the list to see what it rests on, what rests on it, and what would fall with it."),
  );
}

function fillProblem(card, model, actions, turn, problem) {
  const answers = problem.answers.filter(([, since]) => since <= turn).map(([id]) => id);
  put(card,
    html("h2", { id: "record-title" }, html("span", { class: "id" }, problem.id), html("span", { class: "what" }, problem.question ? "question" : "surprise")),
    html("p", { class: "said" }, problem.text || "(no text)"),
    html("p", { class: "meta" }, problem.speaker, ", ", turnButton(actions, problem.turn), html("span", { class: "chip" }, isOpen(model, problem, turn) ? "open" : "answered")),
    html("h3", {}, "Answers"),
    listOf(model, actions, answers, turn, "answer yet"),
    closeButton(actions),
  );
}

function fillCheck(card, model, actions, turn, { verdict, event }) {
  const outcome = OUTCOMES[verdict.outcome];
  const alert = alertOf(event, verdict);
  put(card,
    html("h2", { id: "record-title" }, html("span", { class: `verdict ${outcome.look}`, "aria-hidden": "true" }, outcome.mark), words(verdict.outcome), html("span", { class: "what" }, event.kind === "draft" ? `draft ${event.utterance}` : "decision")),
    html("p", { class: "said" }, verdict.claim || model.byId.get(verdict.records[0])?.claim || "(no claim)"),
    html("p", { class: "meta" }, html("span", {}, event.speaker, ", after ", turnButton(actions, event.turn)), verdict.grade !== null && verdict.grade !== verdict.outcome && html("span", {}, words(verdict.grade)), verdict.reason && html("span", {}, words(verdict.reason))),
    !verdict.complete && html("p", { class: "bad" }, "Some turns before it could not be interpreted."),
    html("h3", {}, "Rests on"),
    listOf(model, actions, [...verdict.records], turn, "record was named"),
    verdict.failures.length > 0 && [html("h3", {}, "What did not stand"), html("ul", { class: "plain" }, verdict.failures.map((text) => html("li", {}, text)))],
    alert && [html("h3", {}, "Alert"), html("p", { class: `alert ${alert.severity}` }, html("b", {}, alert.severity, " "), alert.message)],
    closeButton(actions),
  );
}

function closeButton(actions) {
  return html("p", { class: "actions" }, html("button", { type: "button", class: "quiet", on: { click: () => actions.select(null) } }, "Close"));
}

function fillOne(card, model, actions, view, record) {
  const { turn } = view;
  const version = versionAt(record, turn);
  const heading = html("h2", { id: "record-title" }, html("span", { class: "id" }, record.id), html("span", { class: "what" }, record.kind));
  if (version === null) {
    put(card,heading, html("p", { class: "none" }, "Not there yet: it is introduced at ", turnButton(actions, record.turn), "."), closeButton(actions));
    return;
  }
  const failures = stands(version) && version[GRADE] !== "grounded" ? failing(model, record.place, turn) : [];
  const report = affected(model, [record.place], turn);
  const withdrawn = view.lit?.withdrawn.has(record.place) ?? false;
  put(card,
    heading,
    html("p", { class: "said" }, record.claim),
    record.formula && html("p", { class: "formula" }, html("code", {}, record.formula)),
    html("p", { class: "meta" }, chip(version), html("span", {}, record.speaker, ", ", turnButton(actions, record.turn))),
    failures.length ? html("div", { class: "why-not" }, html("h3", {}, "Why it is not grounded"), html("ul", { class: "plain" }, failures.slice(0, 5).map((each) => failureLine(model, actions, turn, each))), failures.length > 5 && html("p", { class: "none" }, `and ${number.format(failures.length - 5)} more`)) : null,
    html("p", { class: "actions" },
      html("button", { type: "button", class: "primary", id: "ask", "aria-pressed": withdrawn ? "true" : "false", on: { click: () => actions.withdraw(record) } }, withdrawn ? "Take back the what-if" : "What if it were withdrawn?"),
      html("button", { type: "button", class: "quiet", on: { click: () => actions.select(null) } }, "Close")),
    html("h3", {}, "Rests on"),
    supportTree(model, actions, record, turn),
    html("h3", {}, "What rests on it", html("span", { class: "count" }, `${number.format(report.transitive.length)}, ${number.format(report.in_good_standing.length)} in good standing`)),
    listOf(model, actions, report.direct, turn, "record rests on it"),
    html("h3", {}, "History"),
    trail(model, actions, record, turn),
  );
}

function failureLine(model, actions, turn, { place, way }) {
  const record = model.records[place];
  const through = way.length > 2 ? [", reached through ", way.slice(1, -1).slice(0, 4).map((at, index) => [index > 0 && " \u203a ", recordButton(model, actions, model.records[at].id, turn)])] : [];
  return html("li", {}, recordButton(model, actions, record.id, turn), ` is ${versionAt(record, turn)[STANDING]}`, through);
}

function supportTree(model, actions, record, turn) {
  const listed = new Set();
  let lines = 0;
  const branch = (at, depth) => {
    const links = at.links.filter(([, , since]) => since <= turn);
    if (links.length === 0 || depth > TREE_DEPTH_MAX || lines >= TREE_LINES_MAX) return null;
    return html("ul", { class: depth === 1 ? "tree" : null }, links.map(([place, kind]) => {
      if (lines >= TREE_LINES_MAX) return null;
      lines += 1;
      const support = model.records[place];
      const again = listed.has(place);
      listed.add(place);
      return html("li", {}, html("span", { class: "line" }, recordButton(model, actions, support.id, turn), kind !== "premise" && html("span", { class: "kind" }, kind), html("span", { class: "claim" }, again ? "as above" : support.claim)), again ? null : branch(support, depth + 1));
    }));
  };
  const tree = branch(record, 1);
  if (tree === null) return html("p", { class: "none" }, "Nothing: it was put forward as it is.");
  const rest = closure(model, record.place, turn).size - 1 - listed.size;
  return [tree, rest > 0 && html("p", { class: "none" }, `and ${counted(rest, "record")} further down`)];
}

const HAPPENINGS = {
  linked: (value) => `rests also on (${value})`,
  attacked: () => "attacked by",
  standing: (value) => `${value} by`,
  commitment_ended: () => "its speaker takes it back, with",
  reclassified: (value) => `reclassified: ${value}`,
  dissent: (value) => `dissent: ${value}`,
  alerted: () => "an alert was raised",
  grade: (value) => (value === "ungrounded" ? "no longer grounded" : "grounded but for its corroboration"),
};

function trail(model, actions, record, turn) {
  const first = html("li", {}, turnButton(actions, record.turn), html("span", {}, `put forward by ${record.speaker} (${words(record.op)})`));
  const told = [...record.trail];
  for (const version of record.versions) {
    const lost = version[GRADE] !== "grounded" && stands(version) && !told.some(([, kind, , , , grade]) => kind === "grade" && grade === version[GRADE]);
    if (lost) told.push([version[START], "grade", null, null, null, version[GRADE]]);
  }
  told.sort((a, b) => a[0] - b[0] || (a[1] === "alerted") - (b[1] === "alerted"));
  const rest = told.filter(([at]) => at <= turn).map(([at, happening, op, by, speaker, value]) => {
    const said = HAPPENINGS[happening](value);
    const bare = by === null && said.endsWith(" by") ? said.slice(0, -3) : said;
    return html("li", { class: `happening ${happening} ${happening === "standing" ? value : ""}` }, turnButton(actions, at), html("span", {}, bare, " ", by !== null && recordButton(model, actions, by, turn), speaker !== null && html("span", { class: "by" }, ` ${speaker}, ${words(op)}`)));
  });
  return html("ol", { class: "trail" }, first, rest.slice(-LISTED_MAX));
}

function fillWhatIf(card, model, actions, view) {
  const { lit, turn } = view;
  card.hidden = lit === null;
  if (lit === null) return;
  const { decisions, in_good_standing: standing } = lit.report;
  const others = standing.filter((id) => !decisions.includes(id));
  const names = [...lit.withdrawn].map((place) => model.records[place].id).sort();
  put(card,
    html("h2", { id: "whatif-title" }, "What if ", names.map((id, at) => [at > 0 && ", ", html("span", { class: "id" }, id)]), names.length === 1 ? " were withdrawn" : " were all withdrawn"),
    html("p", { class: "sum" }, whatIfSentence(lit, turn)),
    decisions.length > 0 && [html("h3", {}, "Decisions"), html("ul", { class: "lines", id: "falls-decisions" }, decisions.slice(0, LISTED_MAX).map((id) => recordLine(model, actions, id, turn)))],
    others.length > 0 && [html("h3", {}, "Other records"), html("ul", { class: "lines", id: "falls-others" }, others.slice(0, LISTED_MAX).map((id) => recordLine(model, actions, id, turn))), others.length > LISTED_MAX && html("p", { class: "none" }, `and ${number.format(others.length - LISTED_MAX)} more, lit on the map`)],
    html("p", { class: "hint" }, "Nothing is changed by asking. Select another record and ask again to withdraw both."),
    html("p", { class: "actions" }, html("button", { type: "button", class: "quiet", id: "leave", on: { click: () => actions.leaveWhatIf() } }, "Leave the what-if")),
  );
}

function whatIfSentence(lit, turn) {
  const { decisions, in_good_standing: standing, transitive } = lit.report;
  if (transitive.length === 0) return `Nothing rests on it after turn ${turn}.`;
  if (standing.length === 0) return `After turn ${turn} nothing in good standing rests on it.`;
  return `After turn ${turn}, ${counted(standing.length, "record")} in good standing would lose support, ${decisions.length === 0 ? "no decision" : counted(decisions.length, "decision")} among them.`;
}

function fillHappened(card, model, actions, turn) {
  const events = model.events.get(turn) ?? [];
  const said = events.find((event) => event.kind !== "draft") ?? events[0];
  put(card,
    html("h2", { id: "happened-title" }, turn === 0 ? "Before the first turn" : `Turn ${turn}`, said && html("span", { class: "what" }, said.speaker, " ", html("time", { datetime: said.at }, clockTime(said.at)))),
    events.length === 0 ? html("p", { class: "none" }, "Nothing was said yet.") : events.map((event) => happenedOf(event, model, actions, turn)),
  );
}

function happenedOf(event, model, actions, turn) {
  const refused = new Map((event.refused ?? []).map(([index, code, reason]) => [index, [code, reason]]));
  const ref = (id) => recordButton(model, actions, id, turn);
  const parts = [];
  if (event.kind === "setup") parts.push(html("p", {}, `Set up by ${event.speaker}.`));
  if (event.kind === "erased") parts.push(html("p", {}, "The conversation was erased."));
  if (event.failed) parts.push(html("p", { class: "bad" }, `Not interpreted: ${event.failed}`));
  if (event.fills) parts.push(html("p", {}, "Fills the gap of ", turnButton(actions, event.fills), "."));
  if (event.operations) {
    parts.push(event.operations.length === 0 ? html("p", { class: "none" }, "No operations.") : html("ul", { class: "operations" }, event.operations.map((each, index) => html("li", { class: refused.has(index) ? "refused" : null },
      each.map((part) => [typeof part === "string" ? part : ref(part[0]), " "]),
      refused.has(index) && html("span", { class: "reason" }, `refused (${words(refused.get(index)[0])}): ${refused.get(index)[1]}`)))));
  }
  for (const note of event.notes ?? []) parts.push(html("p", { class: "note" }, note));
  for (const impact of event.impacts ?? []) parts.push(html("p", { class: "impact" }, html("b", {}, "Withdrawn "), impact.message));
  for (const verdict of event.verdicts ?? []) {
    const outcome = OUTCOMES[verdict.outcome];
    parts.push(html("p", { class: `checked ${outcome.look}` }, html("span", { class: `verdict ${outcome.look}`, "aria-hidden": "true" }, outcome.mark), html("span", {}, html("b", {}, event.kind === "draft" ? `Draft ${event.utterance} ` : "Decision ", words(verdict.outcome)), " ", verdict.claim ?? "", verdict.records.map((id) => [" ", ref(id)]))));
  }
  for (const alert of event.alerts ?? []) parts.push(html("p", { class: `alert ${alert.severity}` }, html("b", {}, `Alert, ${alert.severity} `), alert.message));
  return html("div", { class: "event" }, parts);
}
