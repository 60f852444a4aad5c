// SPDX-License-Identifier: MIT
// What the parts of a report share: its data, elements, numbers as text, sections, the box at the pointer. Text of the data
// becomes text nodes and attributes, never markup.
"use strict";

const report = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

/** An element with attributes and children; a child that is text becomes a text node. */
function make(tag, attributes = {}, ...children) {
  const svg = make.svgTags.has(tag);
  const element = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "text") element.textContent = String(value);
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children.flat()) if (child !== null && child !== undefined) element.append(child);
  return element;
}
make.svgTags = new Set(["svg", "g", "rect", "path", "line", "text", "polygon", "polyline", "circle"]);

/** Sections in the order of the page; each adds itself if the data has something for it. */
const sections = [];
function section(id, title) {
  const element = make("section", {id}, make("h2", {text: title}));
  document.querySelector("main").append(element);
  sections.push([id, title]);
  return element;
}

function list(value) { return Array.isArray(value) ? value : []; }
function has(value) { return typeof value === "number" && Number.isFinite(value); }

/** A number with about so many significant digits. */
function number(value, digits = 4) {
  if (!has(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (Number.isInteger(value) && size < 1e15) return value.toLocaleString("en-US").replaceAll(",", "\u202f");
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.max(0, digits - 2)).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(digits)));
}
function bytes(value) {
  if (!has(value)) return "–";
  for (const [unit, size] of [["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 1024]])
    if (value >= size) return `${(value / size).toFixed(value / size < 10 ? 2 : 1)} ${unit}`;
  return `${value} B`;
}
function duration(seconds) {
  if (!has(seconds)) return "–";
  if (seconds < 1) return `${number(1000 * seconds, 3)} ms`;
  if (seconds < 60) return `${number(seconds, 3)} s`;
  const whole = Math.round(seconds), two = (n) => String(n).padStart(2, "0");
  return whole < 3600 ? `${Math.floor(whole / 60)}:${two(whole % 60)} min` : `${Math.floor(whole / 3600)}:${two(Math.floor(whole / 60) % 60)} h`;
}
function percent(value) { return has(value) ? `${(100 * value).toFixed(value >= 0.9995 || value < 0.1 ? (value >= 1 ? 0 : 2) : 1)} %` : "–"; }
/** A column of metrics.csv as a person writes it: "mean IoU". */
function spoken(name) { return String(name).replaceAll("_", " ").replace(/\biou\b/, "IoU").replace(/^f1$/, "F1"); }
function shape(dims) { return list(dims).join("×") || "1"; }

/** Rows of cells; a number is set to the right. */
function table(head, rows, classes = () => null) {
  const cell = (tag, value) => make(tag, {class: typeof value === "number" || /^[-–\d.][\d.,e\u202f %+-]*$/.test(value) ? "n" : null,
    text: typeof value === "number" ? number(value) : value});
  const numeric = head.map((_, i) => rows.length > 0 && typeof rows[0][i] === "number");
  return make("table", {},
    make("thead", {}, make("tr", {}, head.map((text, i) => make("th", {text, scope: "col", class: numeric[i] ? "n" : null})))),
    make("tbody", {}, rows.map((row, i) => make("tr", {class: classes(i)}, row.map((value) => cell("td", value ?? "–"))))));
}

/** Shows a text at the pointer, or at an element with the focus. */
const hover = make("div", {id: "hover", role: "tooltip"});
function explain(element, text) {
  const at = (x, y) => {
    hover.textContent = typeof text === "function" ? text() : text;
    hover.style.display = "block";
    const box = hover.getBoundingClientRect();
    hover.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - box.width - 8))}px`;
    hover.style.top = `${y + 18 + box.height > innerHeight ? Math.max(4, y - box.height - 10) : y + 18}px`;
  };
  element.addEventListener("pointermove", (event) => at(event.clientX, event.clientY));
  element.addEventListener("pointerleave", () => { hover.style.display = "none"; });
  element.addEventListener("focus", () => { const box = element.getBoundingClientRect(); at(box.left, box.bottom - 14); });
  element.addEventListener("blur", () => { hover.style.display = "none"; });
}

/** What a reader has chosen, which outlives a reload of a page while training goes on. */
const kept = {
  get(key, otherwise) {
    try { return JSON.parse(sessionStorage.getItem(`${location.pathname}#${key}`)) ?? otherwise; } catch { return otherwise; }
  },
  set(key, value) {
    try { sessionStorage.setItem(`${location.pathname}#${key}`, JSON.stringify(value)); } catch { /* not kept, then */ }
  },
};
