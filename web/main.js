// SPDX-License-Identifier: MIT
// Builds the page: figures, sections, links to them, and reloading while a training goes on.
"use strict";

const AGES = [[90, 1, "s"], [5400, 60, "minutes"], [172800, 3600, "hours"], [Infinity, 86400, "days"]];
function age() {
  const seconds = Math.max(0, (Date.now() - report.written) / 1000), [, unit, name] = AGES.find(([most]) => seconds < most);
  return {seconds, text: seconds < 5 ? "just now" : `${Math.round(seconds / unit)} ${name} ago`};
}

function drawFigures() {
  const figures = list(report.figures).map(([name, value]) => [value, name]);
  if (report.status && runs.length === 1 && runs[0].rows.length > 0) {
    const run = runs[0], epochs = column(run, "epoch"), part = column(run, "test_loss").some(has) ? "test" : "train";
    for (const name of measured().filter((one) => one !== "loss").slice(0, 2)) {
      const found = best(run, `${part}_${name}`);
      if (!found) continue;
      const share = /accuracy|^top\d+$|iou|^f1$/.test(name) && found[1] <= 1;
      figures.push([share ? percent(found[1]) : number(found[1]), `best ${part} ${spoken(name)}, epoch ${epochs[found[0]]}`]);
    }
    const loss = best(run, `${part}_loss`);
    if (loss) figures.push([number(loss[1]), `least ${part} loss, epoch ${epochs[loss[0]]}`]);
    figures.push([`${number(epochs.at(-1))} of ${number(report.planned_epochs)}`, "epochs"]);
    const seconds = column(run, "seconds").filter(has), sum = seconds.reduce((a, b) => a + b, 0);
    figures.push([duration(sum), `training, ${duration(sum / seconds.length)} an epoch`]);
    const {for_data: data, for_device: device} = report.waits ?? {};
    if (data > 1 || device > 1)
      figures.push([duration(Math.max(data, device)), data > device ? "the device waited for data" : "readers waited for the device"]);
  }
  if (report.network) figures.push([compactNumber(report.network.params), "parameters"]);
  if (report.memory) figures.push([bytes(report.memory.peak), "planned peak of memory"]);
  if (figures.length === 0) return;
  document.querySelector("main").append(make("div", {class: "figures", id: "figures"}, figures.map(([value, name]) => make("div", {class: "figure"}, make("b", {text: value}), make("span", {text: name})))));
}
function compactNumber(value) { return value < 1e4 ? number(value) : value < 1e6 ? `${(value / 1e3).toFixed(1)} k` : `${(value / 1e6).toFixed(value < 1e8 ? 2 : 0)} M`; }

/** Where the run is; reloads the page while it goes on. */
function drawStatus() {
  if (!report.status) return;
  const status = make("span", {class: `status ${["running", "finished", "stopped", "failed"].includes(report.status) ? report.status : ""}`, text: report.status});
  const when = make("span"), line = make("p", {id: "status"}, status, " ", when);
  const tell = () => { when.textContent = `written ${age().text}`; when.title = new Date(report.written).toLocaleString(); };
  tell();
  setInterval(tell, 5000);
  document.querySelector("header").append(line);
  if (typeof report.message === "string") document.querySelector("header").append(make("p", {class: "problem", text: report.message}));
  if (report.status !== "running") return;
  const progress = report.progress;
  if (progress) {
    document.querySelector("header").append(make("p", {id: "progress", text: `epoch ${progress.epoch} of ${progress.epochs}, batch ${number(progress.batch)} of ${number(progress.batches)}, ` +
      `loss ${number(progress.loss)}, ${number(progress.examples_per_second, 3)} examples a second`}, make("div", {class: "bar"}, make("i", {style: `width: ${(100 * progress.batch / progress.batches).toFixed(1)}%`}))));
  }
  let live = kept.get("live", true) === true;
  const button = make("button", {type: "button", id: "live", "aria-pressed": String(live), text: "live", title: "Loads the page again every few seconds while the training goes on",
    onclick: () => { live = !live; kept.set("live", live); button.setAttribute("aria-pressed", String(live)); }});
  document.querySelector(".tools").prepend(button);
  // A run that has said nothing for long is looked at less often.
  let still = 0;
  addEventListener("pointermove", () => { still = 0; });
  setInterval(() => {
    still += 1;
    const pause = Math.min(60, Math.max(5, age().seconds / 20));
    if (!live || document.hidden || still < pause || !getSelection().isCollapsed) return;
    kept.set("scroll", scrollY);
    location.reload();
  }, 1000);
}

function drawTables() {
  const tables = list(report.tables);
  if (tables.length === 0 && !report.text) return;
  const element = section("configuration", "Configuration");
  element.append(make("div", {class: "tables"}, tables.map((one) => make("div", {}, make("h3", {text: one.title}),
    make("table", {}, make("tbody", {}, list(one.rows).map(([key, value]) => make("tr", {}, make("td", {class: "k", text: key}), make("td", {class: "v", text: value})))))))));
  if (report.text) element.append(make("details", {id: "text"}, make("summary", {text: "The configuration as it was written"}), make("pre", {text: report.text})));
}

function drawPage() {
  document.querySelector("header").append(make("div", {class: "tools"}, themeButton()));
  document.body.append(hover);
  drawStatus();
  drawFigures();
  const nav = make("nav", {"aria-label": "Parts of the page"});
  document.querySelector("header").after(nav);
  for (const draw of [drawComparison, drawCurves, drawConfusion, drawLabels, drawNumbers, drawMistakes, drawTimes, drawMemory, drawNetwork, drawTables]) {
    try {
      draw();
    } catch (error) {
      document.querySelector("main").append(make("section", {}, make("p", {class: "problem", text: `A part of the report cannot be shown: ${error}`})));
    }
  }
  nav.append(...sections.map(([id, title]) => make("a", {href: `#${id}`, text: title})));
  if (sections.length < 2) nav.remove();
  if (sections.length === 0) document.querySelector("main").append(make("section", {}, make("p", {text: "There is nothing to show yet: the first epoch is not over."})));
  document.body.append(make("footer", {text: `dlprim; charts by Chart.js ${Chart.version}`}));
  drawCharts();
  const scroll = kept.get("scroll", null);
  if (scroll !== null) { scrollTo(0, scroll); kept.set("scroll", null); }
  document.documentElement.dataset.readyMs = performance.now().toFixed(0);
}
drawPage();
