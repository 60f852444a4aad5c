// SPDX-License-Identifier: MIT
// What the net makes of the test set: the confusion matrix, labels, predicted numbers, and its worst mistakes.
"use strict";

const judged = report.judged && typeof report.judged === "object" ? report.judged : null;

function className(index) { return list(judged.names)[index] ?? list(judged.confusion?.classes)[index]?.[0] ?? String(index); }
function whatSet() { return `the test set after epoch ${number(judged.epoch)}`; }

function drawConfusion() {
  const confusion = judged?.confusion;
  if (!confusion) return;
  const element = section("confusion", "Confusion matrix");
  const pixels = judged.kind === "pixels", what = pixels ? "pixels" : "examples";
  const shown = list(confusion.shown), totals = confusion.classes;
  element.append(make("p", {text: `${number(judged.examples)} examples of ${whatSet()}. A row is a true class, a column what the net said; a cell's shade is its share of the row.` +
    (shown.length < totals.length ? ` Of ${totals.length} classes these ${shown.length} are in the most mistakes.` : "")}));
  const small = shown.length > 16;
  const matrix = make("table", {class: `matrix${small ? " small" : shown.length <= 12 ? " large" : ""}`, id: "matrix"},
    make("thead", {}, make("tr", {}, make("td", {style: "background: none"}), shown.map((c) => make("th", {scope: "col", title: totals[c][0]}, make("span", {text: totals[c][0]}))))));
  const body = make("tbody");
  shown.forEach((t, r) => {
    const row = make("tr", {}, make("th", {scope: "row", text: totals[t][0], title: totals[t][0]}));
    shown.forEach((p, c) => {
      const count = confusion.cells[r][c], share = totals[t][1] > 0 ? count / totals[t][1] : 0;
      const strength = share === 0 ? 0 : 0.1 + 0.85 * Math.sqrt(share);
      const cell = make("td", {class: t === p ? "right" : null, text: count === 0 ? "" : compact(count),
        style: count === 0 ? null : `background: rgba(var(--heat), ${strength.toFixed(3)}); color: ${strength > 0.6 ? "var(--card)" : "var(--ink)"}`});
      cell.dataset.t = t;
      cell.dataset.p = p;
      cell.dataset.n = count;
      row.append(cell);
    });
    body.append(row);
  });
  matrix.append(body);
  // One listener for all cells.
  let cell = null;
  explain(body, () => (cell ? `${number(Number(cell.dataset.n))} ${what} of ${totals[cell.dataset.t][0]}\nwere taken for ${totals[cell.dataset.p][0]}: ${percent(cell.dataset.n / totals[cell.dataset.t][1])} of them` : ""));
  body.addEventListener("pointerover", (event) => { cell = event.target.closest("td") ?? cell; }, true);
  const side = make("div");
  const pairs = list(confusion.pairs).slice(0, 10);
  if (pairs.length > 0)
    side.append(make("h3", {text: "The most frequent mistakes"}), table(["is", "taken for", what], pairs.map(([t, p, n]) => [totals[t][0], totals[p][0], n])));
  element.append(make("div", {class: "split"}, make("div", {class: "scroll"}, matrix), side));
  const details = make("details", {}, make("summary", {text: pixels ? "Classes: intersection over union, recall, precision" : "Classes: recall, precision"}));
  const row = ([name, actual, found, right]) => [name, actual, percent(right / actual), percent(right / found), ...(pixels ? [percent(right / (actual + found - right))] : [])];
  details.append(make("div", {class: "scroll"}, table(["class", what, "recall", "precision", ...(pixels ? ["IoU"] : [])],
    [...totals].sort((a, b) => a[3] / (a[1] || 1) - b[3] / (b[1] || 1)).map(row))));
  element.append(details);
}
function compact(count) {
  return count < 1e4 ? String(count) : count < 1e6 ? `${Math.round(count / 1e3)}k` : `${(count / 1e6).toFixed(1)}M`;
}

function drawLabels() {
  const labels = list(judged?.labels);
  if (labels.length === 0) return;
  const element = section("labels", "Labels");
  element.append(make("p", {text: `An output above 0.5 is a yes. ${number(judged.examples)} examples of ${whatSet()}.`}));
  const rate = (part, whole) => (whole > 0 ? part / whole : null);
  const bars = labels.slice(0, 60).map(([name, right, wrong, missed]) => ({name, precision: rate(right, right + wrong), recall: rate(right, right + missed), f1: rate(2 * right, 2 * right + wrong + missed)}));
  const drawn = chart("Precision, recall and F1 by label", () => ({
    type: "bar",
    data: {labels: bars.map((bar) => bar.name), datasets: ["precision", "recall", "f1"].map((key, i) => ({label: key === "f1" ? "F1" : key, data: bars.map((bar) => bar[key]), backgroundColor: colour(i)}))},
    options: {scales: {x: axis("label"), y: axis("share", {min: 0, max: 1})}},
  }));
  element.append(drawn, make("details", {}, make("summary", {text: "As a table"}), make("div", {class: "scroll"},
    table(["label", "right yes", "wrong yes", "missed", "precision", "recall"], labels.map(([name, right, wrong, missed]) =>
      [name, right, wrong, missed, percent(rate(right, right + wrong)), percent(rate(right, right + missed))])))));
}

function drawNumbers() {
  const all = list(judged?.points).filter(([target, output]) => has(target) && has(output));
  if (all.length === 0) return;
  const element = section("numbers", "Predicted numbers");
  element.append(make("p", {text: `${number(all.length)} numbers of ${whatSet()}: the nearer a point is to the line, the better.`}));
  let least = Infinity, most = -Infinity;
  for (const [target] of all) { least = Math.min(least, target); most = Math.max(most, target); }
  element.append(chart("Outputs over targets", () => ({
    type: "scatter",
    data: {datasets: [
      {label: "numbers", data: all.map(([x, y]) => ({x, y})), backgroundColor: `${colour(0)}99`, pointRadius: 2.5},
      {label: "target", type: "line", data: [{x: least, y: least}, {x: most, y: most}], borderColor: colour(1), borderWidth: 1.5, borderDash: [6, 4], pointRadius: 0},
    ]},
    options: {scales: {x: axis("target"), y: axis("output")}, plugins: {tooltip: {callbacks: {label: (item) => ` target ${number(item.parsed.x)}, output ${number(item.parsed.y)}`}}}},
  }), true));
}

function mistakeCaption(mistake) {
  const name = String(mistake.name).split("/").at(-1);
  const small = make("small", {text: name.length > 22 ? `…${name.slice(-21)}` : name, title: mistake.name});
  if (judged.kind === "pixels") return [make("span", {class: "said", text: `${percent(mistake.wrong)} of the pixels are wrong`}), small];
  if (judged.kind === "classes")
    return [make("span", {class: "is", text: `is ${className(mistake.target)}`}), make("br"),
      make("span", {class: "said", text: `taken for ${className(mistake.predicted)}`}),
      make("small", {text: `${percent(mistake.output)} sure`, title: "the probability of the wrong class"}),
      make("small", {text: `right one: ${percent(mistake.wanted)}`, title: "the probability of the right class"}), small];
  const which = judged.kind === "labels" ? `label ${list(judged.labels)[mistake.target]?.[0] ?? mistake.target}` : `number ${mistake.target}`;
  return [make("span", {class: "is", text: `${which} is ${number(mistake.wanted)}`}), make("br"), make("span", {class: "said", text: `output ${number(mistake.output)}`}), small];
}

function drawMistakes() {
  const mistakes = list(judged?.mistakes);
  if (mistakes.length === 0) return;
  const element = section("mistakes", "The worst mistakes");
  const pixels = judged.kind === "pixels";
  element.append(make("p", {text: pixels ? `The examples of ${whatSet()} with the most wrong pixels: the picture, its mask, and what the net found.`
    : judged.kind === "classes" ? `Where the net was most sure of a wrong class, in ${whatSet()}. Pictures are what the net gets.`
      : `The outputs that are farthest from their targets, in ${whatSet()}.`}));
  const grid = make("div", {class: `mistakes${pixels ? " wide" : ""}`});
  for (const mistake of mistakes) {
    const figure = make("figure");
    const pictures = list(mistake.pictures).filter((url) => typeof url === "string" && url.startsWith("data:image/png;base64,"));
    if (pictures.length > 0)
      figure.append(make("div", {class: "pictures"}, pictures.map((src, i) => make("img", {src, loading: "lazy",
        alt: ["picture", "mask", "found"][i] ?? "", onload: (event) => { if (event.target.naturalWidth <= 64) event.target.classList.add("pixels"); }}))));
    figure.append(make("figcaption", {}, mistakeCaption(mistake)));
    grid.append(figure);
  }
  element.append(grid);
}
