// The map: one column for each turn, one lane for each kind of record, ground at the bottom. Only
// the columns in sight are drawn, so it takes as long for thousands of records as for a hundred.

const LANES = [
  ["check", "Checks"],
  ["problem", "Questions"],
  ["decision", "Decisions"],
  ["hypothesis", "Hypotheses"],
  ["evidence", "Evidence"],
  ["premise", "Premises"],
  ["observation", "Observations"],
];
const STACKED_MAX = 4;
const PITCHES = [8, 12, 18, 26, 36, 48, 64, 88];
const PITCH_FIT_MIN = 22, PITCH_FIT_MAX = 92;
const LABEL_PITCH = 40; // from this width on there is room for ids
const ALL_LINKS_MAX = 120; // records in view up to which their links are drawn without asking
const LINKS_MAX = 600;
const AXIS_HEIGHT = 44, AXIS_HEIGHT_BARE = 28, TOP = 10, PAD = 14, MARGIN = 400;

// Where everything stands; depends on the data and on the width of a column alone.
function layOut(model, width) {
  const columns = new Map(); // turn -> lane -> items
  const put = (turn, lane, item) => {
    if (!columns.has(turn)) columns.set(turn, new Map());
    const lanes = columns.get(turn);
    if (!lanes.has(lane)) lanes.set(lane, []);
    lanes.get(lane).push(item);
  };
  for (const record of model.records) put(record.turn, record.kind, { record });
  for (const problem of model.problems.values()) {
    if (problem.question) put(problem.turn, "problem", { problem });
  }
  for (const event of model.data.events) {
    for (const verdict of event.verdicts ?? []) put(event.turn, "check", { verdict, event });
  }
  const first = columns.has(0) ? 0 : 1;
  const heights = new Map();
  const spans = [];
  let count = 0;
  for (let turn = first; turn <= model.turns; turn += 1) {
    let span = 1;
    for (const [lane, items] of columns.get(turn) ?? []) {
      heights.set(lane, Math.max(heights.get(lane) ?? 0, Math.min(items.length, STACKED_MAX)));
      span = Math.max(span, Math.ceil(items.length / STACKED_MAX));
    }
    spans.push(span);
    count += span;
  }
  const pitch = Math.min(PITCH_FIT_MAX, Math.max(PITCH_FIT_MIN, Math.floor((width - 2 * PAD) / Math.max(1, count))));
  return { columns, first, heights, spans, count, pitch, items: new Map() };
}

// Coordinates for a width of a turn.
function place(model, layout, pitch) {
  const labelled = pitch >= LABEL_PITCH;
  const row = labelled ? 42 : Math.max(16, Math.min(24, pitch));
  const lanes = [];
  let y = TOP;
  for (const [lane, name] of LANES) {
    const rows = layout.heights.get(lane);
    if (!rows) continue;
    const height = Math.max(rows * row, 30) + 12;
    lanes.push({ lane, name, y, height, rows });
    y += height;
  }
  const starts = [PAD];
  for (const span of layout.spans) starts.push(starts[starts.length - 1] + span * pitch);
  const items = [];
  const at = new Map(); // record or problem -> position
  const laneOf = new Map(lanes.map((lane) => [lane.lane, lane]));
  layout.spans.forEach((span, column) => {
    const turn = layout.first + column;
    for (const [name, stacked] of layout.columns.get(turn) ?? []) {
      const lane = laneOf.get(name);
      const used = Math.ceil(stacked.length / STACKED_MAX);
      stacked.forEach((item, place) => {
        const depth = Math.min(stacked.length - Math.floor(place / STACKED_MAX) * STACKED_MAX, STACKED_MAX);
        const x = starts[column] + (span * pitch) / 2 + (Math.floor(place / STACKED_MAX) - (used - 1) / 2) * pitch;
        const middle = lane.y + lane.height / 2 + ((place % STACKED_MAX) - (depth - 1) / 2) * row;
        const alone = span === 1 && !beside(layout, turn, name);
        const positioned = { ...item, turn, column, x, y: labelled ? middle - 7 : middle, room: (pitch * (alone ? 2 : 1)) / 6.4 };
        items.push(positioned);
        if (item.record) at.set(item.record, positioned);
        if (item.problem) at.set(item.problem, positioned);
      });
    }
  });
  return {
    pitch, labelled, lanes, starts, items, at,
    r: Math.max(2.6, Math.min(7.5, pitch * 0.24)),
    width: starts[starts.length - 1] + PAD, height: y + (labelled ? AXIS_HEIGHT : AXIS_HEIGHT_BARE), floor: y,
  };
}

// Whether a neighbouring turn has something in the same lane, so that a label has to be short.
function beside(layout, turn, lane) {
  return [turn - 1, turn + 1].some((near) => layout.columns.get(near)?.has(lane));
}

function link(from, to, kind, tone) {
  const reach = Math.abs(from.x - to.x);
  const level = Math.abs(from.y - to.y) < 12;
  const bow = level ? -Math.min(46, 10 + reach / 6) : 0;
  const pull = Math.max(level ? reach / 4 : 14, Math.min(reach / 2, 120));
  const side = from.x >= to.x ? -1 : 1;
  const steep = reach < 20 && !level;
  const d = steep
    ? `M${from.x} ${from.y}C${from.x + 16} ${from.y + (to.y - from.y) / 3} ${to.x + 16} ${to.y - (to.y - from.y) / 3} ${to.x} ${to.y}`
    : `M${from.x} ${from.y}C${from.x + side * pull} ${from.y + bow} ${to.x - side * pull} ${to.y + bow} ${to.x} ${to.y}`;
  return svg("path", { class: `link ${kind} ${tone}`, d, "marker-end": tone === "quiet" ? null : `url(#end-${kind === "attack" ? "attack" : tone})` });
}

// The links to draw, as [record, record, kind, tone]: of what is selected or lit; of the records in
// view, if these are few, all the others as well, quietly.
function linksToDraw(model, view, shown) {
  const { turn, selected, lit } = view;
  const told = [];
  const seen = new Set();
  const add = (from, to, kind, tone) => {
    const key = `${from.place}>${to.place}>${kind === "attack"}`;
    if (!seen.has(key)) {
      seen.add(key);
      told.push([from, to, kind, tone]);
    }
  };
  const records = model.records;
  if (lit !== null) {
    const touched = new Set([...lit.places, ...lit.withdrawn]);
    for (const at of touched) {
      for (const [to, kind, since] of records[at].dependents) {
        if (since <= turn && touched.has(to)) add(records[to], records[at], kind, "falls");
      }
    }
  } else if (selected !== null && selected.record) {
    const record = selected.record;
    for (const [from, since] of record.attacks) if (since <= turn) add(model.byId.get(from), record, "attack", "against");
    for (const [to, since] of record.attacked) if (since <= turn) add(record, records[to], "attack", "against");
    for (const at of closure(model, record.place, turn).keys()) {
      for (const [to, kind, since] of records[at].links) if (since <= turn) add(records[at], records[to], kind, "below");
    }
    const above = new Set([record.place]);
    for (const at of above) {
      for (const [to, kind, since] of records[at].dependents) {
        if (since > turn) continue;
        add(records[to], records[at], kind, "above");
        above.add(to);
      }
    }
  }
  if (shown.length <= ALL_LINKS_MAX) {
    for (const record of shown) {
      for (const [to, kind, since] of record.dependents) if (since <= turn) add(records[to], record, kind, "quiet");
      for (const [to, kind, since] of record.links) if (since <= turn) add(record, records[to], kind, "quiet");
      for (const [from, since] of record.attacks) if (since <= turn) add(model.byId.get(from), record, "attack", "quiet");
    }
  }
  return told;
}

function drawMap(model, placed, layout, view, left, right) {
  const { turn, selected, lit } = view;
  const within = (item) => item.x > left - MARGIN && item.x < right + MARGIN;
  const nodes = [markers()];
  const reached = placed.starts[Math.max(0, turn - layout.first + 1)] ?? placed.width;
  const began = placed.starts[Math.max(0, turn - layout.first)] ?? 0;
  if (reached < placed.width - PAD) nodes.push(svg("rect", { class: "future", x: reached, y: 0, width: placed.width - reached, height: placed.floor }));
  for (const [at, lane] of placed.lanes.entries()) {
    if (at > 0) nodes.push(svg("path", { class: "rule", d: `M${Math.max(0, left - MARGIN)} ${lane.y}H${Math.min(placed.width, right + MARGIN)}` }));
  }
  if (turn >= layout.first) nodes.push(svg("rect", { class: "present", x: began, y: 0, width: reached - began, height: placed.floor }));
  nodes.push(axis(model, placed, layout, turn, left, right));
  const shown = model.records.filter((record) => record.turn <= turn && within(placed.at.get(record)));
  const links = linksToDraw(model, view, shown)
    .map(([from, to, kind, tone]) => [placed.at.get(from), placed.at.get(to), kind, tone])
    .filter(([from, to]) => Math.max(from.x, to.x) > left - MARGIN && Math.min(from.x, to.x) < right + MARGIN)
    .slice(0, LINKS_MAX)
    .sort((a, b) => (b[3] === "quiet") - (a[3] === "quiet"));
  nodes.push(svg("g", { class: lit === null && !selected?.record ? "links" : "links chosen", "aria-hidden": "true" }, links.map((each) => link(...each))));
  const near = selected?.record ? around(model, selected.record, turn) : null;
  for (const item of placed.items) {
    if (item.turn <= turn && within(item)) nodes.push(mark(model, placed, item, view, near));
  }
  return nodes;
}

// What a record rests on and what rests on it: the rest steps back when it is selected.
function around(model, record, turn) {
  const near = new Set(closure(model, record.place, turn).keys());
  for (const id of affected(model, [record.place], turn).transitive) near.add(model.byId.get(id).place);
  for (const [id, since] of record.attacks) if (since <= turn) near.add(model.byId.get(id).place);
  for (const [place, since] of record.attacked) if (since <= turn) near.add(place);
  return near;
}

function markers() {
  const tones = ["below", "above", "falls", "against"];
  return svg("defs", {}, [
    tones.map((tone) => svg("marker", { id: `end-${tone}`, class: `end ${tone}`, viewBox: "0 0 8 8", refX: 15, refY: 4, markerWidth: 7, markerHeight: 7, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 .8L7 4L0 7.2Z" }))),
    svg("marker", { id: "end-attack", class: "end against", viewBox: "0 0 8 10", refX: 15, refY: 5, markerWidth: 8, markerHeight: 10, markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M3 0H5.4V10H3Z" })),
  ]);
}

function axis(model, placed, layout, turn, left, right) {
  const nodes = [svg("path", { class: "ground", d: `M0 ${placed.floor}H${placed.width}` })];
  const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((step) => step * placed.pitch >= 30) ?? 2000;
  layout.spans.forEach((span, column) => {
    const at = layout.first + column;
    const x = placed.starts[column] + (span * placed.pitch) / 2;
    if (x < left - MARGIN || x > right + MARGIN) return;
    const now = at === turn;
    if (at % every === 0 || at === layout.first || now) {
      const crowded = !now && Math.abs(at - turn) * placed.pitch < 26;
      if (!crowded) nodes.push(svg("text", { class: now ? "tick now" : "tick", x, y: placed.floor + 17 }, at));
    }
    const said = model.events.get(at)?.find((event) => event.kind === "statement" || event.kind === "failed");
    if (said && placed.labelled) {
      nodes.push(svg("text", { class: "speaker", x, y: placed.floor + 33 }, cut(said.speaker, (span * placed.pitch) / 6.2)));
    }
    if (said?.kind === "failed") nodes.push(svg("path", { class: "gap", d: `M${x - 5} ${placed.floor - 5}l10 10m0 -10l-10 10` }));
  });
  return svg("g", { class: "axis", "aria-hidden": "true" }, nodes);
}

function cut(text, most) {
  const whole = [...text];
  return whole.length <= most ? text : `${whole.slice(0, Math.max(1, Math.floor(most) - 1)).join("")}\u2026`;
}

function mark(model, placed, item, view, near) {
  const { turn, selected, lit, focused } = view;
  const r = placed.r;
  const classes = ["mark"];
  let shape, label, name, described;
  if (item.record) {
    const version = versionAt(item.record, turn);
    const look = lookOf(version);
    classes.push(`look-${look}`);
    shape = markShape(look, version[STANDING], r);
    if (version[DISPUTED]) shape.push(svg("text", { class: "disputed", x: r + 1, y: -r + 2 }, "?"));
    name = item.record.id;
    label = placed.labelled;
    described = `${name}, ${item.record.kind}, ${describe(version)}, turn ${item.record.turn}: ${item.record.claim}`;
    if (lit !== null) {
      if (lit.withdrawn.has(item.record.place)) classes.push("withdrawn");
      else classes.push(lit.standing.has(item.record.place) ? "falls" : "dim");
    } else if (near !== null && !near.has(item.record.place)) classes.push("dim");
  } else if (item.problem) {
    const open = isOpen(model, item.problem, turn);
    classes.push("problem", open ? "open" : "closed");
    shape = problemShape(open, r);
    name = item.problem.id;
    label = placed.labelled;
    described = `Question ${name}, ${open ? "open" : "answered"}, turn ${item.turn}: ${item.problem.text}`;
    if (lit !== null || near !== null) classes.push("dim");
  } else {
    const outcome = OUTCOMES[item.verdict.outcome];
    const alarmed = alertOf(item.event, item.verdict) !== undefined;
    classes.push("check", outcome.look);
    shape = [svg("rect", { class: "plate", x: -r - 1, y: -r - 1, width: 2 * r + 2, height: 2 * r + 2, rx: r + 1 }), svg("text", { class: "sign", y: r * 0.55, "font-size": r * 1.7 }, outcome.mark)];
    if (alarmed) shape.push(svg("path", { class: "alarm", d: `M${r + 3} ${-r - 7}l5 9h-10z` }));
    name = "";
    described = `Check, ${words(item.verdict.outcome)}${alarmed ? ", alert" : ""}, turn ${item.turn}: ${item.verdict.claim ?? item.verdict.records.join(", ")}`;
    if (lit !== null || near !== null) classes.push("dim");
  }
  const chosen = selected !== null && sameItem(selected, item);
  if (chosen) classes.push("selected");
  const named = name && (label || chosen || classes.includes("withdrawn") || (classes.includes("falls") && lit.standing.size <= 40));
  if (named) shape.push(svg("text", { class: "label", y: r + 13 }, cut(name, label && !chosen ? item.room : 24)));
  const key = keyOf(item);
  return svg("g", {
    class: classes.join(" "), transform: `translate(${item.x} ${item.y})`, "data-key": key, role: "button",
    tabindex: key === focused ? 0 : -1, "aria-label": described, "aria-pressed": chosen ? "true" : "false",
  }, svg("rect", { class: "area", x: -Math.max(r + 3, Math.min(12, placed.pitch / 2)), y: -Math.max(r + 3, 10), width: 2 * Math.max(r + 3, Math.min(12, placed.pitch / 2)), height: 2 * Math.max(r + 3, 10) + (label ? 10 : 0) }), svg("circle", { class: "halo", r: r + 4 }), shape);
}

function keyOf(item) {
  if (item.record) return `r${item.record.place}`;
  if (item.problem) return `q${item.problem.id}`;
  return `e${item.event.sequence}.${item.event.verdicts.indexOf(item.verdict)}`;
}

function sameItem(one, other) {
  return keyOf(one) === keyOf(other);
}

// "resolved, ungrounded": the standing, and what is wrong although it stands.
function describe(version) {
  const parts = [version[STANDING]];
  if (stands(version) && version[GRADE] !== "grounded") parts.push(words(version[GRADE]));
  if (version[DISPUTED]) parts.push("disputed");
  return parts.join(", ");
}
