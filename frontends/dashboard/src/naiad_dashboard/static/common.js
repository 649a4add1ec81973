// What all pages share: templates, figures as people read them, and the live stream.

import htm from "./vendor/htm.mjs";
import { h, render } from "./vendor/preact.mjs";

export const html = htm.bind(h);
export const base = document.body.dataset.base;
const ABSENT = "–";

export function draw(component, target) {
  if (!target) return;
  if (target.dataset.live) return render(component, target);
  const focused = target.contains(document.activeElement) && document.activeElement;
  target.dataset.live = "yes";
  target.replaceChildren();  // what the server rendered, for readers without JavaScript
  render(component, target);
  if (focused) [...target.querySelectorAll(focused.tagName)].find((each) => isAlike(each, focused))?.focus({ preventScroll: true });
}

// Whether two elements of one kind stand for the same: links to one page, others with one text.
function isAlike(one, other) {
  const text = (element) => element.textContent.replace(/\s+/g, "");
  return one.href ? one.href === other.href : text(one) === text(other);
}

function three(value) {
  if (value >= 100 || value === 0) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}

export function seconds(value) {
  if (value === null || value === undefined) return ABSENT;
  if (value >= 1) return `${three(value)} s`;
  return value >= 1e-3 ? `${three(value / 1e-3)} ms` : `${three(value / 1e-6)} µs`;
}

export function number(value) {
  if (value === null || value === undefined) return ABSENT;
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en");
  return three(value);
}

export function percent(value) {
  return value === null || value === undefined ? ABSENT : `${(value * 100).toFixed(0)} %`;
}

export function octets(value) {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (value < 1024) return `${three(value)} ${unit}`;
    value /= 1024;
  }
  return `${three(value)} TiB`;
}

export function clock(at) {
  return new Date(at * 1000).toISOString().slice(11, 19);
}

export function spark(values) {
  if (!values || values.length < 2) return "";
  const top = Math.max(...values.map((value) => value ?? 0), 1e-9);
  const step = 90 / (values.length - 1);
  return "M" + values.map((value, index) => `${(index * step).toFixed(1)} ${(19 - ((value ?? 0) / top) * 18).toFixed(1)}`).join("L");
}

export function modelPath(name, version) {
  return `${base}/models/${encodeURIComponent(name)}/versions/${version}`;
}

export function State({ state }) {
  return html`<span class=${`state ${state.toLowerCase()}`}>${state}</span>`;
}

export function Log({ lines }) {
  return lines.map((line) => html`<li class=${line.level.toLowerCase()}><time>${clock(line.at)}</time> <b>${line.level}</b> ${line.message}${line.traceback && html`<pre>${line.traceback}</pre>`}</li>`);
}

// The newest lines of a log are its last ones: they are in view at first, and as long as the reader does not scroll up.
function showEnd(log) {
  log.scrollTop = log.scrollHeight;
}

export function keepEnd(log, change) {
  const isAtEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 8;
  change();
  if (isAtEnd) showEnd(log);
}

document.querySelectorAll("ol.log").forEach(showEnd);

// Drawing waits from a press to its release, for ten seconds at most: a link that is replaced meanwhile would get no click.
let released = Promise.resolve();
addEventListener("pointerdown", ({ button }) => {
  if (button) return;
  released = new Promise((done) => {
    setTimeout(done, 10000);
    // the click follows the release within the same task
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(done), { once: true, capture: true });
  });
}, { capture: true });

// The stream of a view: `show(document, isFirst)` once a second while the page is visible.
export function watch(view, show) {
  const status = document.getElementById("connection");
  let source = null;
  function open() {
    if (source) return;
    source = new EventSource(`${base}/events/${view}`);
    const received = (isFirst) => async (event) => {
      await released;
      status.textContent = "";
      show(JSON.parse(event.data), isFirst);
    };
    source.addEventListener("first", received(true));
    source.addEventListener("next", received(false));
    source.addEventListener("error", () => {
      status.textContent = "connection lost, trying again";
      if (source && source.readyState === EventSource.CLOSED) {
        source = null;
        setTimeout(() => document.hidden || open(), 3000);
      }
    });
  }
  function close() {
    source?.close();
    source = null;
  }
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", () => document.hidden || open());
  if (!document.hidden) open();
}
