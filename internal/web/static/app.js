// Draws parts of a page anew when what they show has changed, adds a run's output as
// it comes, and lets items be dragged. Every page can be read, and every change made,
// without it. Whatever is put into a page was made and escaped by the server.

const state = document.getElementById("live-state");
const shown = new WeakMap(); // part → what was drawn last
const parts = () => [...document.querySelectorAll("[data-part]")];

// busy says that somebody is writing in a part: it is not drawn anew under their hands.
function busy(part) {
  const at = document.activeElement;
  if (part.contains(at) && at.matches("input, textarea, select")) return true;
  if (part.querySelector(".moving")) return true;
  for (const field of part.querySelectorAll("input:not([type=hidden]), textarea")) {
    if (field.type === "checkbox" || field.type === "radio" ? field.checked !== field.defaultChecked : field.value !== field.defaultValue) return true;
  }
  for (const field of part.querySelectorAll("select")) {
    for (const option of field.options) if (option.selected !== option.defaultSelected && field.querySelector("[selected]")) return true;
  }
  return false;
}

let asking = null;
let again = false;

async function refresh() {
  if (asking) {
    again = true;
    return;
  }
  asking = new AbortController();
  try {
    const answer = await fetch(location.href, { signal: asking.signal, cache: "no-store", redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
      if (fresh && fresh.innerHTML !== shown.get(part) && !busy(part)) replace(part, fresh);
    }
    say("Live");
  } catch (err) {
    if (err.name !== "AbortError") say("Not up to date: load the page anew");
  } finally {
    asking = null;
    if (again) {
      again = false;
      refresh();
    }
  }
}

// replace draws a part anew, and keeps what is open and where the keyboard is.
function replace(part, fresh) {
  const html = fresh.innerHTML;
  const key = (d) => d.querySelector("summary")?.textContent;
  const open = new Set([...part.querySelectorAll("details[open]")].map(key));
  const at = document.activeElement;
  const focused = part.contains(at) ? path(part, at) : null;
  part.replaceChildren(...fresh.childNodes);
  shown.set(part, html);
  for (const d of part.querySelectorAll("details")) if (open.has(key(d))) d.open = true;
  if (focused) find(part, focused)?.focus({ preventScroll: true });
  drag(part);
}

// path names an element by what it is called, for it to be found again.
function path(part, el) {
  if (el.id) return "#" + CSS.escape(el.id);
  const href = el.getAttribute("href");
  if (href) return `a[href="${CSS.escape(href)}"]`;
  const form = el.closest("form");
  if (form) return `form[action="${CSS.escape(form.getAttribute("action"))}"] ${el.tagName.toLowerCase()}`;
  const label = el.getAttribute("aria-label");
  return label ? `[aria-label="${CSS.escape(label)}"]` : null;
}

const find = (part, selector) => part.querySelector(selector);

// Times that are told by how long ago they were go on, in the words of term.Ago.
function since(seconds) {
  if (seconds < 5) return "just now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 48 * 3600) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} days ago`;
}

setInterval(() => {
  if (document.hidden) return;
  for (const t of document.querySelectorAll("time[datetime]")) {
    const seconds = (Date.now() - Date.parse(t.dateTime)) / 1000;
    if (seconds >= 0 && (t.textContent.endsWith(" ago") || t.textContent === "just now")) t.textContent = since(seconds);
  }
}, 20000);

function say(text) {
  if (state && state.textContent !== text) state.textContent = text;
}

// Streams are open only while the page can be seen: a browser has few connections for
// one server, and a page in the background needs none.
let live = null;
let output = null;

function listen() {
  if (document.hidden) return;
  const topics = new Set(parts().flatMap((p) => p.dataset.topics.split(" ")));
  if (topics.size && !live) {
    live = new EventSource(document.body.dataset.live);
    live.addEventListener("hello", refresh);
    live.addEventListener("changed", (e) => {
      if (e.data.split(" ").some((t) => topics.has(t))) refresh();
    });
    live.addEventListener("error", () => say(live?.readyState === EventSource.CLOSED ? "The dashboard has ended" : "Connecting…"));
  }
  follow();
}

function follow() {
  const list = document.querySelector("[data-stream]");
  if (!list || output) return;
  output = new EventSource(list.dataset.stream);
  const ended = () => {
    output.close();
    output = null;
    delete list.dataset.stream;
  };
  output.addEventListener("output", (e) => {
    const low = window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 80;
    list.insertAdjacentHTML("beforeend", e.data);
    if (e.lastEventId) list.dataset.stream = list.dataset.stream.replace(/from=\d+/, "from=" + e.lastEventId);
    if (low) window.scrollTo(0, document.documentElement.scrollHeight);
  });
  output.addEventListener("ended", () => {
    ended();
    refresh();
  });
}

function hush() {
  live?.close();
  output?.close();
  live = output = null;
}

document.addEventListener("visibilitychange", () => (document.hidden ? hush() : listen()));
window.addEventListener("pagehide", hush);
window.addEventListener("pageshow", listen);

// Dragging an item onto a priority sends the form that the item has for it.
function drag(root) {
  for (const item of root.querySelectorAll("[data-item]")) {
    if (!item.querySelector("form")) continue;
    item.draggable = true;
    item.addEventListener("dragstart", (e) => {
      e.dataTransfer.setData("text/plain", item.dataset.item);
      e.dataTransfer.effectAllowed = "move";
      item.classList.add("moving");
    });
    item.addEventListener("dragend", () => item.classList.remove("moving"));
  }
  for (const lane of root.querySelectorAll("[data-priority]")) {
    lane.addEventListener("dragover", (e) => {
      if (!document.querySelector(".moving")) return;
      e.preventDefault();
      lane.classList.add("over");
    });
    lane.addEventListener("dragleave", (e) => {
      if (!lane.contains(e.relatedTarget)) lane.classList.remove("over");
    });
    lane.addEventListener("drop", (e) => {
      lane.classList.remove("over");
      const item = document.querySelector(".moving");
      const form = item?.querySelector("form");
      if (!form || item.closest("[data-priority]") === lane) return;
      e.preventDefault();
      form.elements.priority.value = lane.dataset.priority;
      form.requestSubmit();
    });
  }
}

// On a phone the parts stand in one line that scrolls.
document.querySelector(".side nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
drag(document);
listen();
