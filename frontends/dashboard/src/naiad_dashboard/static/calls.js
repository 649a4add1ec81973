// Requests of the page that run or change something: with the header that only this dashboard's scripts send, and with
// the secrets that the reader typed, which stay in this tab.

import { base, html } from "./common.js";

const TOKEN = "naiad-token";
const HEADERS = "naiad-headers";

function kept(key, otherwise) {
  return JSON.parse(sessionStorage.getItem(key) ?? JSON.stringify(otherwise));
}

export class Refused extends Error {
  constructor(message, needs) {
    super(message);
    this.needs = needs;  // the secret that is missing: { token: true } or { header: "its name" }
  }
}

// The response to a POST; throws Refused with what the server says.
export async function post(path, document, signal) {
  const token = path.startsWith("/actions/") && kept(TOKEN, "");
  const response = await fetch(base + path, {
    method: "POST",
    headers: { ...kept(HEADERS, {}), "Content-Type": "application/json", "naiad-dashboard": "1", ...(token && { Authorization: `Bearer ${token}` }) },
    body: JSON.stringify(document),
    signal,
  });
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({ error: `the server answered ${response.status}` }));
  throw new Refused(answer.error, answer.token || answer.header ? answer : null);
}

// A field for the secret that a refusal names; `again` repeats what was refused.
export function Secret({ needs, again }) {
  const label = needs.token ? "Token" : `Header ${needs.header}`;
  const keep = (event) => {
    event.preventDefault();
    const value = new FormData(event.target).get("secret").trim();
    if (needs.token) sessionStorage.setItem(TOKEN, JSON.stringify(value));
    else sessionStorage.setItem(HEADERS, JSON.stringify({ ...kept(HEADERS, {}), [needs.header]: value }));
    again();
  };
  return html`<form class="row" onSubmit=${keep}><label for="secret">${label}</label>
    <input id="secret" name="secret" type="password" autocomplete="off" required /><button>Use it</button></form>`;
}
