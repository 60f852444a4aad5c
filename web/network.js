// SPDX-License-Identifier: MIT
// The network as a picture: operators in layers from the top, with the shapes of what flows between them. Operators that
// follow each other alone and keep the shape, such as an activation after a convolution, share a box.
"use strict";

// The groups that operators declare: what the legend calls each, and its colour.
const KINDS = {
  convolution: ["convolutions", 0], product: ["products", 1], pooling: ["pooling, resizing, reductions", 2], normalisation: ["normalisation", 3],
  elementwise: ["elementwise", 4], movement: ["joining, moving", 5], loss: ["losses", 7], other: ["other", 6],
};
function kindOf(op) { return KINDS[op.group] ?? KINDS.other; }

/** Boxes of operators, [{operators, from}], where `from` are the boxes that feed it, and inputs of the network as boxes. */
function boxesOf(network) {
  const operators = list(network.operators), inputs = list(network.inputs);
  const boxes = inputs.map((tensor) => ({input: tensor, operators: [], from: []}));
  const uses = operators.map(() => 0);
  for (const op of operators) for (const tensor of list(op.inputs)) if (tensor.producer >= 0 && tensor.producer < uses.length) uses[tensor.producer] += 1;
  const where = [];
  operators.forEach((op, index) => {
    const sources = list(op.inputs).map((tensor) => (tensor.producer >= 0 ? where[tensor.producer] : boxes[inputs.findIndex((one) => one.name === tensor.name)])).filter((box) => box);
    const only = sources.length === 1 && list(op.inputs).length === 1 ? op.inputs[0] : null;
    const light = only && only.producer >= 0 && uses[only.producer] === 1 && sources[0].operators.length > 0 && sources[0].operators.length < 4 &&
      sources[0].operators.at(-1) === operators[only.producer] && (/norm|activation|dropout|prelu|hardtanh|abs|threshold|scale/i.test(op.type)) && op.params < 1e6;
    if (light) {
      sources[0].operators.push(op);
      where[index] = sources[0];
      return;
    }
    const box = {operators: [op], from: [...new Set(sources)], shapes: list(op.inputs)};
    boxes.push(box);
    where[index] = box;
  });
  return boxes;
}

/** Puts boxes into layers, and orders each layer so that few edges cross. Long edges get a place in each layer. */
function layersOf(boxes) {
  const layers = [];
  const put = (box, layer) => { box.layer = layer; (layers[layer] ??= []).push(box); };
  for (const box of boxes) box.layer = box.from.length === 0 ? 0 : 1 + Math.max(...box.from.map((from) => from.layer));
  // Inputs go right above what reads them first.
  for (const box of boxes) {
    if (!box.input) continue;
    const readers = boxes.filter((other) => other.from.includes(box));
    if (readers.length > 0) box.layer = Math.min(...readers.map((other) => other.layer)) - 1;
  }
  for (const box of boxes) put(box, box.layer);
  const edges = [];
  for (const box of boxes) {
    for (const from of box.from) {
      const path = [from];
      for (let layer = from.layer + 1; layer < box.layer; ++layer) {
        const place = {place: true, from: [path.at(-1)], operators: []};
        put(place, layer);
        path.push(place);
      }
      path.push(box);
      edges.push({path, shape: list(box.shapes).find((tensor) => (from.input ? tensor.name === from.input.name : from.operators.some((op) => list(op.outputs).some((out) => out.name === tensor.name))))});
    }
  }
  const next = new Map();
  for (const edge of edges) for (let i = 0; i + 1 < edge.path.length; ++i) {
    if (!next.has(edge.path[i])) next.set(edge.path[i], []);
    next.get(edge.path[i]).push(edge.path[i + 1]);
    if (!edge.path[i + 1].above) edge.path[i + 1].above = [];
    edge.path[i + 1].above.push(edge.path[i]);
  }
  for (const layer of layers) layer.forEach((box, i) => { box.order = i; });
  const sort = (layer, near) => {
    const mean = (box) => { const all = near(box) ?? []; return all.length === 0 ? box.order : all.reduce((sum, one) => sum + one.order, 0) / all.length; };
    const keys = new Map(layer.map((box) => [box, mean(box)]));
    layer.sort((a, b) => keys.get(a) - keys.get(b)).forEach((box, i) => { box.order = i; });
  };
  for (let sweep = 0; sweep < 3; ++sweep) {
    for (const layer of layers) sort(layer, (box) => box.above);
    for (const layer of [...layers].reverse()) sort(layer, (box) => next.get(box));
  }
  return {layers, edges};
}

const BOX = 232, LINE = 16, GAP = 34, PLACE = 18;

function drawNetwork() {
  const network = report.network;
  if (!network || list(network.operators).length === 0) return;
  const element = section("network", "Network");
  const gflop = network.operators.reduce((sum, op) => sum + (op.gflop ?? 0), 0);
  element.append(make("p", {text: `${number(network.operators.length + (network.left_out ?? 0))} operators, ${number(network.params)} parameters` +
    (network.trainable === network.params ? "" : `, of which ${number(network.trainable)} are trained`) + `, ${number(gflop, 3)} GFLOP forward. ` +
    "Shapes begin with the batch. Point at a box for its options." + (network.left_out > 0 ? ` The picture ends after ${network.operators.length}.` : "")}));
  const {layers, edges} = layersOf(boxesOf(network));
  const time = new Map(list(report.nodes).filter((node) => node.part === "forward").flatMap((node) => [node.name, ...list(node.fused)].map((name) => [name, node.ms])));
  const size = (box) => (box.place ? PLACE : BOX);
  const width = Math.max(...layers.map((layer) => layer.reduce((sum, box) => sum + size(box) + 16, 0)));
  const labels = (box) => (box.input ? [box.input.name] : box.operators.map((op) => op.name));
  let y = 8;
  for (const layer of layers) {
    const tall = Math.max(...layer.map((box) => (box.place ? 10 : 18 + LINE * (labels(box).length))));
    let x = (width - layer.reduce((sum, box) => sum + size(box) + 16, -16)) / 2;
    for (const box of layer) {
      Object.assign(box, {x, y, w: size(box), h: box.place ? tall : 18 + LINE * labels(box).length});
      x += box.w + 16;
    }
    y += tall + GAP;
  }
  const svg = make("svg", {width: Math.ceil(width + 16), height: Math.ceil(y), viewBox: `-8 0 ${Math.ceil(width + 16)} ${Math.ceil(y)}`, role: "img", "aria-label": "The network"});
  const shown = new Set(), flows = [];
  for (const {path, shape: tensor} of edges) {
    let way = "", at = [path[0].x + path[0].w / 2, path[0].y + path[0].h];
    for (const box of path.slice(1)) {
      const to = [box.x + box.w / 2, box.y], middle = (at[1] + to[1]) / 2;
      way += `M${at[0]} ${at[1]} C${at[0]} ${middle} ${to[0]} ${middle} ${to[0]} ${to[1]}`;
      if (box.place) way += `L${to[0]} ${box.y + box.h}`;
      at = [to[0], box.y + (box.place ? box.h : 0)];
    }
    svg.append(make("path", {class: "edge", d: way}));
    if (tensor && !shown.has(path[0])) {
      shown.add(path[0]);
      flows.push(make("text", {class: "soft flow", x: path[0].x + path[0].w / 2 + 7, y: path[0].y + path[0].h + 15, text: shape(tensor.shape)}));
    }
  }
  svg.append(...flows);
  const clip = (text) => (text.length > 29 ? `${text.slice(0, 14)}…${text.slice(-14)}` : text);
  for (const box of layers.flat().filter((one) => !one.place)) {
    const first = box.operators[0], kind = box.input ? 6 : kindOf(first)[1];
    const group = make("g", {tabindex: 0}, make("rect", {class: "box", x: box.x, y: box.y, width: box.w, height: box.h, rx: 7}),
      make("rect", {x: box.x, y: box.y, width: 5, height: box.h, rx: 2, style: `fill: var(--s${kind})`}));
    if (box.input) {
      group.append(make("text", {x: box.x + 13, y: box.y + 21, text: `${clip(box.input.name)} (input)`}));
    } else {
      box.operators.forEach((op, i) => group.append(make("text", {x: box.x + 13, y: box.y + 20 + LINE * i},
        make("tspan", {text: clip(op.name)}))));
      const types = box.operators.map((op) => op.type);
      types.forEach((type, i) => group.append(make("text", {class: "soft", "text-anchor": "end", x: box.x + box.w - 8, y: box.y + 20 + LINE * i,
        text: clip(box.operators[i].name).length + type.length < 33 ? type : ""})));
    }
    explain(group, box.input ? `input ${box.input.name}\n${shape(box.input.shape)} ${box.input.dtype ?? ""}`
      : box.operators.map((op) => [`${op.name} (${op.type}${op.frozen ? ", frozen" : ""})`, `${list(op.inputs).map((one) => shape(one.shape)).join(", ")} → ${list(op.outputs).map((one) => shape(one.shape)).join(", ")}`,
        op.params > 0 ? `${number(op.params)} parameters` : null, op.gflop > 0 ? `${number(op.gflop, 3)} GFLOP` : null, time.get(op.name) > 0 ? `${number(time.get(op.name), 3)} ms forward` : null,
        op.options && op.options !== "{}" ? op.options : null].filter((line) => line !== null).join("\n")).join("\n\n"));
    svg.append(group);
  }
  const used = new Set(network.operators.map((op) => kindOf(op)[0]));
  element.append(make("div", {class: "row"}, Object.values(KINDS).filter(([name]) => used.has(name)).map(([name, index]) =>
    make("span", {class: "legend"}, make("i", {style: `background: var(--s${index})`}), name))),
  make("div", {class: "net", tabindex: 0, role: "group", "aria-label": "Picture of the network, to scroll"}, svg));
}
make.svgTags.add("tspan");
