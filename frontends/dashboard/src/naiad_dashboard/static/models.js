// The table of all models, live, with a filter.

import { draw, html, modelPath, number, seconds, spark, State, watch } from "./common.js";

const target = document.getElementById("models");
let rows = [];
let filter = "";

function Row({ row }) {
  return html`<tr key=${`${row.model} ${row.version}`}>
    <th scope="row"><a href=${modelPath(row.model, row.version)}>${row.model}</a> <small>${[row.version ? `v${row.version}` : "", row.kind].filter(Boolean).join(" · ")}</small></th>
    <td data-label="State" colspan=${row.rate === undefined ? 9 : undefined}><${State} state=${row.state} />${row.reason && html`<small class="reason">${row.reason}</small>`}</td>
    ${row.rate !== undefined && html`
      <td class="number" data-label="Requests / s">${number(row.rate)}</td>
      <td class="sparkcell"><svg class="spark" viewBox="0 0 90 20" aria-hidden="true"><path d=${spark(row.spark)} /></svg></td>
      <td class="number" data-label="p50">${seconds(row.p50)}</td>
      <td class="number" data-label="p99">${seconds(row.p99)}</td>
      <td class="number" data-label="Queue">${number(row.queue)}</td>
      <td class="number" data-label="Mean batch">${number(row.batch)}</td>
      <td class=${row.failures ? "number warn" : "number"} data-label="Errors">${number(row.failures)}</td>
      <td class="number" data-label="Instances">${row.instances}</td>`}
  </tr>`;
}

function Models() {
  const wanted = filter.toLowerCase();
  const shown = rows.filter((row) => `${row.model} ${row.state} ${row.kind ?? ""}`.toLowerCase().includes(wanted));
  return html`
    ${rows.length > 8 && html`<div class="filter"><label for="filter">Filter</label>
      <input id="filter" type="search" size="26" placeholder="model, state or backend" value=${filter} onInput=${(event) => { filter = event.target.value; show(); }} />
      <small>${shown.length} of ${rows.length}</small></div>`}
    <div class="scroll"><table class="models"><thead><tr>
      <th scope="col">Model</th><th scope="col">State</th><th scope="col" class="number">Requests / s</th>
      <th scope="col"><span class="hidden">Requests per second, last minute</span></th>
      <th scope="col" class="number">p50</th><th scope="col" class="number">p99</th><th scope="col" class="number">Queue</th>
      <th scope="col" class="number">Mean batch</th><th scope="col" class="number">Errors</th><th scope="col" class="number">Instances</th>
    </tr></thead><tbody>${shown.map((row) => html`<${Row} key=${`${row.model} ${row.version}`} row=${row} />`)}</tbody></table></div>`;
}

function show() {
  draw(html`<${Models} />`, target);
}

watch("models", (document) => {
  const empty = !rows.length && !document.rows.length;  // the page says that there is no model, and what to do
  rows = document.rows;
  if (!empty) show();
});
