// Where answers come from: recorded in this page (a report) or from the server that gave it. docs/viewer-data.md
import { signal } from "@preact/signals";
import { learn } from "./words.js";

/** How far the server's index is; null in a report. */
export const progress = signal(null);
const POLL = { ready: 3000, failed: 3000 }; // ms; faster while there is something to wait for
const cache = new Map();
let recorded = null;
let load = (address, options) => fetch(address, options);

/** Take the answers that the page holds, or ask the server until it has some. */
export async function openSource(document) {
  const element = document.getElementById("answers");
  if (isFramed()) load = throughParent();
  if (element === null) return new Promise((resolve) => poll(resolve));
  recorded = JSON.parse(await unpacked(element.textContent.trim()));
  Object.values(recorded).forEach(learned);
}

/** The answer for a path. Each is asked for once, until the server has newer ones. */
export function get(path) {
  if (!cache.has(path)) cache.set(path, (recorded === null ? fromServer(path) : fromPage(path)).then(learned));
  return cache.get(path);
}

function learned(answer) {
  learn(answer.words);
  return answer;
}

async function fromPage(path) {
  if (!Object.hasOwn(recorded, path)) throw new Error(`not in this report: ${path}`);
  return recorded[path];
}

async function fromServer(path) {
  const response = await load(`api/${path}`, { headers: { Accept: "application/json" } });
  return answerOf(response);
}

/** Asks the page that shows this one in a frame, as a notebook does, which has its own way to the dump. */
function throughParent() {
  const waiting = new Map();
  let asked = 0;
  addEventListener("message", ({ source, data }) => {
    if (source !== parent || !waiting.has(data?.number)) return;
    waiting.get(data.number)(new Response(data.body, { status: data.status }));
    waiting.delete(data.number);
  });
  return (address) => new Promise((resolve) => {
    waiting.set(asked += 1, resolve);
    parent.postMessage({ number: asked, address: String(address) }, "*");
  });
}

async function answerOf(response) {
  if (response.ok) return response.json();
  const text = await response.text();
  throw new Error(text.startsWith("{") ? JSON.parse(text).error : text);
}

async function poll(whenFilled) {
  let wait = 500;
  try {
    const now = await fromServer("progress");
    if (now.version !== progress.value?.version) cache.clear();
    wait = POLL[now.stage] ?? wait;
    if (JSON.stringify(now) !== JSON.stringify(progress.value)) progress.value = now;
  } catch (error) {
    progress.value = { ...progress.value, stage: "gone", message: error.message };
    wait = 3000;
  }
  if (progress.value?.version > 0) whenFilled();
  setTimeout(() => poll(whenFilled), wait);
}

/** The address of a part of a tensor: kind is picture, text or npy. */
export function partAddress(kind, parts, number, query) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== undefined);
  return `api/${kind}/${parts.map(encodeURIComponent).join("/")}/${number}?${new URLSearchParams(kept)}`;
}

/** Cells of a part of a tensor: {about, least, largest, mean, flags}; docs/viewer-data.md. */
export async function getPicture(address, stop) {
  const response = await load(address, { signal: stop });
  if (!response.ok) await answerOf(response);
  const buffer = await response.arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const about = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const cells = about.cell_rows * about.cell_columns;
  const at = 4 + length;
  const [least, largest, mean] = [0, 1, 2].map((part) => new Float32Array(buffer, at + 4 * cells * part, cells));
  return { about, least, largest, mean, flags: new Uint8Array(buffer, at + 12 * cells, cells) };
}

export async function getText(address, stop) {
  return answerOf(await load(address, { signal: stop }));
}

const token = () => document.querySelector("meta[name=msdump-token]")?.content;

/** Whether a notebook shows the page in a frame, where it can neither load nor save anything by itself. */
export const isFramed = () => document.querySelector("meta[name=msdump-frame]") !== null;

/** Whether the server takes pairs. */
export const canAct = () => token() !== undefined;

/** Have two operators written to the mapping file; the comparison comes again by itself. */
export async function addPair(mine, golden) {
  const headers = { "Content-Type": "application/json", "X-Msdump-Token": token() };
  return answerOf(await load("api/pairs", { method: "POST", headers, body: JSON.stringify({ mine, golden }) }));
}

async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}
