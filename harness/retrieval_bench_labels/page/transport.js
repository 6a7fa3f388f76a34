"use strict";
// Where questions come from and where answers go: a server on this machine, or this file itself.
// Each gives a state {question, before, last, progress}. It throws Refused where an answer cannot
// be taken as it is, and Unreachable where the same is worth another try.

class Refused extends Error {
  constructor(message, changed = false) {
    super(message);
    this.changed = changed;
  }
}

class Unreachable extends Error {}

class ServerTransport {
  constructor() {
    this.unsaved = false;
  }

  next(who) {
    return this.ask(`api/task?who=${encodeURIComponent(who)}`);
  }

  answer(who, question, { grade, note, span }) {
    const { query, document: shown, digest } = question;
    return this.ask("api/label", { who, query: query.id, doc: shown.id, digest, grade, note, span });
  }

  undo(who, number) {
    return this.ask("api/undo", { who, number });
  }

  async ask(path, body) {
    let reply, found;
    try {
      reply = await fetch(path, {
        method: body ? "POST" : "GET",
        headers: body ? { "Content-Type": "application/json" } : {},
        body: body && JSON.stringify(body),
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        signal: AbortSignal.timeout(40000),
      });
      found = await reply.json();
    } catch {
      throw new Unreachable("the server does not answer; start it again");
    }
    if (reply.ok) return found;
    const message = (found && found.error) || `status ${reply.status}`;
    if (reply.status >= 500 || reply.status === 403 || reply.status === 408) throw new Unreachable(message);
    throw new Refused(message, reply.status === 409);
  }
}

class FileTransport {
  constructor(data) {
    this.data = data;
    this.unsaved = false;
    this.kept = true; // by the browser, until the file is saved
    this.questions = data.tasks.flatMap(({ query, documents, again }) =>
      documents.map(({ id, digest }, at) => ({
        query,
        document: { id, ...data.documents[id] },
        digest,
        place: at + 1,
        of: documents.length,
        again,
      })),
    );
  }

  async next(who) {
    if (who !== this.who) this.open(who);
    return this.state();
  }

  async answer(who, question, { grade, note, span }) {
    const { query, document: shown, digest } = question;
    const key = FileTransport.key(question);
    this.answers.delete(key);
    this.answers.set(key, { query: query.id, doc: shown.id, digest, grade, note, span, at: new Date().toISOString() });
    this.keep(true);
    return this.state();
  }

  async undo() {
    const key = [...this.answers.keys()].pop();
    if (key === undefined) return this.state();
    const before = this.answers.get(key);
    this.answers.delete(key);
    this.keep(true);
    return { ...this.state(), question: this.questions.find((one) => FileTransport.key(one) === key), before };
  }

  // What is saved, and what `label import` reads.
  result() {
    const { fingerprint } = this.data;
    const labels = [...this.answers.values()];
    return { schema_version: 1, kind: "retrieval-bench labels", fingerprint, who: this.who, labels };
  }

  saved() {
    this.keep(false);
  }

  static key({ query, document: shown }) {
    return JSON.stringify([query.id, shown.id]);
  }

  open(who) {
    this.who = who;
    this.place = `retrieval-bench labels ${this.data.fingerprint} ${who}`;
    this.answers = new Map();
    const known = new Map(this.questions.map((one) => [FileTransport.key(one), one.digest]));
    let before = null;
    try {
      before = JSON.parse(localStorage.getItem(this.place));
    } catch {
      this.kept = false; // some browsers keep nothing for a file
    }
    for (const label of (before && before.labels) || []) {
      const key = JSON.stringify([label.query, label.doc]);
      if (known.get(key) === label.digest) this.answers.set(key, label);
    }
    this.unsaved = Boolean(before && before.unsaved && this.answers.size);
  }

  keep(unsaved) {
    this.unsaved = unsaved && this.answers.size > 0;
    try {
      localStorage.setItem(this.place, JSON.stringify({ labels: [...this.answers.values()], unsaved: this.unsaved }));
    } catch {
      this.kept = false;
    }
  }

  state() {
    const next = this.questions.find((one) => !this.answers.has(FileTransport.key(one))) || null;
    const graded = (one) => (this.answers.get(FileTransport.key(one)) || { grade: null }).grade !== null;
    const open = new Set(this.questions.filter((one) => !graded(one)).map((one) => one.query.id));
    const queries = new Map(this.questions.map((one) => [one.query.id, one.query.worth]));
    const progress = {
      queries: queries.size,
      finished: queries.size - open.size,
      pairs: this.questions.length,
      judged: this.questions.filter(graded).length,
      worth: [...open].filter((id) => queries.get(id)).length,
      disputed: 0,
    };
    return { who: this.who, question: next, before: null, last: this.answers.size || null, progress };
  }
}
