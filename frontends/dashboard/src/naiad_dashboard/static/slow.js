// The slowest requests, live.

import { clock, draw, html, number, seconds, watch } from "./common.js";
import { Timeline } from "./timeline.js";

function Slow({ requests }) {
  return requests.map((request, index) => html`<details key=${`${request.ended} ${request.seconds}`} open=${index === 0}>
    <summary><b>${seconds(request.seconds)}</b> ${request.model} <small>v${request.timeline.version} · ${clock(request.ended)} UTC</small>
      ${request.error && html` <span class="reason">${request.error}</span>`}</summary>
    <${Timeline} timeline=${request.timeline} total=${request.seconds} /></details>`);
}

watch("slow", (document_) => {
  document.getElementById("followed").textContent = number(document_.followed);
  if (document_.requests.length) draw(html`<${Slow} requests=${document_.requests} />`, document.getElementById("slow"));
});
