// Try a model: a form made from its metadata, the responses as they come, the timeline, and the request as snippets.

import { draw, html, seconds } from "./common.js";
import { post, Refused, Secret } from "./calls.js";
import { Timeline } from "./timeline.js";

const target = document.getElementById("trial");
const trial = target ? JSON.parse(target.dataset.trial) : null;
const path = trial && `/models/${encodeURIComponent(trial.model)}/versions/${trial.version}`;
const MOST_RESPONSES = 200;

const entries = new Map();  // by the name of an input: what its fields have
let parameters = "";
let state = { responses: [], skipped: 0 };
let snippets = null;
let shown = "curl";
let running = null;

function kindsOf(input) {
  if (input.datatype === "BYTES") return [["text", "Text"], ["values", "JSON"], ["file", "File"], ["npy", ".npy file"]];
  return [["values", "Numbers or JSON"], ["npy", ".npy file"], ...(input.image ? [["image", "Image file"]] : [])];
}

function entryOf(input) {
  if (!entries.has(input.name)) {
    const kind = input.datatype === "BYTES" && !input.shape.slice(1).some((size) => size > 1) ? "text" : "values";
    const image = input.image && { width: input.image.width || 224, height: input.image.height || 224, scale: input.datatype === "UINT8" ? "0-255" : "0-1" };
    entries.set(input.name, { kind, text: kind === "text" ? "hello" : input.sample, shape: "", file: null, skip: input.optional, ...image });
  }
  return entries.get(input.name);
}

// From the fields to the document of the request

async function base64(blob) {
  const bytes = blob instanceof Uint8Array ? blob : new Uint8Array(await blob.arrayBuffer());
  let text = "";
  for (let start = 0; start < bytes.length; start += 32768) text += String.fromCharCode(...bytes.subarray(start, start + 32768));
  return btoa(text);
}

async function pixels(file, width, height) {
  const bitmap = await createImageBitmap(file, { resizeWidth: width, resizeHeight: height, resizeQuality: "high" });
  const canvas = new OffscreenCanvas(width, height);
  const context = canvas.getContext("2d");
  context.drawImage(bitmap, 0, 0);
  const rgba = context.getImageData(0, 0, width, height).data;
  const rgb = new Uint8Array(width * height * 3);
  for (let from = 0, to = 0; from < rgba.length; from += 4) {
    rgb[to++] = rgba[from];
    rgb[to++] = rgba[from + 1];
    rgb[to++] = rgba[from + 2];
  }
  return rgb;
}

async function documentOf() {
  const inputs = {};
  for (const input of trial.inputs) {
    const entry = entryOf(input);
    if (input.optional && entry.skip) continue;
    const { kind, shape } = entry;
    if (kind === "values" || kind === "text") {
      inputs[input.name] = { kind, shape, value: entry.text };
      continue;
    }
    if (!entry.file) throw new Refused(`choose a file for the input ${input.name}`);
    const file = entry.file.name;
    if (kind === "image") {
      const [width, height] = [Number(entry.width), Number(entry.height)];
      const value = await base64(await pixels(entry.file, width, height).catch(() => {
        throw new Refused(`${file} is not an image that this browser can read`);
      }));
      inputs[input.name] = { kind, shape, value, file, width, height, scale: entry.scale };
    } else {
      inputs[input.name] = { kind, shape, value: await base64(entry.file), file };
    }
  }
  let own = {};
  try {
    own = parameters.trim() ? JSON.parse(parameters) : {};
  } catch (error) {
    throw new Refused(`the parameters are not valid JSON: ${error.message}`);
  }
  return { inputs, parameters: own };
}

// Sending

async function send() {
  running?.abort();
  const mine = new AbortController();
  running = mine;
  state = { responses: [], skipped: 0, busy: true };
  show();
  try {
    const response = await post(`${path}/trial`, await documentOf(), mine.signal);
    for await (const line of lines(response)) {
      if (line.end) state = { ...state, ...line.end, seconds: line.seconds, done: true };
      else if (state.responses.length < MOST_RESPONSES) state.responses.push(line);
      else state.skipped += 1;
      show();
    }
    if (!state.done) state.error = "the connection was lost before the end";
  } catch (error) {
    if (error.name === "AbortError") {
      if (running === mine) state.error = "stopped";
    } else {
      state.error = error instanceof Refused ? error.message : "the server cannot be reached";
      state.needs = error.needs;
    }
  }
  if (running !== mine) return;
  running = null;
  state.busy = false;
  show();
}

async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}

async function write() {
  try {
    snippets = await (await post(`${path}/snippets`, await documentOf())).json();
    state.error = state.needs = undefined;
  } catch (error) {
    snippets = null;
    state = { responses: [], skipped: 0, error: error.message, needs: error.needs, again: write };
  }
  show();
}

async function copy(event) {
  const button = event.currentTarget;
  const text = target.querySelector("#snippet");
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  } catch {  // a browser without a clipboard for this page: mark the text, so that the reader can copy it
    getSelection().selectAllChildren(text);
  }
}

// What is drawn

function Field({ input }) {
  const entry = entryOf(input);
  const id = `input-${input.name}`;
  const change = (key) => (event) => {
    entry[key] = key === "file" ? event.target.files[0] : event.target.value;
    snippets = null;
    show();
  };
  return html`<fieldset><legend>${input.name} <small>${input.datatype} ${input.shape.join(" × ")}</small></legend>
    ${input.optional && html`<label class="row"><input type="checkbox" checked=${!entry.skip} onChange=${(event) => { entry.skip = !event.target.checked; snippets = null; show(); }} /> send this optional input</label>`}
    ${!(input.optional && entry.skip) && html`
      <div class="row"><span class="pair"><label for=${`${id}-kind`}>as</label>
        <select id=${`${id}-kind`} value=${entry.kind} onChange=${change("kind")}>${kindsOf(input).map(([kind, label]) => html`<option value=${kind}>${label}</option>`)}</select></span>
        <span class="pair"><label for=${`${id}-shape`}>shape</label>
        <input id=${`${id}-shape`} size="14" placeholder="from the values" value=${entry.shape} onInput=${change("shape")} /></span></div>
      ${entry.kind === "values" || entry.kind === "text"
        ? html`<textarea id=${id} aria-label=${`Values of ${input.name}`} rows="2" spellcheck=${false} value=${entry.text} onInput=${change("text")}></textarea>`
        : html`<div class="row"><input id=${id} key=${entry.kind} type="file" aria-label=${`File for ${input.name}`} accept=${entry.kind === "image" ? "image/*" : entry.kind === "npy" ? ".npy" : undefined} onChange=${change("file")} />
          ${entry.kind === "image" && html`<${Image} input=${input} entry=${entry} change=${change} id=${id} />`}</div>`}`}
  </fieldset>`;
}

function Image({ input, entry, change, id }) {
  return html`<label for=${`${id}-width`}>resized to</label>
    <input id=${`${id}-width`} type="number" min="1" max="4096" value=${entry.width} disabled=${input.image.width > 0} onInput=${change("width")} aria-label="Width" /> ×
    <input type="number" min="1" max="4096" value=${entry.height} disabled=${input.image.height > 0} onInput=${change("height")} aria-label="Height" />
    <label for=${`${id}-scale`}>colours</label>
    <select id=${`${id}-scale`} value=${entry.scale} onChange=${change("scale")}>${trial.scales.map((scale) => html`<option value=${scale}>${scale.replace(/(\d)-/, "$1 to ")}</option>`)}</select>`;
}

function Answer() {
  const { responses, skipped, error, needs, done, timeline } = state;
  return html`<div id="answer" aria-live="polite">
    ${responses.map(({ response, seconds: at }, index) => html`<section class="response">
      ${(trial.decoupled || responses.length > 1) && html`<h3>Response ${index + 1} <small>after ${seconds(at)}</small></h3>`}
      ${response.error && html`<p class="reason">${response.error}</p>`}
      ${response.outputs.map((output) => html`<h3>${output.name} <small>${output.datatype} ${output.shape.join(" × ")}</small></h3><pre class="answer" tabindex="0">${output.text}</pre>
        ${output.classes && html`<ol class="classes">${output.classes.map((each) => html`<li><b>${each.label}</b> ${each.value}</li>`)}</ol>`}`)}
      ${response.parameters && html`<dl>${Object.entries(response.parameters).map(([key, value]) => html`<dt>${key}</dt><dd>${value}</dd>`)}</dl>`}</section>`)}
    ${skipped > 0 && html`<p class="note">… and ${skipped} more responses</p>`}
    ${error && html`<p class="notice bad" role="alert">${error}</p>`}
    ${needs && html`<${Secret} needs=${needs} again=${state.again ?? send} />`}
    ${done && html`<p class="note" id="took">${error ? "Failed" : "Answered"} after ${seconds(state.seconds)}.</p>`}
    ${done && timeline && html`<${Timeline} timeline=${timeline} total=${Math.max(state.seconds, 1e-6)} />`}</div>`;
}

function Snippets() {
  return html`<div class="snippets"><div class="row" role="tablist" aria-label="The request as">
      ${Object.keys(snippets).map((name) => html`<button type="button" role="tab" aria-selected=${name === shown} onClick=${() => { shown = name; show(); }}>${name}</button>`)}
      <button type="button" id="copy" onClick=${copy}>Copy</button></div>
    <pre class="answer" id="snippet" tabindex="0">${snippets[shown]}</pre></div>`;
}

function Trial() {
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  return html`<form class="trial" onSubmit=${submit}>
      ${trial.inputs.map((input) => html`<${Field} key=${input.name} input=${input} />`)}
      <details open=${parameters !== ""}><summary>Parameters</summary>
        <textarea aria-label="Parameters as JSON" rows="2" spellcheck=${false} placeholder=${'{"priority": 1, "sequence_id": 7, "sequence_start": true}'} value=${parameters} onInput=${(event) => { parameters = event.target.value; snippets = null; }}></textarea></details>
      <div class="row"><button class="primary" disabled=${state.busy}>${state.busy ? "Running…" : "Send"}</button>
        ${state.busy && html`<button type="button" onClick=${() => running?.abort()}>Stop</button>`}
        <button type="button" id="as-code" onClick=${write}>As code</button></div>
    </form>
    <${Answer} />
    ${snippets && html`<${Snippets} />`}`;
}

function show() {
  draw(html`<${Trial} />`, target);
}

if (trial) show();
