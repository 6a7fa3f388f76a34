"use strict";
(() => {
  // Every text from data goes through textContent: nothing of it is ever parsed as HTML.
  const make = (tag, given, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(given || {})) {
      if (name === "text") node.textContent = value;
      else if (value !== false) node.setAttribute(name, value);
    }
    node.append(...children);
    return node;
  };

  // ---- tables: a click on a head sorts by its column ----
  const words = new Intl.Collator(undefined, { numeric: true });
  const shown = (cell) => {
    const copy = cell.cloneNode(true);
    copy.querySelectorAll("sup, small").forEach((more) => more.remove());
    return copy.textContent.trim();
  };
  const number = (text) => {
    const found = /^(<\s*)?[-+−]?[\d,]*\.?\d+/.exec(text);
    return found ? parseFloat(found[0].replace(/[<,\s]/g, "").replace("−", "-")) - (found[1] ? 1e-9 : 0) : NaN;
  };
  const order = (rows, column, numeric, up) => {
    const keyed = rows.map((row) => [shown(row.cells[column]), row]);
    const key = new Map(keyed.map(([text, row]) => [row, numeric ? number(text) : text]));
    return [...rows].sort((one, other) => {
      const [a, b] = [key.get(one), key.get(other)];
      if (!numeric) return up ? words.compare(a, b) : words.compare(b, a);
      if (Number.isNaN(a) || Number.isNaN(b)) return Number.isNaN(a) - Number.isNaN(b);
      return up ? a - b : b - a;
    });
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    for (const head of table.tHead.rows[0].cells) {
      if (head.tagName !== "TH") continue;
      const button = make("button", { type: "button", text: head.textContent });
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const numeric = head.classList.contains("n");
        const now = head.getAttribute("aria-sort");
        // Figures start with the largest, words with the first.
        const up = now ? now === "descending" : !numeric;
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        body.append(...order([...body.rows], head.cellIndex, numeric, up));
      });
    }
  }

  // ---- metric and slice: one of the tables that are there ----
  const field = (label, options, chosen) => {
    const select = make("select", { "aria-label": label }, ...options.map(([value, text]) => make("option", { value, text })));
    select.value = chosen;
    return [make("label", {}, label, select), select];
  };
  for (const box of document.querySelectorAll(".choices")) {
    const tables = [...box.children];
    const values = (name) => [...new Set(tables.map((table) => table.dataset[name]))];
    if (tables.length < 2) continue;
    const [labelMetric, metric] = field("metric", values("metric").map((one) => [one, one]), tables[0].dataset.metric);
    const [labelSlice, slice] = field("queries", values("slice").map((one) => [one, one]), tables[0].dataset.slice);
    const show = () => {
      for (const one of tables) {
        one.hidden = one.dataset.metric !== metric.value || one.dataset.slice !== slice.value;
      }
    };
    for (const one of [metric, slice]) one.addEventListener("change", show);
    const controls = make("form", { class: "controls" }, labelMetric, ...(values("slice").length > 1 ? [labelSlice] : []));
    controls.addEventListener("submit", (event) => event.preventDefault());
    box.before(controls);
  }

  // ---- the explorer ----
  const PAGE = 20;
  const HITS = 10;
  const signed = (value) => (value < 0 ? "" : "+") + value.toFixed(4);
  const bdi = (text) => make("bdi", { text });

  const explore = (box) => {
    const data = JSON.parse(box.querySelector("script").textContent);
    const { systems, docs, queries, groups } = data;
    let [a, b] = data.pair;
    let most = PAGE;

    const all = systems.map((name, at) => [String(at), name]);
    const search = make("input", { type: "search", autocomplete: "off" });
    const [labelB, fieldB] = field("system", all, String(b));
    const [labelA, fieldA] = field("minus", all, String(a));
    const [labelSort, sort] = field("sort by", [
      ["size", "size of the difference"], ["gain", "largest gain"], ["loss", "largest loss"],
      ["low", "lowest value"], ["high", "highest value"], ["id", "id"]], "size");
    const [labelGroup, group] = field("only", [["", "all queries"]], "");
    const find = make("label", { class: "wide" }, "search ids and texts", search);
    const controls = make("form", { class: "controls", role: "search" },
      find, labelB, labelA, labelSort, labelGroup);
    controls.addEventListener("submit", (event) => event.preventDefault());
    const status = make("p", { class: "aside", role: "status" });
    const list = make("div", { class: "list" });
    const more = make("button", { type: "button", class: "more", text: "Show more" });

    const offer = () => {
      const kept = group.value;
      const labels = [["", "all queries"], ["b", `${systems[b]} is better`], ["a", `${systems[a]} is better`],
        ["tie", "equal, not 0"], ["miss", "both 0"]];
      groups.forEach((one, at) => {
        if (one.of === a || one.of === b) one.labels.forEach((text, i) => labels.push([`${at}:${i}`, text]));
      });
      group.replaceChildren(...labels.map(([value, text]) => make("option", { value, text })));
      group.value = labels.some(([value]) => value === kept) ? kept : "";
    };
    const gain = (query) => Math.round((query.v[b] - query.v[a]) * 1e4) / 1e4;
    const inside = (query) => {
      const which = group.value;
      const [at, i] = which.split(":");
      if (i) return query.p[at] === Number(i);
      const found = gain(query);
      if (which === "b") return found > 0;
      if (which === "a") return found < 0;
      if (which === "tie") return found === 0 && query.v[a] !== 0;
      return which !== "miss" || (found === 0 && query.v[a] === 0);
    };
    const keys = {
      size: (q) => -Math.abs(gain(q)), gain: (q) => -gain(q), loss: gain,
      low: (q) => q.v[b], high: (q) => -q.v[b], id: () => 0,
    };

    const hit = (query, system, doc, rank) => {
      const [id, title] = docs[doc];
      const facts = rank ? [`rank\u00a0${rank}`] : [];
      const grade = query.j[doc];
      if (grade !== undefined) facts.push(`grade\u00a0${grade}`);
      const found = (query.l[system] || {})[doc];
      if (found) {
        const legs = data.legs[system];
        legs.forEach((name, at) => facts.push(`${name}\u00a0${found[at] || "–"}`));
        if (found.length > legs.length) facts.push(data.fates[found[legs.length]]);
      }
      const note = make("small", {}, bdi(id), ...facts.map((fact) => ` · ${fact}`));
      const item = make("li", { class: grade >= 1 && "relevant" });
      if (title) item.append(make("span", { dir: "auto", text: title }), " ");
      item.append(note);
      return item;
    };
    const ranking = (query, system) => {
      const hits = query.r[system];
      const part = make("div", {}, make("h3", {}, bdi(systems[system]), ` ${query.v[system].toFixed(4)}`));
      const ranks = make("ol", {}, ...hits.slice(0, HITS).map((doc) => hit(query, system, doc)));
      part.append(hits.length ? ranks : make("p", { text: "This system returned nothing." }));
      const relevant = Object.keys(query.j).map(Number).filter((doc) => query.j[doc] >= 1);
      const below = relevant.filter((doc) => hits.indexOf(doc) >= HITS)
        .sort((one, other) => hits.indexOf(one) - hits.indexOf(other));
      const missed = relevant.filter((doc) => !hits.includes(doc));
      const listed = (text, found) => found.length && part.append(make("p", { text }), make("ul", {},
        ...found.map((doc) => hit(query, system, doc, hits.indexOf(doc) + 1))));
      listed("Relevant documents further below:", below);
      listed(`Relevant documents that are not among its ${data.k}:`, missed);
      if (hits.length > HITS) {
        const rest = make("button", { type: "button", class: "more", text: `Show all ${hits.length} hits` });
        rest.addEventListener("click", () => {
          ranks.append(...hits.slice(HITS).map((doc) => hit(query, system, doc)));
          rest.remove();
        });
        ranks.after(rest);
      }
      return part;
    };
    const entry = (query) => {
      const head = make("summary", {}, make("b", { class: "gain", text: signed(gain(query)) }), " ",
        make("bdi", { class: "id", text: query.i }), " ");
      if (query.t) head.append(make("span", { dir: "auto", text: query.t }));
      const node = make("details", { class: "query" }, head);
      node.addEventListener("toggle", () => {
        if (!node.open || node.childElementCount > 1) return;
        const said = groups.map((one, at) => (one.of === a || one.of === b) && one.labels[query.p[at]]);
        const text = said.filter(Boolean).join("; ");
        if (text) node.append(make("p", { class: "groups", text }));
        node.append(make("div", { class: "pair" }, ranking(query, b), ranking(query, a)));
      });
      return node;
    };
    const draw = () => {
      const wanted = search.value.trim().toLowerCase();
      const key = keys[sort.value];
      const found = queries
        .filter((q) => inside(q) && (!wanted || q.i.toLowerCase().includes(wanted)
          || (q.t || "").toLowerCase().includes(wanted)))
        .sort((one, other) => key(one) - key(other) || words.compare(one.i, other.i));
      list.replaceChildren(...found.slice(0, most).map(entry));
      status.textContent = `${found.length.toLocaleString("en")} of ${queries.length.toLocaleString("en")} `
        + `queries; ${data.metric} of ${systems[b]} minus ${systems[a]}`;
      more.hidden = found.length <= most;
    };
    const again = () => { most = PAGE; draw(); };
    more.addEventListener("click", () => {
      const first = list.children[most];
      most += PAGE;
      draw();
      (list.children[most - PAGE] || first || more).querySelector("summary")?.focus();
    });
    search.addEventListener("input", again);
    for (const field of [sort, group]) field.addEventListener("change", again);
    for (const field of [fieldA, fieldB]) {
      field.addEventListener("change", () => {
        [a, b] = [Number(fieldA.value), Number(fieldB.value)];
        offer();
        again();
      });
    }
    box.querySelector(".shown").hidden = false;
    box.querySelector(".still").replaceWith(controls, status, list, more);
    offer();
    draw();
  };
  document.querySelectorAll(".explorer").forEach(explore);
})();
