// SPDX-License-Identifier: MIT
// Memory of a plan: the live bytes over the steps, tensors as boxes in their slabs, and the largest of them.
"use strict";

const WIDE = 1000, TOP = 22;

function memoryPicture(memory, height, what) {
  const steps = Math.max(1, list(memory.steps).length), x = (step) => WIDE * Math.max(0, step) / steps;
  const svg = make("svg", {class: "map", viewBox: `0 0 ${WIDE} ${TOP + height + 20}`, role: "img", "aria-label": what}, make("text", {x: 0, y: 13, text: what}));
  let last = null;
  list(memory.steps).forEach((step, i) => {
    if (step.phase === last) return;
    last = step.phase;
    svg.append(make("line", {class: "axis", x1: x(i), x2: x(i), y1: TOP, y2: TOP + height + 16}), make("text", {class: "soft", x: x(i) + 4, y: TOP + height + 14, text: step.phase}));
  });
  return {svg, x};
}

function drawMemory() {
  const memory = report.memory;
  if (!memory || list(memory.steps).length === 0) return;
  const element = section("memory", "Memory");
  const entries = list(memory.entries), again = entries.filter((entry) => entry.kind === "recomputed");
  const most = Math.max(1, memory.peak, ...memory.steps.map((step) => step.bytes));
  element.append(make("p", {text: `Planned peak ${bytes(memory.peak)}, of which ${bytes(memory.persistent)} stay from step to step; the limit is ${bytes(memory.limit)}. ` +
    (again.length > 0 ? `${again.length} ${again.length === 1 ? "tensor" : "tensors"}, ${bytes(again.reduce((sum, entry) => sum + entry.bytes, 0))} in sum, recomputed in backward. ` : "") +
    (memory.setup_peak > memory.peak ? `${bytes(memory.setup_peak)} while parameters are packed. ` : "") + "Point at a box for its tensor, and at the curve for its step."}));
  const height = 150, {svg, x} = memoryPicture(memory, height, `live bytes over the launches of a step, up to ${bytes(most)}`);
  const y = (value) => TOP + height * (1 - value / most);
  const line = memory.steps.map((step, i) => `${x(i).toFixed(2)},${y(step.bytes).toFixed(2)} ${x(i + 1).toFixed(2)},${y(step.bytes).toFixed(2)}`).join(" ");
  svg.append(make("polygon", {class: "area", points: `0,${TOP + height} ${line} ${WIDE},${TOP + height}`}), make("polyline", {class: "live", points: line}));
  memory.steps.forEach((step, i) => {
    const bar = make("rect", {class: "step", x: x(i), y: TOP, width: x(1) - x(0), height});
    explain(bar, `step ${i}, ${step.phase}: [${step.type}] ${step.name}\n${bytes(step.bytes)} live`);
    svg.append(bar);
  });
  element.append(svg);
  list(memory.slabs).forEach((size, slab) => {
    const tall = 340, picture = memoryPicture(memory, tall, `slab ${slab}, ${bytes(size)}: tensors over the launches, by their place in it`);
    const scale = tall / Math.max(1, size);
    for (const entry of entries.filter((one) => one.slab === slab)) {
      const high = Math.max(0.4, entry.bytes * scale);
      const box = make("rect", {class: `m ${["workspace", "recomputed"].includes(entry.kind) ? entry.kind : "tensor"}`, x: picture.x(entry.first), y: TOP + tall - entry.offset * scale - high,
        width: picture.x(entry.last + 1) - picture.x(entry.first), height: high});
      explain(box, `${entry.name}\n${bytes(entry.bytes)}, ${entry.kind}, steps ${entry.first} to ${entry.last}`);
      picture.svg.append(box);
    }
    element.append(picture.svg);
  });
  const details = make("details", {}, make("summary", {text: "The largest"}), make("div", {class: "scroll"},
    table(["name", "kind", "size", "steps"], entries.slice(0, 40).map((entry) => [entry.name, entry.kind, bytes(entry.bytes), `${entry.first} to ${entry.last}`]))));
  element.append(make("div", {class: "row"}, make("span", {class: "legend"}, make("i", {style: "background: var(--s0)"}), "tensor"),
    make("span", {class: "legend"}, make("i", {style: "background: var(--s4)"}), "workspace"),
    ...(again.length > 0 ? [make("span", {class: "legend"}, make("i", {style: "background: var(--s2)"}), "recomputed")] : [])), details);
}
