// SPDX-License-Identifier: MIT
// Curves of runs over their epochs: losses, metrics, learning rate, seconds. Of one run, training and test in one chart; of
// several, one colour for each run.
"use strict";

const runs = list(report.runs).filter((run) => list(run.columns).length > 0);

function column(run, name) {
  const at = run.columns.indexOf(name);
  return at < 0 ? [] : run.rows.map((row) => row[at]);
}
/** Points of a column over the epochs. Values that are not finite are left out. */
function points(run, name) {
  const epochs = column(run, "epoch");
  return column(run, name).map((y, i) => ({x: epochs[i] ?? i + 1, y})).filter((point) => has(point.y));
}
/** Names of what was measured, without "train_" and "test_". */
function measured() {
  const names = [];
  for (const run of runs)
    for (const name of run.columns) {
      const found = /^(?:train|test)_(.+)$/.exec(name);
      if (found && !names.includes(found[1])) names.push(found[1]);
    }
  return names;
}
/** Whether less of it is better, as far as its name says so. */
function lessIsBetter(name) { return /loss|error/.test(name); }

/** The best epoch of a run by a column: [row, value]. */
function best(run, name) {
  const values = column(run, name);
  let at = -1;
  values.forEach((value, i) => {
    if (has(value) && (at < 0 || (lessIsBetter(name) ? value < values[at] : value > values[at]))) at = i;
  });
  return at < 0 ? null : [at, values[at]];
}

function series(run, index, name) {
  const alone = runs.length === 1, dashes = alone ? [[6, 4], []] : [[5, 4], []];
  return ["train", "test"].map((part, i) => {
    const data = points(run, `${part}_${name}`);
    if (data.length === 0) return null;
    const line = colour(alone ? i : index);
    return {
      label: alone ? (part === "train" ? "training" : "test") : `${run.name}${part === "train" ? ", training" : ""}`,
      data, borderColor: line, backgroundColor: line, borderWidth: alone && part === "train" ? 1.8 : 2.2, borderDash: dashes[i],
      pointRadius: data.length > 20 ? 0 : 2.5, pointHitRadius: 8, pointStyle: part === "train" ? "rectRot" : "circle", tension: 0,
    };
  }).filter((one) => one !== null);
}

function curve(title, sets, vertical, logarithmic) {
  const element = chart(title, () => {
    const datasets = sets();
    const positive = datasets.every((set) => set.data.every((point) => point.y > 0));
    return {
      type: "line", data: {datasets},
      options: {
        parsing: false, normalized: true, interaction: {mode: "nearest", axis: "x", intersect: false},
        scales: {
          x: axis("epoch", {type: "linear", ticks: {precision: 0}, min: Math.min(...datasets.map((set) => set.data[0]?.x ?? Infinity))}),
          y: axis(vertical, {type: logarithmic() && positive ? "logarithmic" : "linear"}),
        },
        plugins: {
          decimation: {enabled: true, algorithm: "min-max", threshold: 1500},
          legend: {labels: {usePointStyle: true, boxHeight: 7}},
          tooltip: {mode: "index", axis: "x", intersect: false, callbacks: {
            title: (items) => (items.length > 0 ? `epoch ${items[0].parsed.x}` : ""),
            label: (item) => ` ${item.dataset.label}: ${number(item.parsed.y, 5)}`,
          }},
        },
      },
    };
  });
  element.dataset.points = String(Math.max(0, ...runs.map((run) => run.rows.length)));
  return element;
}

function drawCurves() {
  if (runs.length === 0 || runs.every((run) => run.rows.length === 0)) return;
  const element = section("curves", "Curves");
  let logarithmic = kept.get("log", false) === true, withTraining = kept.get("training", runs.length <= 2) === true;
  const pressed = (text, is, change) => {
    const button = make("button", {type: "button", "aria-pressed": String(is), text});
    button.addEventListener("click", () => {
      const now = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(now));
      change(now);
      drawCharts();
    });
    return button;
  };
  const row = make("div", {class: "row"}, pressed("logarithmic loss", logarithmic, (on) => { logarithmic = on; kept.set("log", on); }));
  if (runs.length > 1) row.append(pressed("training, too", withTraining, (on) => { withTraining = on; kept.set("training", on); }));
  const thinned = runs.filter((run) => run.epochs > run.rows.length);
  if (thinned.length > 0) row.append(make("span", {text: `Of ${number(thinned[0].epochs)} epochs ${number(thinned[0].rows.length)} are drawn; metrics.csv has all.`}));
  const all = make("div", {class: "charts"});
  const sets = (name) => () => runs.flatMap((run, i) => series(run, i, name))
    .filter((set) => runs.length === 1 || withTraining || !set.label.endsWith(", training"));
  for (const name of measured())
    all.append(curve(spoken(name).replace(/^./, (c) => c.toUpperCase()), sets(name), spoken(name), () => name === "loss" && logarithmic));
  const single = (title, name, vertical) => {
    if (!runs.some((run) => points(run, name).length > 0)) return;
    const before = all.lastChild;
    all.append(curve(title, () => runs.map((run, i) => ({label: runs.length === 1 ? vertical : run.name, data: points(run, name),
      borderColor: colour(runs.length === 1 ? 2 : i), backgroundColor: colour(runs.length === 1 ? 2 : i), borderWidth: 2, pointRadius: run.rows.length > 20 ? 0 : 2.5, pointHitRadius: 8})),
    vertical, () => false));
    return before;
  };
  single("Learning rate", "learning_rate", "learning rate");
  single("Time of an epoch", "seconds", "seconds");
  element.append(row, all);
  if (runs.length === 1) drawEpochs(element);
}

/** The epochs as a table: the last ones, or all. */
function drawEpochs(element) {
  const run = runs[0], few = 12;
  const marked = report.best_epoch, epochs = column(run, "epoch");
  const details = make("details", {id: "epochs"}, make("summary", {text: "Epochs as a table"}));
  details.open = kept.get("epochs", false) === true;
  let all = kept.get("all-epochs", false) === true;
  const fill = () => {
    const rows = all ? run.rows : run.rows.slice(-few), from = run.rows.length - rows.length;
    const shown = make("div", {class: "scroll"}, table(run.columns.map(spoken),
      rows.map((row) => row.map((value) => (has(value) ? number(value, 5) : ""))), (i) => (epochs[from + i] === marked ? "best" : null)));
    const more = run.rows.length > few && !all ? make("button", {type: "button", text: `all ${run.rows.length} epochs`, onclick: () => { all = true; kept.set("all-epochs", true); fill(); }}) : "";
    details.replaceChildren(details.firstChild, shown, more);
  };
  details.addEventListener("toggle", () => { kept.set("epochs", details.open); if (details.open) fill(); });
  if (details.open) fill();
  element.append(details);
}

/** Several runs side by side: their best values, and the settings in which they differ. */
function drawComparison() {
  if (runs.length < 2) return;
  const element = section("comparison", "Runs");
  const names = measured(), tested = (run, name) => (best(run, `test_${name}`) ? `test_${name}` : `train_${name}`);
  const values = runs.map((run) => names.map((name) => best(run, tested(run, name))?.[1]));
  const winner = names.map((name, c) => {
    const known = values.map((row) => row[c]).filter(has);
    return known.length === 0 ? null : lessIsBetter(name) ? Math.min(...known) : Math.max(...known);
  });
  const body = runs.map((run, r) => make("tr", {},
    make("th", {scope: "row"}, make("span", {class: "legend"}, make("i", {style: `background: var(--s${r % 8})`}), make("span", {text: run.name}))),
    make("td", {class: "n", text: number(run.epochs ?? run.rows.length)}),
    names.map((name, c) => make("td", {class: "n", style: values[r][c] === winner[c] ? "font-weight: 700" : null,
      text: `${number(values[r][c])}${best(run, tested(run, name)) ? ` (epoch ${column(run, "epoch")[best(run, tested(run, name))[0]]})` : ""}`})),
    make("td", {class: "n", text: duration(column(run, "seconds").filter(has).reduce((a, b) => a + b, 0))})));
  element.append(make("p", {text: "Of each measure the best epoch, over the test set where there is one. The best run is bold."}),
    make("div", {class: "scroll"}, make("table", {}, make("thead", {}, make("tr", {}, ["run", "epochs", ...names.map(spoken), "time"].map((text, i) => make("th", {text, scope: "col", class: i > 0 ? "n" : null})))),
      make("tbody", {}, body))));
  const keys = [...new Set(runs.flatMap((run) => list(run.facts).map(([key]) => key)))];
  const fact = (run, key) => list(run.facts).find(([name]) => name === key)?.[1];
  const differ = keys.filter((key) => new Set(runs.map((run) => fact(run, key))).size > 1);
  if (keys.length === 0) return;
  element.append(make("h3", {text: differ.length > 0 ? "In what they differ" : "Their settings are the same"}));
  if (differ.length > 0)
    element.append(make("div", {class: "scroll", id: "differences"}, table(["", ...runs.map((run) => run.name)], differ.map((key) => [key, ...runs.map((run) => fact(run, key) ?? "–")]))));
}
