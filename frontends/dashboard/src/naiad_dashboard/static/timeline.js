// The timeline of a request, drawn as the server draws it (spans.py).

import { html, seconds } from "./common.js";

const PHASES = [["input", "started", "input_done"], ["infer", "input_done", "infer_done"], ["output", "infer_done", "output_done"]];

function spansOf(course, prefix, end) {
  const at = (entry, key) => (entry[key] ?? 0) / 1e6;
  const spans = [];
  let waited = at(course, "queued");
  const executions = course.executions ?? [];
  if (!course.cache && !executions.length && !course.steps?.length) spans.push({ label: `${prefix}queue`, kind: "queue", start: waited, end });
  if (course.cache) spans.push({ label: `${prefix}cache ${course.cache}`, kind: "cache", start: waited, end: at(course, "looked_up") });
  for (const execution of executions) {
    spans.push({ label: `${prefix}queue`, kind: "queue", start: waited, end: at(execution, "started") });
    for (const [kind, begin, done] of PHASES) {
      if (done in execution) {
        spans.push({ label: prefix + kind, kind, start: at(execution, begin), end: at(execution, done) });
        waited = at(execution, done);
      }
    }
  }
  if (!prefix && executions.length && waited < end) spans.push({ label: "answer", kind: "answer", start: waited, end });
  for (const step of course.steps ?? []) {
    const done = (step.executions ?? []).filter((each) => "output_done" in each).map((each) => at(each, "output_done"));
    const answered = "answered" in step ? at(step, "answered") : done.length ? Math.max(...done) : end;
    spans.push({ label: prefix + step.model, kind: "step", start: at(step, "queued"), end: answered });
    spans.push(...spansOf(step, `${prefix}· `, answered));
  }
  return spans;
}

const short = (text) => (text.length > 26 ? `${text.slice(0, 25)}…` : text);

export function Timeline({ timeline, total }) {
  const spans = spansOf(timeline, "", total);
  const x = (time) => (170 + (time / total) * 460).toFixed(1);
  const bottom = spans.length * 22 + 15;
  return html`<svg class="timeline" viewBox=${`0 0 640 ${bottom + 3}`} role="img" aria-label=${`Timeline of ${seconds(total)}`}>
    ${spans.map((span, index) => html`<g class=${span.kind}>
      <rect x=${x(span.start)} y=${index * 22 + 3} width=${Math.max(1.5, ((span.end - span.start) / total) * 460).toFixed(1)} height="15" rx="3" />
      <text x="0" y=${index * 22 + 15}>${short(span.label)}</text>
      <title>${span.label}: ${seconds(span.end - span.start)}, from ${seconds(span.start)}</title></g>`)}
    <text class="axis" x="170" y=${bottom}>0</text><text class="axis end" x="630" y=${bottom}>${seconds(total)}</text></svg>`;
}
