// Control: load and unload models, change log and trace settings; each with the token.

import { draw, html } from "./common.js";
import { post, Secret } from "./calls.js";

const target = document.getElementById("control");
const names = JSON.parse(target.dataset.names);
const explicit = JSON.parse(target.dataset.explicit);
const settings = JSON.parse(target.dataset.settings);
let outcome = {};

async function act(path, document, take) {
  outcome = { busy: true };
  show();
  try {
    const answer = await (await post(`/actions/${path}`, document)).json();
    take?.(answer);
    outcome = { done: answer.done ?? "Changed." };
  } catch (error) {
    outcome = { error: error.message, needs: error.needs, again: () => act(path, document, take) };
  }
  show();
}

function submitted(run) {
  return (event) => {
    event.preventDefault();
    run(new FormData(event.target), event.submitter);
  };
}

function Models() {
  const run = submitted((fields, button) => act(button.value, { model: fields.get("model"), ...(button.value === "unload" && { unload_dependents: fields.has("dependents") }) }));
  return html`<section class="card"><h2>Models</h2>
    ${!explicit && html`<p class="note">Models are loaded and unloaded here only with <code>--model-control-mode=explicit</code>.</p>`}
    <form onSubmit=${run}><div class="row"><label for="model">Model</label><input id="model" name="model" list="names" required />
      <datalist id="names">${names.map((name) => html`<option value=${name} />`)}</datalist></div>
      <label class="row"><input type="checkbox" name="dependents" /> unload the models of an ensemble too</label>
      <div class="row"><button class="primary" name="action" value="load" disabled=${!explicit || outcome.busy}>Load</button>
        <button name="action" value="unload" disabled=${!explicit || outcome.busy}>Unload</button></div></form></section>`;
}

function Logging() {
  const logs = settings.logging;
  const run = submitted((fields) => act("logging", {
    log_info: fields.has("log_info"), log_warning: fields.has("log_warning"), log_error: fields.has("log_error"),
    log_verbose_level: Number(fields.get("log_verbose_level")), log_format: fields.get("log_format"),
  }, (answer) => { settings.logging = answer.logging; }));
  return html`<section class="card"><h2>Log</h2><form onSubmit=${run}>
      ${["log_info", "log_warning", "log_error"].map((name) => html`<label class="row"><input type="checkbox" name=${name} checked=${logs[name]} /> ${name.slice(4)}</label>`)}
      <div class="row"><label for="verbose">verbosity</label><input id="verbose" type="number" name="log_verbose_level" min="0" max="2" value=${logs.log_verbose_level} />
        <label for="format">format</label><select id="format" name="log_format" value=${logs.log_format}>${["default", "ISO8601", "json"].map((name) => html`<option value=${name} selected=${name === logs.log_format}>${name}</option>`)}</select></div>
      <button class="primary" disabled=${outcome.busy}>Change the log</button></form></section>`;
}

function Trace() {
  const trace = settings.trace;
  if (!trace) return html`<section class="card"><h2>Traces</h2><p class="empty">This server has no tracing service: <code>pip install naiad-tracing</code>.</p></section>`;
  const run = submitted((fields) => {
    const levels = fields.getAll("trace_level");
    const changes = { trace_level: levels.length ? levels : ["OFF"], trace_rate: fields.get("trace_rate"), trace_count: fields.get("trace_count") };
    act("trace", { model: fields.get("model"), settings: changes }, (answer) => { if (!fields.get("model")) settings.trace = answer.trace; });
  });
  return html`<section class="card"><h2>Traces</h2><form onSubmit=${run}>
      <div class="row"><label for="traced">Model</label><input id="traced" name="model" list="names" placeholder="all without their own" /></div>
      ${["TIMESTAMPS", "TENSORS"].map((level) => html`<label class="row"><input type="checkbox" name="trace_level" value=${level} checked=${trace.trace_level.includes(level)} /> ${level.toLowerCase()}</label>`)}
      <div class="row"><label for="rate">one request in</label><input id="rate" type="number" name="trace_rate" min="0" value=${trace.trace_rate} />
        <label for="count">at most (-1: any number)</label><input id="count" type="number" name="trace_count" min="-1" value=${trace.trace_count} /></div>
      <button class="primary" disabled=${outcome.busy}>Change the traces</button></form></section>`;
}

function Control() {
  return html`<div aria-live="polite">${outcome.done && html`<p class="notice" id="done">${outcome.done}</p>`}
      ${outcome.error && html`<p class="notice bad" role="alert">${outcome.error}</p>`}
      ${outcome.needs && html`<${Secret} needs=${outcome.needs} again=${outcome.again} />`}</div>
    <div class="cards"><${Models} /><${Logging} /><${Trace} /></div>`;
}

function show() {
  draw(html`<${Control} />`, target);
}

show();
