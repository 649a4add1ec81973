// The page of one model version, live: figures, charts of five minutes, and the cards of details.

import { clock, draw, html, keepEnd, Log, number, octets, percent, seconds, State, watch } from "./common.js";
import uPlot from "./vendor/uPlot.mjs";

const SECONDS = 300;
const target = document.getElementById("model");
const { model, version } = target.dataset;
const view = `models/${encodeURIComponent(model)}/versions/${version}`;
const columns = { at: [], rate: [], errors: [], p50: [], p99: [], queue: [], in_flight: [], batch: [] };

function Facts({ row }) {
  if (row.rate === undefined) return null;
  return html`<p class="facts">
    <span><b>${number(row.rate)}</b> requests / s</span> <span><b>${seconds(row.p50)}</b> p50</span> <span><b>${seconds(row.p99)}</b> p99</span>
    <span><b>${number(row.queue)}</b> queued</span> <span><b>${number(row.in_flight)}</b> in flight</span> <span><b>${number(row.batch)}</b> mean batch</span>
    <span><b>${number(row.requests)}</b> answered</span> <span class=${row.failures ? "warn" : ""}><b>${number(row.failures)}</b> failed</span></p>`;
}

function Bar({ share }) {
  return html`<svg class="bar" viewBox="0 0 260 12" aria-hidden="true"><rect width=${(share * 260).toFixed(1)} height="12" rx="2" /></svg>`;
}

function Counted({ head, entries }) {
  const most = Math.max(1, ...entries.map(([, count]) => count));
  return html`<table>${head && html`<thead><tr><th scope="col">${head}</th><th scope="col">Executions</th></tr></thead>`}
    <tbody>${entries.map(([label, count]) => html`<tr><th scope="row" class=${head ? "number" : ""}>${label}</th><td><${Bar} share=${count / most} /> ${number(count)}</td></tr>`)}</tbody></table>`;
}

function Phases({ phases }) {
  const parts = phases.filter((phase) => phase.name !== "request");
  const whole = parts.reduce((sum, phase) => sum + (phase.mean ?? 0), 0) || 1;
  let x = 0;
  const stack = parts.map((phase) => {
    const width = ((phase.mean ?? 0) / whole) * 260;
    x += width;
    return html`<rect class=${phase.name} x=${(x - width).toFixed(1)} y="0" width=${width.toFixed(1)} height="18" />`;
  });
  return html`<section class="card"><h2>Latency by phase</h2><svg class="stack" viewBox="0 0 260 18" preserveAspectRatio="none" aria-hidden="true">${stack}</svg>
    <table><thead><tr><th scope="col">Phase</th><th scope="col" class="number">Mean</th><th scope="col" class="number">p50</th><th scope="col" class="number">p99</th></tr></thead>
    <tbody>${phases.map((phase) => html`<tr><th scope="row"><span class=${`key ${phase.name}`}></span>${phase.name}</th><td class="number">${seconds(phase.mean)}</td><td class="number">${seconds(phase.p50)}</td><td class="number">${seconds(phase.p99)}</td></tr>`)}</tbody></table></section>`;
}

function Instances({ details }) {
  const isolated = details.instances.some((each) => each.memory);
  return html`<section class="card"><h2>Instances</h2>
    ${details.instances.length ? html`<table><thead><tr><th scope="col">Instance</th><th scope="col">State</th><th scope="col" class="number">Executes for</th>${isolated && html`<th scope="col" class="number">Memory</th>`}</tr></thead><tbody>
      ${details.instances.map((each) => html`<tr><th scope="row">${each.name}${each.gpu >= 0 && html` <small>GPU ${each.gpu}</small>`}</th>
        <td><${State} state=${each.state} />${each.reason && html`<small class="reason">${each.reason}</small>`}</td>
        <td class="number">${each.busy_seconds ? seconds(each.busy_seconds) : "idle"}</td>
        ${isolated && html`<td class="number">${each.memory ? octets(each.memory) : "–"}</td>`}</tr>`)}</tbody></table>`
    : html`<p class="empty">An ensemble has no instances of its own.</p>`}
    <dl><dt>Busy</dt><dd>${percent(details.busy)}</dd><dt>Load took</dt><dd>${seconds(details.load_seconds)}</dd>
      ${details.memory.map((each) => html`<dt>Memory ${each.type} ${each.id}</dt><dd>${octets(each.byte_size)}</dd>`)}
      ${Object.entries(details.failures).map(([reason, count]) => html`<dt>Failed: ${reason}</dt><dd>${number(count)}</dd>`)}</dl>
    ${details.last_error && html`<h3>Last error</h3><p class="reason">${clock(details.last_error.at)} ${details.last_error.message}${details.last_error.cause && `: ${details.last_error.cause}`}</p>`}</section>`;
}

function Details({ details }) {
  const { batches, reasons, sequences, cache, limits } = details;
  return html`<${Phases} phases=${details.phases} />
    <section class="card"><h2>Batches</h2>${batches.length ? html`
      <${Counted} head="Items" entries=${batches.map((each) => [each.size, each.count])} />
      ${Object.keys(reasons).length > 0 && html`<h3>Closed because</h3><${Counted} entries=${Object.entries(reasons)} />`}` : html`<p class="empty">No batch was executed yet.</p>`}</section>
    <${Instances} details=${details} />
    ${sequences && html`<section class="card"><h2>Sequences</h2><dl><dt>Live</dt><dd>${number(sequences.live)} of ${number(sequences.slots)} slots</dd><dt>Backlog</dt><dd>${number(sequences.backlog)}</dd></dl></section>`}
    ${cache && html`<section class="card"><h2>Response cache</h2><dl><dt>Hits</dt><dd>${number(cache.hits)} (${percent(cache.share)})</dd><dt>Misses</dt><dd>${number(cache.misses)}</dd><dt>A hit takes</dt><dd>${seconds(cache.hit_seconds)}</dd></dl></section>`}
    ${limits.length > 0 && html`<section class="card"><h2>Resources and services</h2><table><tbody>${limits.map((each) => html`<tr><th scope="row" title=${each.help}>${each.name}<small>${each.labels}</small></th><td class="number">${number(each.value)}</td></tr>`)}</tbody></table></section>`}`;
}

// Charts

const CHARTS = [
  { title: "Requests and errors per second", format: number, lines: [["rate", "requests", "--accent"], ["errors", "errors", "--bad"]] },
  { title: "Latency", format: seconds, lines: [["p50", "p50", "--accent"], ["p99", "p99", "--output"]] },
  { title: "Queue and in flight", format: number, counts: true, lines: [["queue", "queued", "--queue"], ["in_flight", "in flight", "--accent"]] },
  { title: "Mean batch", format: number, lines: [["batch", "items", "--infer"]] },
];
const WHOLE = [1, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].flatMap((power) => [power, 2 * power, 5 * power]);  // steps of an axis of counts
let plots = [];

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function time(at) {
  return new Date(at * 1000).toTimeString().slice(0, 8);
}

function makeCharts(box) {
  plots.forEach((plot) => plot.chart.destroy());
  box.replaceChildren();
  plots = CHARTS.map(({ title, format, lines, counts }) => {
    const card = document.createElement("div");
    const heading = document.createElement("h2");
    heading.textContent = title;
    card.append(heading);
    box.append(card);
    const axis = { stroke: colour("--soft"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const chart = new uPlot({
      width: Math.max(200, card.clientWidth - 16), height: 170,
      scales: { y: { range: (_plot, _low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis, space: 70, size: 30, values: (_plot, values) => values.map(time) }, { ...axis, size: 62, values: (_plot, values) => values.map(format), ...(counts ? { incrs: WHOLE } : {}) }],
      series: [{ label: "time", value: (_plot, value) => (value === null ? "" : time(value)) }, ...lines.map(([, label, name]) => ({ label, stroke: colour(name), width: 1.5, points: { show: false }, value: (_plot, value) => format(value) }))],
    }, [columns.at, ...lines.map(([key]) => columns[key])], card);
    return { chart, card, lines };
  });
}

function addPoints(points, isFirst) {
  const now = Date.now() / 1000;
  if (isFirst) Object.values(columns).forEach((column) => column.splice(0));
  points.ago.forEach((ago, index) => {
    columns.at.push(now - ago);
    for (const key of Object.keys(columns)) if (key !== "at") columns[key].push(points[key][index]);
  });
  while (columns.at.length && now - columns.at[0] > SECONDS) Object.values(columns).forEach((column) => column.shift());
  if (columns.at.length && (isFirst || !plots.length)) makeCharts(document.getElementById("charts"));
  plots.forEach(({ chart, lines }) => {
    chart.setData([columns.at, ...lines.map(([key]) => columns[key])]);
    if (chart.cursor.idx === null || chart.cursor.left < 0) chart.setLegend({ idx: columns.at.length - 1 });  // without a cursor: now
  });
}

new ResizeObserver(() => plots.forEach(({ chart, card }) => chart.setSize({ width: Math.max(200, card.clientWidth - 16), height: 170 }))).observe(document.getElementById("charts"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.length && makeCharts(document.getElementById("charts")));

watch(view, ({ details, points }, isFirst) => {
  const { state, reason } = details.row;
  draw(html`<${State} state=${state} />`, document.getElementById("state"));
  draw(reason ? html`<p class="notice bad">${reason}</p>` : null, document.getElementById("reason"));
  draw(html`<${Facts} row=${details.row} />`, target);
  draw(details.phases ? html`<${Details} details=${details} />` : null, document.getElementById("details"));
  const log = document.getElementById("log");
  if (details.log.length) keepEnd(log, () => draw(html`<${Log} lines=${details.log} />`, log));
  addPoints(points, isFirst);
});
