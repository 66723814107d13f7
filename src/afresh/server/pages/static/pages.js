// What pages do while they are looked at. Everything that is shown can be read without it.
"use strict";

const formKey = document.body.dataset.formKey || "";

async function send(address, body, media) {
  const headers = { "X-Afresh-Part": "1", "X-Afresh-Form": formKey };
  if (media) headers["Content-Type"] = media;
  const answer = await fetch(address, { method: body === undefined ? "GET" : "POST", headers, body });
  if (answer.status === 401) { location.reload(); }
  const text = await answer.text();
  const told = (answer.headers.get("Content-Type") || "").includes("json") ? JSON.parse(text) : null;
  return { ok: answer.ok && !(told && told.code), text, told };
}

const FORM = "application/x-www-form-urlencoded";
const typed = (form, pressed) => new URLSearchParams(new FormData(form, pressed)).toString();
const unreachable = { detail: "The service could not be reached. Asking again is safe: what was answered is free.", place: "" };

function replace(element, text) {
  const made = document.createElement("template");
  made.innerHTML = text;
  element.replaceChildren(made.content);
}

// A mistake is shown at its field, and nowhere else.
function tell(form, problem, otherwise) {
  for (const place of form.querySelectorAll("[data-mistake]")) {
    const mine = problem && place.dataset.mistake === (form.querySelector(`[data-mistake="${problem.place}"]`) ? problem.place : otherwise);
    place.textContent = mine ? problem.detail : "";
    place.hidden = !mine;
    const details = place.closest("details");
    if (mine && details) details.open = true;
  }
  for (const field of form.querySelectorAll("input[type=text], textarea")) {
    const mine = problem && (field.name === problem.place || (problem.place === "bounds" && ["low", "high"].includes(field.name)));
    if (mine) field.setAttribute("aria-invalid", "true"); else field.removeAttribute("aria-invalid");
  }
}

// The price of a question, and what is wrong with it, while it is typed; what was said when it was asked stays.
function pricing(form) {
  const price = form.querySelector(".price");
  let timer, turn = 0, asked = false;
  const show = (words, problem) => { price.textContent = words; if (!asked) tell(form, problem, "expression"); };
  const look = async () => {
    const mine = ++turn;
    if (!form.elements.expression.value.trim()) { show("", null); return; }
    let found;
    try { found = await send(form.dataset.price, typed(form), FORM); } catch { return; }
    if (mine !== turn) return;
    if (found.ok) show(`${found.told.question}: ${found.told.words}`, null); else show("", found.told);
  };
  form.addEventListener("input", () => { asked = false; clearTimeout(timer); timer = setTimeout(look, 250); });
  form.addEventListener("submit", () => { asked = true; });
  if (form.elements.expression.value) look();
}

// While the service works, buttons rest and a bar moves; after two seconds it says for how long it has been working.
function busy(form) {
  const buttons = form.querySelectorAll("button"), line = document.createElement("p"), bar = document.createElement("progress");
  const words = document.createElement("span"), began = Date.now();
  line.className = "working";
  line.setAttribute("role", "status");
  bar.setAttribute("aria-label", "Working");
  line.append(bar, words);
  for (const each of buttons) each.disabled = true;
  const late = setTimeout(() => form.append(line), 400);
  const timer = setInterval(() => { const seconds = Math.round((Date.now() - began) / 1000); if (seconds >= 2) words.textContent = `Working for ${seconds} seconds …`; }, 1000);
  return () => { clearTimeout(late); clearInterval(timer); line.remove(); for (const each of buttons) each.disabled = false; };
}

// Only the fields that a kind of question has.
function choosing(form) {
  const show = () => { for (const field of form.querySelectorAll("[data-kinds]")) field.hidden = !field.dataset.kinds.split(" ").includes(form.elements.kind.value); };
  form.elements.kind.addEventListener("change", () => { show(); tell(form, null); form.dispatchEvent(new Event("input")); });
  show();
}

function asking(form, otherwise) {
  const answers = document.getElementById("answers");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const body = typed(form, event.submitter), done = busy(form);
    let found;
    try { found = await send(form.action, body, FORM); } catch { found = { ok: false, told: unreachable }; }
    done();
    tell(form, found.ok ? null : found.told, otherwise);
    if (!found.ok) return;
    const made = document.createElement("template");
    made.innerHTML = found.text;
    answers.prepend(made.content);
    renew();
  });
}

// Names of columns, offered while one is typed: arrows choose, Enter or Tab takes, Escape leaves.
function completing(input, columns) {
  const list = document.createElement("ul");
  list.className = "options";
  list.id = `${input.id}-options`;
  list.setAttribute("role", "listbox");
  list.setAttribute("aria-label", "Columns");
  list.hidden = true;
  input.after(list);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": list.id })) input.setAttribute(name, value);
  let chosen = -1, start = 0;
  const close = () => { list.hidden = true; chosen = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); };
  const mark = (place) => {
    chosen = place;
    [...list.children].forEach((each, index) => each.setAttribute("aria-selected", String(index === place)));
    if (place >= 0) { input.setAttribute("aria-activedescendant", list.children[place].id); list.children[place].scrollIntoView({ block: "nearest" }); }
  };
  const take = (place) => {
    const name = list.children[place].dataset.name, end = input.selectionStart;
    const written = /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`;
    input.setRangeText(written, start, end, "end");
    close();
    input.dispatchEvent(new Event("input", { bubbles: true }));
    close();
  };
  input.addEventListener("input", () => {
    const before = input.value.slice(0, input.selectionStart);
    const word = (before.match(/[\p{L}_][\p{L}\p{N}_]*$/u) || [""])[0];
    start = before.length - word.length;
    const quoted = (before.match(/'/g) || []).length % 2 === 1;
    const found = word && !quoted ? columns.filter(([name]) => name.toLowerCase().startsWith(word.toLowerCase()) && name !== word) : [];
    if (!found.length) { close(); return; }
    list.replaceChildren(...found.slice(0, 8).map(([name, kind], index) => {
      const item = document.createElement("li"), type = document.createElement("small");
      item.id = `${list.id}-${index}`;
      item.setAttribute("role", "option");
      item.dataset.name = name;
      type.textContent = kind;
      item.append(name, type);
      item.addEventListener("mousedown", (event) => { event.preventDefault(); take(index); });
      return item;
    }));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(0);
  });
  input.addEventListener("keydown", (event) => {
    if (list.hidden) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step) { event.preventDefault(); mark((chosen + step + list.children.length) % list.children.length); }
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) { event.preventDefault(); take(chosen); }
    else if (event.key === "Escape") { event.preventDefault(); close(); }
  });
  input.addEventListener("blur", close);
}

// What others ask appears by itself.
let renewing = Promise.resolve();
function renew() {
  renewing = renewing.then(async () => {
    const old = document.getElementById("live");
    if (!old) return;
    const found = await send(location.pathname + location.search);
    if (!found.ok) return;
    const made = document.createElement("template");
    made.innerHTML = found.text;
    const fresh = made.content.getElementById("live");
    if (!fresh || fresh.dataset.changes === old.dataset.changes) return;
    const known = new Set([...old.querySelectorAll("tbody td.number:first-child")].map((each) => each.textContent));
    for (const cell of fresh.querySelectorAll("tbody td.number:first-child")) if (!known.has(cell.textContent)) cell.parentElement.classList.add("new");
    const inside = old.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    old.replaceWith(fresh);
    const options = fresh.querySelector("template[data-options]"), against = document.getElementById("against");
    if (options && against) {
      const chosen = against.value;
      against.replaceChildren(against.firstElementChild, options.content.cloneNode(true));
      against.value = chosen;
    }
    if (inside) fresh.querySelector(`[href="${CSS.escape(inside)}"]`)?.focus();
  }).catch(() => {});
  return renewing;
}

function following(address) {
  const events = new EventSource(address);
  events.addEventListener("changed", renew);
  addEventListener("pagehide", () => events.close());
}

// Files, dropped or chosen.
function dropping(form, work) {
  const zone = form.querySelector(".drop"), input = form.querySelector("input[type=file]");
  for (const name of ["dragenter", "dragover"]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.add("over"); });
  for (const name of ["dragleave", "drop"]) zone.addEventListener(name, () => zone.classList.remove("over"));
  zone.addEventListener("drop", (event) => {
    event.preventDefault();
    if (!event.dataTransfer.files.length) return;
    input.files = event.dataTransfer.files;
    input.dispatchEvent(new Event("change"));
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  work(input);
}

function verifying(form) {
  const place = document.getElementById("verified");
  const check = async (input) => {
    if (!input.files.length) return;
    place.textContent = "";
    const body = new FormData(form), done = busy(form);
    let found;
    try { found = await send(form.action, body); } catch { found = { ok: false, told: unreachable }; }
    done();
    tell(form, found.ok ? null : { ...found.told, place: "file" });
    if (found.ok) replace(place, found.text); else place.textContent = "";
  };
  dropping(form, (input) => { input.addEventListener("change", () => check(input)); form.addEventListener("submit", () => check(input)); });
}

function scoring(form) {
  const answers = document.getElementById("answers"), chosen = document.getElementById("chosen");
  const fail = (detail) => tell(form, { detail, place: "file" });
  dropping(form, (input) => {
    input.addEventListener("change", () => { chosen.textContent = input.files.length ? `${input.files[0].name}, ${input.files[0].size.toLocaleString("en")} bytes` : ""; tell(form, null); });
    form.addEventListener("submit", async () => {
      const file = input.files[0];
      if (!file) { fail("Choose a file first."); return; }
      const body = new FormData(form), done = busy(form);
      let found;
      try { found = await send(form.action, body); } catch { found = { ok: false, told: unreachable }; }
      done();
      if (!found.ok) { fail(found.told ? found.told.detail : "The service failed; send it again, which is safe."); return; }
      tell(form, null);
      replace(answers, found.text);
      renew();
    });
  });
}

// Sliders that cannot break the sum: one can only take what the others leave.
function sharing(form) {
  const whole = Number(form.dataset.whole), rest = document.getElementById("rest");
  const numbers = [...form.querySelectorAll("input[type=number]")];
  const slider = (number) => form.querySelector(`input[type=range][data-for="${number.id}"]`);
  const value = (number) => Math.max(Math.floor(Number(number.value)) || 0, 0);
  // Who has a share no longer draws on the rest, which must keep what the others have spent of it.
  const kept = () => Number(form.dataset.others) + numbers.reduce((sum, each) => sum + (each.dataset.had ? (each.value === "" ? Number(each.dataset.spent) : 0) : (each.value === "" ? 0 : -Number(each.dataset.spent))), 0);
  const show = () => {
    const left = whole - numbers.reduce((sum, each) => sum + value(each), 0);
    rest.textContent = `${left.toLocaleString("en")} of ${whole.toLocaleString("en")} answers are left for those without a share.`;
  };
  const settle = (number, wanted) => {
    const others = numbers.filter((each) => each !== number).reduce((sum, each) => sum + value(each), 0);
    if (number.value === "" && !wanted) wanted = 0;
    const most = Math.max(whole - others - Math.max(kept(), 0), 0), least = Number(number.dataset.spent);
    const found = Math.min(Math.max(wanted, least), Math.max(most, least));
    number.value = String(found);
    if (slider(number)) { slider(number).value = String(found); slider(number).setAttribute("aria-valuetext", `${found} of ${whole}`); }
    show();
  };
  for (const number of numbers) {
    number.dataset.had = number.value === "" ? "" : "1";
    number.addEventListener("change", () => { if (number.value === "") { if (slider(number)) slider(number).value = "0"; show(); } else settle(number, value(number)); });
    const range = slider(number);
    if (range) { range.hidden = false; range.addEventListener("input", () => { number.value = range.value; settle(number, Number(range.value)); }); }
  }
  show();
}

const score = document.getElementById("score"), shares = document.getElementById("shares");
if (score) scoring(score);
if (shares) sharing(shares);
const verify = document.getElementById("verify");
if (verify) verifying(verify);
const ask = document.getElementById("ask"), many = document.getElementById("ask-many"), measure = document.getElementById("measure");
if (ask) {
  const columns = JSON.parse(ask.dataset.columns);
  pricing(ask);
  asking(ask, "expression");
  for (const name of ["expression", "where"]) completing(ask.elements[name], columns);
  choosing(measure);
  pricing(measure);
  asking(measure, "expression");
  for (const name of ["expression", "by", "where"]) completing(measure.elements[name], columns);
}
if (many) asking(many, "questions");
const followed = document.querySelector("[data-events]");
if (followed) following(followed.dataset.events);
