// The page: what is looked at, and what a click, a key or news from a running conversation does.

const view = { turn: 0, selected: null, lit: null, focused: null };
let model, layout, placed, pitch, showList;

const actions = {
  goTo(turn) {
    view.turn = Math.max(0, Math.min(model.turns, turn));
    relight();
    refresh({ follow: true });
  },
  select(item) {
    view.selected = item === null ? null : find(item);
    if (view.selected !== null && view.selected.turn > view.turn) view.turn = view.selected.turn;
    if (view.selected !== null) view.focused = keyOf(view.selected);
    refresh({ follow: false });
    if (view.selected !== null) {
      bringIntoSight(view.selected);
      say(`${byName("record-title").textContent} selected`);
    }
  },
  withdraw(record) {
    const withdrawn = new Set(view.lit?.withdrawn ?? []);
    if (!withdrawn.delete(record.place)) withdrawn.add(record.place);
    light(withdrawn);
    refresh({});
    if (view.lit !== null) {
      say(whatIfSentence(view.lit, view.turn));
      byName("whatif").scrollIntoView({ block: "nearest" });
    }
    byName("ask")?.focus({ preventScroll: true });
  },
  leaveWhatIf() {
    light(new Set());
    refresh({});
    byName("ask")?.focus({ preventScroll: true });
  },
};

function find(item) {
  return placed.at.get(item.record ?? item.problem) ?? item;
}

function light(withdrawn) {
  const there = new Set([...withdrawn].filter((place) => versionAt(model.records[place], view.turn) !== null));
  if (there.size === 0) {
    view.lit = null;
    return;
  }
  const report = affected(model, there, view.turn);
  const places = (ids) => new Set(ids.map((id) => model.byId.get(id).place));
  view.lit = { withdrawn: there, report, places: places(report.transitive), standing: places(report.in_good_standing) };
}

function relight() {
  if (view.lit !== null) light(view.lit.withdrawn);
}

function say(text) {
  byName("announce").textContent = text;
}

// -- drawing ----------------------------------------------------------------------------------

function refresh({ follow }) {
  const { turn } = view;
  const slider = byName("turn");
  slider.value = turn;
  slider.setAttribute("aria-valuetext", `turn ${turn} of ${model.turns}`);
  byName("now").replaceChildren(html("b", {}, turn), html("span", {}, ` / ${number.format(model.turns)}`));
  byName("back").disabled = turn === 0;
  byName("forth").disabled = turn === model.turns;
  if (follow) bringTurnIntoSight();
  draw();
  drawLegend();
  drawOverview();
  fillWhatIf(byName("whatif"), model, actions, view);
  fillRecord(byName("record"), model, actions, view);
  fillHappened(byName("happened"), model, actions, turn);
  showList(view);
}

function draw() {
  const scroller = byName("scroller");
  const left = scroller.scrollLeft;
  const holder = byName("map");
  const focus = holder.contains(document.activeElement);
  const seen = placed.items.filter((item) => item.turn <= view.turn);
  if (!seen.some((item) => keyOf(item) === view.focused)) view.focused = seen.length ? keyOf(seen[seen.length - 1]) : null;
  holder.replaceChildren(...drawMap(model, placed, layout, view, left, left + scroller.clientWidth));
  if (focus) focusMark();
}

function focusMark() {
  byName("map").querySelector('[tabindex="0"]')?.focus({ preventScroll: true });
}

function drawLegend() {
  const counts = countLooks(model, view.turn);
  byName("legend").replaceChildren(...LOOKS.filter((look) => counts[look] > 0 || look === "active" || look === "ungrounded").map((look) =>
    html("li", { class: counts[look] === 0 ? "zero" : null }, glyph(look), html("b", {}, number.format(counts[look])), ` ${LOOK_NAMES[look]}`)));
}

// What the lines between the marks say.
function drawTies() {
  const sample = (kind, tone) => svg("svg", { viewBox: "0 0 30 10", width: 30, height: 10 }, svg("path", { class: `link ${kind} ${tone}`, d: "M1 5H29" }));
  byName("ties").replaceChildren(...[["premise", "rests on"], ["corroboration", "corroborated by"], ["subsumption", "subsumed under"], ["attack", "attacked by"]].map(([kind, name]) => html("li", {}, sample(kind, kind === "attack" ? "against" : "sample"), name)));
}

// How many records each turn brought, and how they stand; the lit ones stand out.
function drawOverview() {
  const canvas = byName("overview");
  const width = canvas.clientWidth, height = canvas.clientHeight, ratio = window.devicePixelRatio || 1;
  if (width === 0) return;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const bars = Math.min(model.turns + 1, Math.floor(width / 4));
  const tally = Array.from({ length: bars }, () => [0, 0, 0, 0, 0]); // sound, not, fallen, to come, lit
  const barOf = (turn) => Math.round((turn / Math.max(1, model.turns)) * (bars - 1));
  for (const record of model.records) {
    const version = versionAt(record, view.turn);
    const bar = tally[barOf(record.turn)];
    if (version === null) bar[3] += 1;
    else if (view.lit !== null) bar[view.lit.standing.has(record.place) ? 4 : 3] += 1;
    else bar[!stands(version) ? 2 : version[GRADE] === "grounded" ? 0 : 1] += 1;
  }
  const most = Math.max(1, ...tally.map((bar) => bar.reduce((sum, each) => sum + each)));
  const inner = width - 18, wide = Math.max(1.5, Math.min(14, inner / Math.max(1, bars - 1) - 1.5));
  const colours = ["--overview", "--ungrounded", "--abandoned", "--overview-later", "--falls"].map(colour);
  tally.forEach((bar, at) => {
    const x = 9 + (bars === 1 ? 0 : (at / (bars - 1)) * inner) - wide / 2;
    let y = height;
    bar.forEach((count, kind) => {
      const tall = (count / most) * (height - 2);
      if (count > 0) {
        pen.fillStyle = colours[kind];
        if (kind === 4) pen.fillRect(x, 0, wide, height);
        else pen.fillRect(x, y - tall, wide, tall - (tall > 3 ? 0.5 : 0));
      }
      y -= tall;
    });
  });
  const scroller = byName("scroller");
  if (placed.width > scroller.clientWidth + 1) {
    const turnAt = (x) => layout.first + placed.starts.findLastIndex((start) => start <= Math.max(x, placed.starts[0]));
    const from = 9 + (turnAt(scroller.scrollLeft) / model.turns) * inner;
    const to = 9 + (Math.min(model.turns, turnAt(scroller.scrollLeft + scroller.clientWidth)) / model.turns) * inner;
    pen.fillStyle = colour("--ink");
    pen.fillRect(from - 3, height - 1.5, Math.max(6, to - from + 6), 1.5);
    pen.globalAlpha = 0.1;
    pen.fillRect(from - 3, 0, Math.max(6, to - from + 6), height);
    pen.globalAlpha = 1;
  }
  const alarms = new Set();
  for (const event of model.data.events) {
    if (event.turn <= view.turn && event.alerts && view.lit === null) alarms.add(barOf(event.turn));
  }
  if (alarms.size <= bars / 3) {
    for (const bar of alarms) {
      pen.fillStyle = colour("--alarm");
      const x = 9 + (bars === 1 ? 0 : bar / (bars - 1)) * inner;
      pen.beginPath();
      pen.moveTo(x - 3.5, 0);
      pen.lineTo(x + 3.5, 0);
      pen.lineTo(x, 5);
      pen.fill();
    }
  }
}

function arrange(chosen) {
  const scroller = byName("scroller");
  layout = layOut(model, scroller.clientWidth);
  pitch = chosen ?? layout.pitch;
  placed = place(model, layout, pitch);
  const holder = byName("map");
  holder.setAttribute("width", Math.max(placed.width, 1));
  holder.setAttribute("height", placed.height);
  byName("lanes").replaceChildren(...placed.lanes.map((lane) => {
    const label = html("span", {}, lane.name);
    label.style.top = `${lane.y}px`;
    label.style.height = `${lane.height}px`;
    return label;
  }));
  byName("lanes").style.height = `${placed.height}px`;
  const nothing = model.records.length === 0;
  byName("stage").hidden = nothing && placed.items.length === 0;
  byName("empty").hidden = !nothing;
  byName("empty").textContent = model.turns === 0 ? "Nothing was said in this conversation yet." : "Nothing that was said in this conversation made a record.";
  if (view.selected !== null) view.selected = find(view.selected);
}

// What came before is what one wants to see beside a turn, so it stands on the right.
function bringTurnIntoSight() {
  const scroller = byName("scroller");
  const width = scroller.clientWidth;
  const column = Math.max(0, view.turn - layout.first);
  const start = placed.starts[column] ?? 0, end = placed.starts[column + 1] ?? start;
  if (end > scroller.scrollLeft + width - 24 || start < scroller.scrollLeft + width * 0.4) scroller.scrollLeft = end - width * 0.84;
}

function bringIntoSight(item) {
  const scroller = byName("scroller");
  if (item.x === undefined) return;
  if (item.x < scroller.scrollLeft + 24 || item.x > scroller.scrollLeft + scroller.clientWidth - 24) {
    scroller.scrollLeft = item.x - scroller.clientWidth / 2;
    draw();
  }
}

// -- what people do ---------------------------------------------------------------------------

function listen() {
  byName("turn").addEventListener("input", (event) => actions.goTo(Number(event.target.value)));
  byName("turn").addEventListener("change", () => say(stateInWords()));
  byName("back").addEventListener("click", () => { actions.goTo(view.turn - 1); say(stateInWords()); });
  byName("forth").addEventListener("click", () => { actions.goTo(view.turn + 1); say(stateInWords()); });
  byName("narrower").addEventListener("click", () => zoom(-1));
  byName("wider").addEventListener("click", () => zoom(1));
  let waiting = false;
  byName("scroller").addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); drawOverview(); });
  }, { passive: true });
  byName("map").addEventListener("click", clicked);
  byName("map").addEventListener("keydown", pressed);
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (view.lit !== null) actions.leaveWhatIf();
    else if (view.selected !== null) actions.select(null);
  });
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return; // a phone's bars come and go
    width = window.innerWidth;
    arrange(null);
    refresh({ follow: true });
  });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawOverview);
}

function zoom(by) {
  const wider = PITCHES.filter((each) => (by > 0 ? each > pitch : each < pitch));
  if (wider.length === 0) return;
  arrange(by > 0 ? wider[0] : wider[wider.length - 1]);
  refresh({ follow: true });
}

function itemOf(key) {
  return placed.items.find((item) => keyOf(item) === key);
}

function clicked(event) {
  const target = event.target.closest("[data-key]");
  if (target !== null) {
    const item = itemOf(target.dataset.key);
    const again = view.selected !== null && sameItem(view.selected, item);
    actions.select(again ? null : item);
    focusMark();
    return;
  }
  const x = event.clientX - byName("map").getBoundingClientRect().left;
  const column = placed.starts.findLastIndex((start) => start <= x);
  actions.goTo(Math.min(model.turns, column + layout.first));
}

function pressed(event) {
  const target = event.target.closest("[data-key]");
  if (target === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const item = itemOf(target.dataset.key);
  if (event.key === "Enter" || event.key === " ") actions.select(item);
  else if (event.key.toLowerCase() === "w" && item.record) {
    actions.select(item);
    actions.withdraw(item.record);
  } else {
    const next = neighbour(item, event.key);
    if (next === null) return;
    view.focused = keyOf(next);
    bringIntoSight(next);
    draw();
  }
  event.preventDefault();
  focusMark();
}

// Up and down go through a turn's marks, left and right to the nearest mark of another turn.
function neighbour(item, key) {
  const seen = placed.items.filter((each) => each.turn <= view.turn);
  const inTurn = seen.filter((each) => each.turn === item.turn).sort((a, b) => a.y - b.y || a.x - b.x);
  const at = inTurn.findIndex((each) => sameItem(each, item));
  if (key === "ArrowUp") return inTurn[at - 1] ?? null;
  if (key === "ArrowDown") return inTurn[at + 1] ?? null;
  if (key === "Home") return seen[0];
  if (key === "End") return seen[seen.length - 1];
  const side = { ArrowLeft: -1, ArrowRight: 1 }[key];
  if (side === undefined) return null;
  const turns = seen.map((each) => each.turn).filter((turn) => (turn - item.turn) * side > 0);
  if (turns.length === 0) return null;
  const turn = side > 0 ? Math.min(...turns) : Math.max(...turns);
  return seen.filter((each) => each.turn === turn).sort((a, b) => Math.abs(a.y - item.y) - Math.abs(b.y - item.y))[0];
}

function stateInWords() {
  const counts = countLooks(model, view.turn);
  const parts = LOOKS.filter((look) => counts[look] > 0).map((look) => `${counts[look]} ${LOOK_NAMES[look]}`);
  return `After turn ${view.turn}: ${parts.join(", ") || "no records"}`;
}

// -- beginning, and news ------------------------------------------------------------------------

function take(data) {
  const before = view.selected, following = model === undefined || view.turn === model.turns;
  model = openModel(data);
  byName("name").textContent = data.conversation;
  const people = [...new Set([...data.agents.map((agent) => agent.id), ...data.events.map((event) => event.speaker)])];
  const days = [...new Set(data.events.map((event) => calendarDay(event.at)))];
  const when = days.length === 0 ? "" : days.length === 1 ? days[0] : `${days[0]} to ${days[days.length - 1]}`;
  const said = [`tenant ${data.tenant}`, counted(data.turns, "turn"), counted(model.records.length, "record"), people.length > 4 ? counted(people.length, "speaker") : people.join(", "), when];
  byName("about").replaceChildren(...said.filter(Boolean).flatMap((each, at) => [at > 0 ? "  \u00b7  " : "", html("span", {}, each)]));
  byName("turn").max = model.turns;
  byName("proof").replaceChildren("After event ", html("b", {}, data.sequence), ": state digest ", html("code", {}, data.state_digest), " log digest ", html("code", {}, data.digest));
  if (following) view.turn = model.turns;
  if (before?.record) view.selected = { record: model.byId.get(before.record.id) };
  else if (before?.problem) view.selected = { problem: model.problems.get(before.problem.id) };
  else view.selected = null;
  arrange(null);
  relight();
  refresh({ follow: following });
}

function begin() {
  byName("main").hidden = false;
  showList = openList(byName("records"), () => model, actions);
  take(JSON.parse(byName("data").textContent));
  byName("data").remove();
  listen();
  drawTies();
  const address = document.body.dataset.live;
  if (address) follow(address);
}

// A running conversation says when there is more; what there is comes as data, as in the file.
function follow(address) {
  const shown = byName("live");
  const state = (text, tone) => {
    shown.hidden = false;
    shown.className = `live ${tone}`;
    shown.textContent = text;
  };
  const source = new EventSource(`${address}/events?after=${model.data.sequence}`);
  source.addEventListener("open", () => state("live", "on"));
  source.addEventListener("error", () => state("waiting for the server", "off"));
  source.addEventListener("grown", async () => {
    const answer = await fetch(`${address}/report`, { headers: { Accept: "application/json" } });
    if (!answer.ok) return state("waiting for the server", "off");
    take(await answer.json());
    state("live", "on");
  });
}

begin();
