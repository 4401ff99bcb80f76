// What the pages do beside showing what the server made: follow a session, keys,
// the slider. Without it they work by links and forms.
"use strict";

const $ = (id) => document.getElementById(id);

// The end of the page is kept in sight for who is there.
const atEnd = () => window.innerHeight + window.scrollY > document.documentElement.scrollHeight - 120;
const toEnd = () => window.scrollTo(0, document.documentElement.scrollHeight);

function follow(list) {
  let after = Number(list.dataset.after), source = null, gone = false;
  const live = $("live"), connection = $("connection");
  const keeping = (change) => {
    const end = atEnd();
    change();
    if (end) toEnd();
  };
  const calm = () => { live.textContent = ""; live.hidden = true; };

  function record(e) {
    const seq = Number(e.lastEventId);
    if (seq <= after) return; // it is there already
    after = seq;
    const made = document.createElement("template");
    made.innerHTML = e.data;
    const item = made.content.firstElementChild;
    keeping(() => {
      const into = item.dataset.into;
      const owner = into && [...list.children].findLast((o) => o.dataset.key === into);
      if (owner) owner.append(...item.childNodes);
      else list.append(item);
    });
  }

  function questions(e) {
    const made = document.createElement("template");
    made.innerHTML = e.data;
    const all = (root) => [...root.querySelectorAll("[data-question]")].map((q) => q.dataset.question).join();
    if (all(made.content) === all($("questions"))) return; // what is being typed stays
    keeping(() => $("questions").replaceChildren(made.content));
    const n = $("questions").querySelectorAll("[data-question]").length;
    document.title = (n > 0 ? "(" + n + ") " : "") + document.title.replace(/^\(\d+\) /, "");
  }

  // What can be said, and where, changes with who works in the session; what is
  // being typed stays.
  function say(e) {
    const made = document.createElement("template");
    made.innerHTML = e.data;
    const was = $("say").firstElementChild, now = made.content.firstElementChild;
    if (was && was.dataset.shape === now.dataset.shape) return;
    const old = $("prompt"), held = old && document.activeElement === old;
    const typed = old && [old.value, old.selectionStart, old.selectionEnd];
    keeping(() => $("say").replaceChildren(made.content));
    const field = $("prompt");
    if (!field || !typed) return;
    field.value = typed[0];
    field.setSelectionRange(typed[1], typed[2]);
    if (held) field.focus({ preventScroll: true });
  }

  function open() {
    if (source || gone) return;
    source = new EventSource(list.dataset.events + "?after=" + after);
    source.addEventListener("open", () => { connection.textContent = ""; });
    source.addEventListener("error", () => {
      connection.textContent = list.dataset.lost;
      if (source && source.readyState === EventSource.CLOSED) { close(); setTimeout(() => document.hidden || open(), 2000); }
    });
    source.addEventListener("record", record);
    source.addEventListener("passed", (e) => { after = Math.max(after, Number(e.lastEventId)); });
    source.addEventListener("draft", (e) => keeping(() => { live.hidden = false; live.textContent += e.data; }));
    source.addEventListener("anew", calm);
    source.addEventListener("state", (e) => {
      const todos = $("todos"), shut = todos && !todos.open;
      $("state").innerHTML = e.data;
      if (shut && $("todos")) $("todos").open = false;
    });
    source.addEventListener("questions", questions);
    source.addEventListener("say", say);
    source.addEventListener("lost", (e) => { close(); gone = true; connection.textContent = e.data; });
    source.addEventListener("gone", (e) => { close(); gone = true; connection.textContent = e.data; $("say").remove(); $("questions").replaceChildren(); });
  }

  function close() {
    if (source) source.close();
    source = null;
  }

  // A page that nobody looks at holds no connection; it goes on from where it was.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", () => document.hidden || open());
  if (!document.hidden) open();
  if (!new URLSearchParams(location.search).has("at")) toEnd();
}

// What is marked so is looked at again while somebody looks at it. Where a question
// stands it changes with the questions alone: what is being ticked and typed stays.
function refresh(parts) {
  const asked = (root) => [...root.querySelectorAll("[data-question]")].map((q) => q.dataset.question).join();
  setInterval(async () => {
    if (document.hidden) return;
    const answer = await fetch(location.href).catch(() => null);
    if (!answer || !answer.ok) return;
    const made = new DOMParser().parseFromString(await answer.text(), "text/html");
    document.title = made.title;
    for (const id of parts) {
      const now = made.getElementById(id), was = $(id);
      if (!now || !was || was.contains(document.activeElement)) continue;
      if (asked(was) + asked(now) ? asked(was) === asked(now) : was.innerHTML === now.innerHTML) continue;
      was.replaceWith(now);
    }
  }, 5000);
}

// What is typed and not sent outlives the page, in this tab.
function draft(field) {
  const key = "draft:" + location.pathname;
  field.value = field.value || sessionStorage.getItem(key) || "";
  document.addEventListener("input", (e) => { if (e.target.id === "prompt") sessionStorage.setItem(key, e.target.value); });
  document.addEventListener("submit", (e) => { if (e.target.querySelector("#prompt")) sessionStorage.removeItem(key); });
}

// The slider shows the record it stands on.
function slide(form) {
  const range = $("at");
  let timer = 0, latest = 0;
  range.addEventListener("input", () => {
    form.querySelector("output").textContent = range.value;
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const turn = ++latest, url = new URL(form.action);
      url.searchParams.set("at", range.value);
      const answer = await fetch(url);
      if (!answer.ok || turn !== latest) return;
      const made = new DOMParser().parseFromString(await answer.text(), "text/html");
      const asof = made.getElementById("asof");
      if (!asof) return;
      $("asof").replaceWith(asof);
      history.replaceState(null, "", url);
    }, 150);
  });
}

// What was reviewed is this browser's own note.
function review(boxes) {
  const note = $("reviewed");
  const count = () => { note.textContent = note.dataset.say.replace("{}", boxes.filter((b) => b.checked).length); };
  const fold = (box) => { box.closest("article").querySelector("details").open = !box.checked; };
  for (const box of boxes) {
    const key = "reviewed:" + box.dataset.review;
    box.checked = sessionStorage.getItem(key) === "1";
    if (box.checked) fold(box);
    box.addEventListener("change", () => {
      if (box.checked) sessionStorage.setItem(key, "1");
      else sessionStorage.removeItem(key);
      fold(box);
      count();
    });
  }
  if (boxes.some((b) => b.checked)) count();
}

// j and k go from one thing to the next.
function step(by) {
  const all = [...document.querySelectorAll("article.review, #timeline > li, .timeline > li, .sessions > li")];
  if (all.length === 0) return;
  const now = all.indexOf(document.activeElement.closest("[data-at]"));
  const next = all[Math.min(Math.max(now < 0 ? (by > 0 ? 0 : all.length - 1) : now + by, 0), all.length - 1)];
  for (const o of all) o.removeAttribute("data-at");
  next.setAttribute("data-at", "");
  const target = next.querySelector("a, summary") || next;
  target.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (e) => {
  const typing = e.target.closest("input, textarea, select");
  if (typing) {
    if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && typing.form && typing.id === "prompt") { e.preventDefault(); typing.form.requestSubmit(); }
    if (e.key === "Escape") typing.blur();
    return;
  }
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const does = { "/": () => $("q").focus(), p: () => $("prompt") && $("prompt").focus(), j: () => step(1), k: () => step(-1), g: () => document.querySelector(".home").click() }[e.key];
  if (does) { e.preventDefault(); does(); }
});

if ($("timeline") && $("timeline").dataset.events) follow($("timeline"));
const fresh = [...document.querySelectorAll("[data-refresh]")].map((o) => o.id);
if (fresh.length > 0) refresh(fresh);
if ($("prompt")) draft($("prompt"));
if ($("replay")) slide($("replay"));
const boxes = [...document.querySelectorAll("[data-review]")];
if (boxes.length > 0) review(boxes);
const here = new URLSearchParams(location.search).get("at");
if (here && $("r" + here)) { $("r" + here).classList.add("here"); $("r" + here).scrollIntoView({ block: "center" }); }
