// The same in words: every record after the turn as a table, for whoever reads rather than looks.

const PAGE_ROWS = 50;
const FILTERS = [
  ["all", "All records", () => true],
  ["standing", "In good standing", (version) => stands(version)],
  ["sound", "Grounded", (version) => stands(version) && version[GRADE] === "grounded"],
  ["unsound", "Standing, not grounded", (version) => stands(version) && version[GRADE] !== "grounded"],
  ["fallen", "Weakened or abandoned", (version) => !stands(version)],
];

function openList(section, model, actions) {
  const state = { filter: "all", query: "", page: 0 };
  const title = html("h2", { id: "list-title" }, "Records in words");
  const count = html("p", { id: "list-count", class: "none" });
  const search = html("input", { type: "search", id: "search", placeholder: "Search id, claim or speaker", "aria-label": "Search id, claim or speaker", autocomplete: "off", on: { input: () => { state.query = search.value.trim().toLowerCase(); state.page = 0; refresh(); } } });
  const filter = html("select", { id: "filter", "aria-label": "Which records", on: { change: () => { state.filter = filter.value; state.page = 0; refresh(); } } }, FILTERS.map(([value, name]) => html("option", { value }, name)));
  const body = html("tbody");
  const head = html("tr", {}, ["Record", "Claim", "State", "Rests on", "Said"].map((name) => html("th", { scope: "col" }, name)));
  const caption = html("caption", { class: "hidden" });
  const pager = html("div", { class: "pager" });
  section.replaceChildren(html("div", { class: "list-head" }, title, html("div", { class: "filters" }, search, filter)), count, html("div", { class: "table" }, html("table", { id: "table" }, caption, html("thead", {}, head), body)), pager);
  let view = null;

  function refresh() {
    const { turn, selected, lit } = view;
    const passes = FILTERS.find(([value]) => value === state.filter)[2];
    const rows = [];
    for (const record of model().records) {
      const version = versionAt(record, turn);
      if (version === null || !passes(version)) continue;
      if (state.query && !`${record.id} ${record.claim} ${record.speaker}`.toLowerCase().includes(state.query)) continue;
      rows.push([record, version]);
    }
    const pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
    state.page = Math.min(state.page, pages - 1);
    const shown = rows.slice(state.page * PAGE_ROWS, (state.page + 1) * PAGE_ROWS);
    caption.textContent = `Records after turn ${turn}`;
    const isEmpty = !model().records.some((record) => record.turn <= turn);
    count.textContent = rows.length === 0 ? `${isEmpty ? "No record yet" : "No such record"} after turn ${turn}.` : `${counted(rows.length, "record")} after turn ${turn}`;
    body.replaceChildren(...shown.map(([record, version]) => row(record, version, turn, selected, lit)));
    const step = (by, name, disabled) => html("button", { type: "button", class: "quiet", disabled, on: { click: () => { state.page += by; refresh(); section.scrollIntoView({ block: "start" }); } } }, name);
    pager.replaceChildren(...(pages > 1 ? [step(-1, "Earlier", state.page === 0), html("span", {}, `Page ${state.page + 1} of ${pages}`), step(1, "Later", state.page === pages - 1)] : []));
  }

  function row(record, version, turn, selected, lit) {
    const links = record.links.filter(([, , since]) => since <= turn);
    const named = links.slice(0, 6).map(([place, kind], at) => [at > 0 && ", ", model().records[place].id, kind !== "premise" && ` (${kind})`]);
    const falls = lit !== null && lit.standing.has(record.place);
    return html("tr", { class: [selected?.record === record && "selected", falls && "falls"].filter(Boolean).join(" ") || null, "data-record": record.id },
      html("th", { scope: "row" }, html("button", { type: "button", class: "ref", on: { click: () => actions.select({ record }) } }, glyph(lookOf(version), version[STANDING]), record.id), html("span", { class: "kind" }, record.kind)),
      html("td", { class: "claim" }, record.claim),
      html("td", {}, describe(version), falls && html("span", { class: "tag" }, "would lose support"), lit?.withdrawn.has(record.place) && html("span", { class: "tag" }, "withdrawn")),
      html("td", { class: "ids" }, links.length === 0 ? "\u2013" : named, links.length > 6 && ` and ${links.length - 6} more`),
      html("td", { class: "nowrap" }, record.speaker, html("span", { class: "kind" }, `turn ${record.turn}`)));
  }

  return (next) => { view = next; refresh(); };
}
