// Draws parts of a page anew when what they show has changed, adds a run's output as
// it comes, and lets items be dragged. Every page can be read, and every change made,
// without it. Whatever is put into a page was made and escaped by the server.

const state = document.getElementById("live-state");
const shown = new WeakMap(); // part → what was drawn last
const parts = () => [...document.querySelectorAll("[data-part]")];

// busy says that somebody is writing in a part: it is not drawn anew under their hands. An
// empty field in which the keyboard is can be: it is found again.
function busy(part) {
  const at = document.activeElement;
  if (part.contains(at) && at.matches("input, textarea, select") && !(at.matches("textarea[id]") && at.value === "")) return true;
  if (part.querySelector(".moving, .sending")) return true;
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
  if (!parts().length) return say("Live"); // of what somebody writes on nothing is drawn anew
  if (asking) {
    again = true;
    return;
  }
  asking = new AbortController();
  try {
    const answer = await fetch(location.href, { signal: asking.signal, cache: "no-store", redirect: "error" });
    if (!answer.ok) throw new Error(answer.statusText);
    heard = new Date();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of parts()) {
      const fresh = page.querySelector(`[data-part="${part.dataset.part}"]`);
      if (fresh && fresh.innerHTML !== shown.get(part) && !busy(part)) replace(part, fresh);
    }
    say("Live");
  } catch (err) {
    if (err.name !== "AbortError" && (await reach())) say("Not up to date: load the page anew");
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
  if (gone) {
    reach();
    return;
  }
  const topics = new Set(parts().flatMap((p) => p.dataset.topics.split(" ")));
  if (!live) {
    live = new EventSource(document.body.dataset.live);
    const hear = (name, fn) => live.addEventListener(name, (e) => {
      heard = new Date();
      fn?.(e);
    });
    hear("hello", () => {
      streaming = true;
      refresh();
    });
    hear("beat");
    hear("changed", (e) => {
      if (e.data.split(" ").some((t) => topics.has(t))) refresh();
    });
    live.addEventListener("error", async () => {
      if (streaming) heard = new Date(); // until now it would have been told of a change
      streaming = false;
      const closed = live?.readyState === EventSource.CLOSED;
      say("Connecting…");
      if ((await reach()) && closed) say("Not up to date: close other pages of the dashboard, and load this one anew");
    });
  }
  follow();
}

// A dashboard that has ended never comes back: its cookie is worthless, and the next one has
// another address. The way to it may be cut off for a while. Either is told above the page,
// which is old from then on, and what was written stays in its form.
let band = null;
const patience = 10000; // milliseconds for an answer that costs nothing
const quiet = 45000; // three beats of the stream
let streaming = false;
let heard = new Date(); // what is shown is as things were then, or later
let gone = false;
let reaching = null;
let later = 0;

// reach asks whether the dashboard is there.
function reach() {
  reaching ??= (async () => {
    let there = false;
    try {
      there = (await fetch(document.querySelector("link[rel=icon]").href, { cache: "no-store", redirect: "error", signal: AbortSignal.timeout(patience) })).ok;
    } catch {
      // nobody answers
    }
    reaching = null;
    if (there) found();
    else lost();
    return there;
  })();
  return reaching;
}

function lost() {
  if (!gone) {
    gone = true;
    hush();
    band = document.getElementById("gone-band").content.firstElementChild.cloneNode(true);
    const at = band.querySelector("time");
    at.dateTime = heard.toISOString();
    const day = heard.toDateString() === new Date().toDateString() ? {} : { day: "numeric", month: "short" };
    at.textContent = heard.toLocaleString("en-GB", { ...day, hour: "2-digit", minute: "2-digit", second: "2-digit" });
    document.getElementById("main").prepend(band);
    say("Not reached");
  }
  clearTimeout(later);
  later = setTimeout(() => gone && !document.hidden && reach(), 5000);
}

function found() {
  if (!gone) return;
  gone = false;
  band.remove();
  listen();
}

function hold() {
  if (!gone) return; // it has come back meanwhile
  band.querySelector(".held").hidden = false;
  band.focus();
}

setInterval(() => {
  if (streaming && !document.hidden && Date.now() - heard > quiet) reach();
}, patience);

// Nothing is sent, and no page left, into nowhere: the browser would show its own page of an
// error in place of what was written.
document.addEventListener("submit", async (e) => {
  const form = e.target;
  if (e.defaultPrevented || form.classList.contains("sent") || (form.method === "get" && !gone)) return;
  e.preventDefault();
  if (form.classList.contains("sending")) return;
  form.classList.add("sending");
  const there = await reach();
  form.classList.remove("sending");
  if (!there) {
    hold();
    return;
  }
  form.classList.add("sent");
  form.requestSubmit(e.submitter);
  form.classList.remove("sent");
});

document.addEventListener("click", async (e) => {
  const link = e.target.closest?.("a[href]");
  if (!gone || !link || e.defaultPrevented || e.button || e.ctrlKey || e.metaKey || e.shiftKey || link.origin !== location.origin || (link.hash && link.pathname === location.pathname)) return;
  e.preventDefault();
  if (await reach()) location.href = link.href;
  else hold();
});

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
  if (streaming) heard = new Date();
  streaming = false;
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
