// How things are put on the page: always as text or attributes, never as markup.

const SVG = "http://www.w3.org/2000/svg";

function put(node, ...children) {
  node.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function fillIn(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name === "on") for (const [kind, handler] of Object.entries(value)) node.addEventListener(kind, handler);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

function html(tag, attributes, ...children) {
  return fillIn(document.createElement(tag), attributes, children);
}

function svg(tag, attributes, ...children) {
  return fillIn(document.createElementNS(SVG, tag), attributes, children);
}

function byName(id) {
  return document.getElementById(id);
}

const number = new Intl.NumberFormat("en");

function counted(count, noun) {
  return `${number.format(count)} ${noun}${count === 1 ? "" : "s"}`;
}

const LOOK_NAMES = {
  active: "active",
  resolved: "resolved",
  shaken: "corroboration lost",
  ungrounded: "ungrounded",
  weakened: "weakened",
  abandoned: "abandoned",
};

// The shape says the standing, the filling says the grounding, the colour repeats it.
function markShape(look, standing, r) {
  const round = standing !== "resolved";
  const outline = round
    ? { tag: "circle", at: { r } }
    : { tag: "rect", at: { x: -r * 0.92, y: -r * 0.92, width: r * 1.84, height: r * 1.84, rx: r * 0.28 } };
  if (look === "weakened") {
    return [svg("path", { class: "hollow", d: `M${-r} ${-r * 0.75}H${r}L0 ${r}Z` })];
  }
  if (look === "abandoned") {
    const a = r * 0.8;
    return [svg("path", { class: "stroke", d: `M${-a} ${-a}L${a} ${a}M${a} ${-a}L${-a} ${a}` })];
  }
  if (look === "ungrounded") return [svg(outline.tag, { class: "hollow dashed", ...outline.at })];
  if (look === "shaken") {
    return [
      svg(outline.tag, { class: "hollow", ...outline.at }),
      svg("path", { class: "full", d: `M${-r} 0A${r} ${r} 0 0 0 ${r} 0Z` }),
    ];
  }
  return [svg(outline.tag, { class: "full", ...outline.at })];
}

function glyph(look, standing = look === "resolved" ? "resolved" : "active") {
  return svg("svg", { class: `glyph look-${look}`, viewBox: "-9 -9 18 18", "aria-hidden": "true" }, markShape(look, standing, 6.5));
}

function problemShape(open, r) {
  return [
    svg("path", { class: open ? "hollow" : "full", d: `M0 ${-r}L${r} 0L0 ${r}L${-r} 0Z` }),
  ];
}

const OUTCOMES = {
  grounded: { mark: "\u2713", look: "good" },
  ungrounded: { mark: "\u2715", look: "bad" },
  abstain: { mark: "?", look: "unsure" },
  pending: { mark: "\u2026", look: "unsure" },
  unverified: { mark: "\u2013", look: "unsure" },
  no_claims: { mark: "\u2013", look: "unsure" },
};

function words(name) {
  return String(name).replaceAll("_", " ");
}

function clockTime(at) {
  return at.slice(11, 16);
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function calendarDay(at) {
  return `${Number(at.slice(8, 10))} ${MONTHS[Number(at.slice(5, 7)) - 1]} ${at.slice(0, 4)}`;
}
