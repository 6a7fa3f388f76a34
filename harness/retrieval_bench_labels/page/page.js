"use strict";
// The page: one question at a time, by keyboard. Every text of the data goes through textContent:
// nothing of it is ever parsed as HTML.

(() => {
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("data").textContent);
  const offline = data.mode === "file";
  const transport = offline ? new FileTransport(data) : new ServerTransport();
  const asked = new Asked(byId("document"));
  const marking = new Marking(byId("text"), () => asked.paint());
  const NAME = "retrieval-bench label name";
  const RETRY_MS = 1500;
  let who = "";
  let state = null;
  let busy = false; // an answer is on its way: no key means anything
  let chosen = null; // what was selected when a finger came down on "Mark"

  const make = (tag, text, ...children) => {
    const node = document.createElement(tag);
    node.append(...(text === "" ? [] : [text]), ...children);
    return node;
  };
  const counted = (n, noun) => `${n.toLocaleString("en")} ${noun}${n === 1 ? "" : "s"}`;
  const say = (text) => (byId("said").textContent = text);

  // What was kept by the browser is a convenience: some keep nothing.
  const remember = (store, name) => {
    try {
      store().setItem(NAME, name);
    } catch {
      return;
    }
  };
  const remembered = (store) => {
    try {
      return store().getItem(NAME) || "";
    } catch {
      return "";
    }
  };
  const local = () => localStorage;
  const session = () => sessionStorage;

  const sentence = ({ queries, finished, pairs, judged, worth }) => {
    const file = offline ? " of this file" : "";
    const more = worth ? `about ${counted(worth, "more question")} ${worth === 1 ? "is" : "are"} worth judging` : "no more question is worth judging";
    return `${finished.toLocaleString("en")} of ${counted(queries, "question")}, ${judged.toLocaleString("en")} of ${counted(pairs, "document")}${file} judged; ${more}`;
  };

  // ---- what is shown ----
  const problem = (text, action, press) => {
    const place = byId("problem");
    place.replaceChildren(text);
    if (action) {
      const button = make("button", action);
      button.type = "button";
      button.addEventListener("click", press);
      place.append(button);
    }
  };

  const setBusy = (value) => {
    busy = value;
    document.body.setAttribute("aria-busy", String(value));
  };

  const show = (found) => {
    state = found;
    const { question, before, progress } = found;
    problem("");
    byId("entry").hidden = true;
    byId("head").hidden = false;
    byId("who").textContent = who;
    byId("progress").textContent = sentence(progress);
    for (const id of ["document", "foot", "query", "place"]) byId(id).hidden = !question;
    byId("end").hidden = Boolean(question);
    if (question) showQuestion(question, before);
    else showEnd(progress);
  };

  const showQuestion = (question, before) => {
    chosen = null;
    const { query, document: shown, place, of, again } = question;
    const text = byId("query");
    text.textContent = query.text;
    const where = `document ${place.toLocaleString("en")} of ${of.toLocaleString("en")}`;
    byId("place").replaceChildren(`${again ? "Others differ on this one: " : ""}${where} · `, make("bdi", shown.id));
    if (offline && !transport.kept) byId("place").append(" · This browser keeps no answers: save often.");
    byId("title").textContent = shown.title;
    byId("title").hidden = !shown.title;
    byId("text").classList.toggle("none", !shown.text);
    asked.set(query.text);
    marking.set(shown.text, before && before.span);
    if (!shown.text) byId("text").textContent = shown.title ? "There is no text but the title." : "The pool holds no text of this document.";
    byId("note").value = (before && before.note) || "";
    byId("noting").hidden = !byId("note").value;
    byId("marking").hidden = true;
    document.body.classList.remove("marks");
    for (const button of byId("grades").children) {
      button.setAttribute("aria-pressed", String(Boolean(before) && before.grade === Number(button.value)));
    }
    byId("undo").disabled = state.last === null;
    const page = byId("document");
    page.classList.remove("new");
    void page.offsetWidth; // so that the animation begins anew
    page.classList.add("new");
    scrollTo(0, 0);
    page.focus({ preventScroll: true });
    text.scrollTop = 0;
    if (text.scrollHeight > text.clientHeight + 1) text.tabIndex = 0;
    else text.removeAttribute("tabindex");
    say(`${before ? "Judge it again" : where[0].toUpperCase() + where.slice(1)}. Question: ${query.text.slice(0, 300)}. ${shown.title.slice(0, 200)}`);
  };

  const showEnd = (progress) => {
    byId("end-head").textContent = offline ? "You have judged all of this file." : `Nothing is left for you, ${who}.`;
    const next = byId("end-next");
    if (offline) next.replaceChildren("Save the file, and give it to whoever asked you. They read it with ", make("code", "retrieval-bench label import"), ".");
    else {
      const waiting = progress.disputed ? `On ${counted(progress.disputed, "document")} people differ: ${progress.disputed === 1 ? "it waits" : "they wait"} for somebody else. ` : "";
      const skipped = progress.skipped ? `${counted(progress.skipped, "document")} ${progress.skipped === 1 ? "was" : "were"} skipped and ${progress.skipped === 1 ? "has" : "have"} no grade. ` : "";
      next.replaceChildren(waiting, skipped, "What the answers say: ", make("code", "retrieval-bench label status"));
    }
    byId("end-save").hidden = !offline;
    byId("end-more").hidden = offline;
    byId("end-undo").disabled = state.last === null;
    byId("end").focus({ preventScroll: true });
    scrollTo(0, 0);
    if (offline && transport.unsaved) byId("end-save").focus();
    say(byId("end-head").textContent);
  };

  // ---- asking and answering ----
  const pause = () => new Promise((done) => setTimeout(done, RETRY_MS));

  // Ask until somebody answers; what is asked stays on the screen until then.
  const ask = async (what, unsaved) => {
    if (busy) return;
    setBusy(true);
    transport.waiting = unsaved;
    try {
      for (;;) {
        try {
          show(await what());
          return;
        } catch (error) {
          if (!(error instanceof Unreachable)) throw error;
          problem(`${unsaved ? "Not saved: " : ""}${error.message}. This page tries again by itself.`);
          await pause();
        }
      }
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      if (!state) enter(who); // the name is refused
      if (error.changed) problem(`Not saved: ${error.message}.`, "Reload", () => location.reload());
      else problem(`${unsaved ? "Not saved: " : ""}${error.message}.`);
    } finally {
      transport.waiting = false;
      setBusy(false);
    }
  };

  const grade = (value) => {
    if (busy || !state || !state.question) return;
    const { question } = state;
    if (marking.active) press("Enter");
    const answer = { grade: value, note: byId("note").value.trim(), span: marking.span };
    for (const button of byId("grades").children) button.setAttribute("aria-pressed", String(Number(button.value) === value && value !== null));
    ask(() => transport.answer(who, question, answer), true);
  };

  const undo = () => {
    if (busy || !state) return;
    if (state.last === null) {
      say("There is nothing to undo.");
      return;
    }
    const { last } = state;
    ask(() => transport.undo(who, last), false);
  };

  // ---- notes and marks ----
  const writeNote = () => {
    byId("noting").hidden = false;
    byId("note").focus();
  };

  const leaveNote = () => {
    byId("noting").hidden = !byId("note").value.trim();
    byId("document").focus({ preventScroll: true });
  };

  const mark = () => {
    if (busy || !state.question) return;
    const selected = marking.selected() || chosen;
    chosen = null;
    if (selected) marking.take(selected);
    else marking.begin();
    marked();
  };

  const marked = () => {
    byId("marking").hidden = !marking.active;
    document.body.classList.toggle("marks", marking.active);
    say(marking.range ? `${marking.active ? "" : "Marked: "}${marking.quoted.slice(0, 300)}` : "Nothing is marked.");
    if (!marking.active) byId("document").focus({ preventScroll: true });
  };

  const press = (key) => {
    const known = marking.press(key);
    if (known) marked();
    return known;
  };

  // ---- the file of an offline page ----
  const save = () => {
    if (!offline || !transport.who) return;
    const content = new Blob([`${JSON.stringify(transport.result(), null, 1)}\n`], { type: "application/json" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(content);
    link.download = `labels-${who.replace(/[^\p{L}\p{N}_-]+/gu, "-")}.json`;
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    transport.saved();
    say("Saved.");
  };

  addEventListener("beforeunload", (event) => {
    if (transport.unsaved || transport.waiting) event.preventDefault();
  });

  // ---- keys ----
  // A letter by its place where the keyboard writes another script, as a Korean one does.
  const keyOf = (event) => {
    const { key, code, shiftKey } = event;
    const shift = shiftKey && key.startsWith("Arrow") ? "Shift" : "";
    if (/^[a-z]$/i.test(key)) return key.toLowerCase();
    if (/^Key[A-Z]$/.test(code) && !/^[0-9?]$/.test(key)) return code[3].toLowerCase();
    if (/^Digit[0-3]$/.test(code) && !shiftKey && !/^[0-9?]$/.test(key)) return code[5];
    return shift + key;
  };

  const actions = {
    s: () => grade(null),
    u: undo,
    Backspace: undo,
    n: writeNote,
    m: mark,
    "?": () => byId("help").showModal(),
  };
  const atEnd = new Set(["u", "Backspace", "?"]);

  addEventListener("keydown", (event) => {
    if (event.isComposing || event.defaultPrevented) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "s" && offline) {
      event.preventDefault();
      save();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !state) return;
    if (event.target === byId("note")) {
      if (event.key === "Escape" || (event.key === "Enter" && !event.shiftKey)) {
        event.preventDefault();
        leaveNote();
      }
      return;
    }
    if (event.target.matches("input, textarea")) return;
    const key = keyOf(event);
    if (byId("help").open) {
      if (key === "?") byId("help").close();
      return;
    }
    if (busy) {
      if (/^([0-9a-z]|Backspace)$/.test(key)) event.preventDefault();
      return;
    }
    const onButton = event.target.matches("button") && (key === "Enter" || key === " ");
    if (marking.active && !onButton && press(key)) {
      event.preventDefault();
      return;
    }
    if (event.repeat) return; // a key that is held down judges one document
    if (state.question && /^[0-3]$/.test(key)) {
      event.preventDefault();
      grade(Number(key));
    } else if (Object.hasOwn(actions, key) && (state.question || atEnd.has(key))) {
      event.preventDefault();
      actions[key]();
    }
  });

  // ---- buttons ----
  const onClick = (id, action) => byId(id).addEventListener("click", action);
  for (const list of document.querySelectorAll(".guide")) {
    for (const [value, text] of Object.entries(data.guidelines)) {
      const meaning = make("dd", text);
      meaning.dir = "auto";
      list.append(make("dt", "", make("kbd", value)), meaning);
    }
  }
  for (const [value, text] of Object.entries(data.guidelines)) {
    const meaning = make("bdi", text);
    const button = make("button", "", make("kbd", value), meaning);
    button.type = "button";
    button.value = value;
    button.title = text;
    button.addEventListener("click", () => grade(Number(value)));
    byId("grades").append(button);
  }
  onClick("skip", () => grade(null));
  onClick("undo", undo);
  onClick("end-undo", undo);
  onClick("add-note", writeNote);
  onClick("mark", mark);
  byId("mark").addEventListener("pointerdown", () => (chosen = marking.selected()));
  onClick("ask", () => byId("help").showModal());
  onClick("close", () => byId("help").close());
  onClick("save", save);
  onClick("end-save", save);
  onClick("end-more", () => ask(() => transport.next(who), false));
  onClick("other", () => {
    if (busy) return;
    if (transport.unsaved) problem("Save the file first: it holds your answers.", "Save", save);
    else enter(who);
  });
  for (const button of byId("marking").children) button.addEventListener("click", () => press(button.dataset.key));
  for (const id of ["save", "save-key", "save-text"]) byId(id).hidden = !offline;

  // ---- who judges ----
  const enter = (name) => {
    state = null;
    problem("");
    for (const id of ["head", "document", "end", "foot"]) byId(id).hidden = true;
    byId("entry").hidden = false;
    byId("name").value = name;
    byId("name").focus();
    byId("name").select();
  };

  const start = (name) => {
    who = name;
    remember(local, name);
    remember(session, name);
    ask(() => transport.next(name), false);
  };

  byId("dataset").textContent = data.dataset;
  document.title = `Judge documents of ${data.dataset}`;
  byId("entry").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = byId("name").value.normalize("NFC").replace(/ +/g, " ").trim();
    if (name && !busy) start(name);
  });
  const known = remembered(session);
  if (offline && data.who) start(data.who);
  else if (known) start(known);
  else enter(remembered(local) || data.who);
})();
