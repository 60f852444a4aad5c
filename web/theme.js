// SPDX-License-Identifier: MIT
// Light and dark, and the charts, which are drawn again when that changes.
"use strict";

const charts = [];
function css(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
function colour(index) { return css(`--s${index % 8}`); }

/** A chart on a canvas. `describe` returns Chart.js's configuration, in the colours of the moment. */
function chart(title, describe, tall = false) {
  const canvas = make("canvas", {role: "img", "aria-label": title});
  const element = make("div", {class: `chart${tall ? " tall" : ""}`}, make("h3", {text: title}), make("div", {}, canvas));
  charts.push({canvas, describe, drawn: null});
  return element;
}
function drawCharts() {
  Chart.defaults.color = css("--soft");
  Chart.defaults.borderColor = css("--grid");
  Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
  for (const one of charts) {
    if (one.drawn) one.drawn.destroy();
    const how = one.describe();
    how.options = {animation: false, responsive: true, maintainAspectRatio: false, ...how.options};
    one.drawn = new Chart(one.canvas, how);
  }
}
/** The scale of a chart: its title and grid. */
function axis(title, more = {}) {
  return {title: {display: true, text: title}, grid: {color: css("--grid")}, ...more};
}
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  document.dispatchEvent(new Event("theme"));
}
const dark = matchMedia("(prefers-color-scheme: dark)");
let chosenTheme = kept.get("theme", null);
setTheme(chosenTheme ?? (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => {
  if (chosenTheme !== null) return;
  setTheme(dark.matches ? "dark" : "light");
  drawCharts();
});
function themeButton() {
  const button = make("button", {type: "button", id: "theme", title: "Light or dark"});
  const label = () => { button.textContent = document.documentElement.dataset.theme === "dark" ? "☀ light" : "☾ dark"; };
  button.addEventListener("click", () => {
    chosenTheme = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    kept.set("theme", chosenTheme);
    setTheme(chosenTheme);
    drawCharts();
    label();
  });
  label();
  return button;
}
// On paper all is dark on light.
let beforePrint = null;
addEventListener("beforeprint", () => { beforePrint = document.documentElement.dataset.theme; setTheme("light"); drawCharts(); });
addEventListener("afterprint", () => { if (beforePrint) { setTheme(beforePrint); drawCharts(); } });
