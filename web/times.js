// SPDX-License-Identifier: MIT
// Time by node and type of one step, and each node below the device's roofline.
"use strict";

const nodes = list(report.nodes);
const timed = nodes.filter((node) => node.ms > 0);

function sums(key) {
  const all = new Map();
  for (const node of timed) {
    const sum = all.get(key(node)) ?? {ms: 0, bound: 0, count: 0, parts: {}};
    sum.ms += node.ms;
    sum.bound += node.bound_ms ?? 0;
    sum.count += 1;
    sum.parts[node.part] = (sum.parts[node.part] ?? 0) + node.ms;
    all.set(key(node), sum);
  }
  return [...all].sort((a, b) => b[1].ms - a[1].ms);
}

function drawTimes() {
  if (timed.length === 0) return;
  const element = section("times", "Time by operator");
  const total = timed.reduce((sum, node) => sum + node.ms, 0);
  const parts = [...new Set(timed.map((node) => node.part))];
  element.append(make("p", {text: `One ${parts.length > 1 ? "step" : "batch"} with every launch timed takes ${number(total, 4)} ms. Without timing, launches may overlap or be joined.`}));
  const types = sums((node) => node.type), shown = types.slice(0, 14);
  if (types.length > shown.length) {
    const rest = types.slice(14).reduce((sum, [, one]) => { for (const part of parts) sum[part] = (sum[part] ?? 0) + (one.parts[part] ?? 0); return sum; }, {});
    shown.push([`${types.length - 14} more`, {parts: rest}]);
  }
  const bars = chart("By type", () => ({
    type: "bar",
    data: {labels: shown.map(([name]) => name), datasets: parts.map((part, i) => ({label: part, data: shown.map(([, sum]) => sum.parts[part] ?? 0), backgroundColor: colour(i)}))},
    options: {indexAxis: "y", scales: {x: axis("ms", {stacked: true}), y: {stacked: true, grid: {display: false}, ticks: {autoSkip: false}}}, interaction: {mode: "index", axis: "y", intersect: false},
      plugins: {tooltip: {callbacks: {label: (item) => ` ${item.dataset.label}: ${number(item.parsed.x, 3)} ms, ${percent(item.parsed.x / total)}`}}, legend: {display: parts.length > 1}}},
  }));
  const parted = parts.length > 1 ? make("div", {class: "row"}, parts.map((part) => {
    const ms = timed.filter((node) => node.part === part).reduce((sum, node) => sum + node.ms, 0);
    return make("span", {text: `${part} ${number(ms, 3)} ms (${percent(ms / total)})`});
  })) : "";
  element.append(parted, bars);
  bars.querySelector("div").style.height = `${Math.max(160, 60 + 26 * shown.length)}px`;
  let all = false;
  const sorted = [...timed].sort((a, b) => b.ms - a.ms), few = 15;
  const box = make("div", {class: "scroll"});
  const more = make("button", {type: "button", text: `all ${sorted.length} nodes`, onclick: () => { all = true; fill(); }});
  const fill = () => {
    box.replaceChildren(table(["node", "type", "part", "engine", "ms", "share", "GFLOP/s", "GB/s", "of bound"], (all ? sorted : sorted.slice(0, few)).map((node) =>
      [node.name, node.type, node.part, node.engine || "–", Number(node.ms.toPrecision(3)), percent(node.ms / total), node.gflop > 0 ? number(1e3 * node.gflop / node.ms, 3) : "–",
        node.gbytes > 0 ? number(1e3 * node.gbytes / node.ms, 3) : "–", node.bound_ms > 0 ? percent(node.bound_ms / node.ms) : "–"])));
    more.hidden = all || sorted.length <= few;
  };
  fill();
  element.append(make("h3", {text: "The longest nodes"}), box, more);
  drawRoofline(total);
}

/** Each node's speed over its operations per byte, on logarithmic axes, below what the device can do. */
function drawRoofline(total) {
  const peaks = report.peaks ?? {};
  if (!(peaks.gflops > 0) || !(peaks.gbytes_per_s > 0)) return;
  const known = timed.filter((node) => node.gflop > 0 && node.gbytes > 0);
  if (known.length === 0) return;
  const element = section("roofline", "Roofline");
  const busy = known.reduce((sum, node) => sum + node.ms, 0);
  const ridge = peaks.gflops / peaks.gbytes_per_s;
  element.append(make("p", {text: `The device is estimated to do ${number(peaks.gflops, 3)} GFLOP/s and to move ${number(peaks.gbytes_per_s, 3)} GB/s. A node on the slanted line is limited by memory, ` +
    `one on the level line by arithmetic; the larger a point, the more time it takes. Shown are the nodes with arithmetic, ${percent(busy / total)} of the time.`}));
  const types = [...new Set(known.map((node) => node.type))].map((type) => [type, known.filter((node) => node.type === type).reduce((sum, node) => sum + node.ms, 0)])
    .sort((a, b) => b[1] - a[1]).map(([type]) => type);
  const top = types.slice(0, 6), styles = ["circle", "rect", "triangle", "rectRot", "star", "crossRot", "circle"];
  const datasets = () => [...top, ...(types.length > 6 ? ["other"] : [])].map((type, i) => ({
    label: type, backgroundColor: `${colour(i)}b0`, borderColor: colour(i), pointStyle: styles[i],
    data: known.filter((node) => (type === "other" ? !top.includes(node.type) : node.type === type))
      .map((node) => ({x: node.gflop / node.gbytes, y: 1e3 * node.gflop / node.ms, node})),
    pointRadius: (context) => (context.raw ? 4 + 14 * Math.sqrt(context.raw.node.ms / total) : 4), pointHoverRadius: (context) => (context.raw ? 6 + 14 * Math.sqrt(context.raw.node.ms / total) : 6),
  }));
  const x = known.map((node) => node.gflop / node.gbytes), y = known.map((node) => 1e3 * node.gflop / node.ms);
  const below = (values) => 10 ** Math.floor(Math.log10(Math.min(...values)) - 0.05), above = (values) => 10 ** Math.ceil(Math.log10(Math.max(...values)) + 0.05);
  const left = below([...x, ridge]), right = above([...x, ridge]);
  const ticks = {callback: (value) => (Number.isInteger(Math.round(Math.log10(value) * 1e6) / 1e6) ? number(value, 2) : "")};
  element.append(chart("Nodes below the device's roofline", () => ({
    type: "scatter",
    data: {datasets: [...datasets(), {label: "roofline", type: "line", data: [{x: left, y: left * peaks.gbytes_per_s}, {x: ridge, y: peaks.gflops}, {x: right, y: peaks.gflops}],
      borderColor: css("--soft"), borderWidth: 2, pointRadius: 0, pointHitRadius: 0, pointStyle: "line"}]},
    options: {
      scales: {x: axis("FLOP per byte", {type: "logarithmic", min: left, max: right, ticks}), y: axis("GFLOP/s", {type: "logarithmic", min: below([...y, left * peaks.gbytes_per_s]), max: above([peaks.gflops, ...y]), ticks})},
      plugins: {legend: {labels: {usePointStyle: true}}, tooltip: {filter: (item) => Boolean(item.raw.node), callbacks: {label: ({raw}) => [`${raw.node.name} [${raw.node.type}] ${raw.node.part}`,
        `${number(raw.y, 3)} GFLOP/s, ${number(raw.x, 3)} FLOP per byte`, `${number(raw.node.ms, 3)} ms, ${percent(raw.node.bound_ms / raw.node.ms)} of its bound`, raw.node.engine]}}},
    },
  }), true));
}
