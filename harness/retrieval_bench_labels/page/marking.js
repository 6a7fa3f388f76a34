"use strict";
// The part of a text that holds the answer: from a selection, or sentence by sentence and word by
// word with the keyboard. Places are UTF-16 units in here and characters outside, as Python counts.

class Marking {
  // `drawn` is called after each change of what the element shows.
  constructor(element, drawn) {
    this.element = element;
    this.drawn = drawn;
    this.set("", null);
  }

  set(text, span) {
    this.text = text;
    this.active = false;
    this.parts = null;
    this.range = span ? [this.unit(span[0]), this.unit(span[1])] : null;
    this.draw();
  }

  // Characters from and to, or null.
  get span() {
    return this.range && this.range.map((at) => Array.from(this.text.slice(0, at)).length);
  }

  get quoted() {
    return this.range ? this.text.slice(...this.range) : "";
  }

  unit(characters) {
    return Array.from(this.text).slice(0, characters).join("").length;
  }

  // What is selected in the text, without the blanks around it; null where nothing is.
  selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed || !this.text) return null;
    const chosen = selection.getRangeAt(0);
    if (!this.element.contains(chosen.startContainer) || !this.element.contains(chosen.endContainer)) return null;
    const before = document.createRange();
    before.selectNodeContents(this.element);
    before.setEnd(chosen.startContainer, chosen.startOffset);
    return this.trimmed(before.toString().length, before.toString().length + chosen.toString().length);
  }

  trimmed(start, stop) {
    const part = this.text.slice(start, stop);
    const inner = part.trim();
    if (!inner) return null;
    const from = start + part.indexOf(inner);
    return [from, from + inner.length];
  }

  take(range) {
    this.range = range;
    this.active = false;
    getSelection().removeAllRanges();
    this.draw();
  }

  // Begin with the mark that is there, or with the first sentence.
  begin() {
    if (!this.text.trim()) return false;
    this.before = this.range;
    this.active = true;
    this.range = this.range || this.sentences()[0];
    this.draw();
    return true;
  }

  // One key; true where it means something here.
  press(key) {
    const moves = {
      ArrowDown: () => this.sentence(1),
      ArrowUp: () => this.sentence(-1),
      ShiftArrowDown: () => this.stop(this.sentences().map((one) => one[1]), 1),
      ShiftArrowUp: () => this.stop(this.sentences().map((one) => one[1]), -1),
      ArrowRight: () => this.stop(this.words().map((one) => one[1]), 1),
      ArrowLeft: () => this.stop(this.words().map((one) => one[1]), -1),
      ShiftArrowRight: () => this.start(1),
      ShiftArrowLeft: () => this.start(-1),
      Enter: () => this.end(this.range),
      m: () => this.end(this.range),
      Escape: () => this.end(this.before),
      Delete: () => this.end(null),
      Backspace: () => this.end(null),
    };
    if (!Object.hasOwn(moves, key)) return false;
    moves[key]();
    this.draw();
    return true;
  }

  end(range) {
    this.range = range;
    this.active = false;
  }

  sentence(step) {
    const all = this.sentences();
    let at = all.findIndex((one) => one[1] > this.range[0]);
    if (at < 0) at = all.length - 1;
    this.range = all[Math.min(Math.max(at + step, 0), all.length - 1)];
  }

  stop(places, step) {
    const [start, stop] = this.range;
    const found = step > 0 ? places.find((one) => one > stop) : places.findLast((one) => one < stop && one > start);
    if (found !== undefined) this.range = [start, found];
  }

  start(step) {
    const [start, stop] = this.range;
    const places = this.words().map((one) => one[0]);
    const found = step > 0 ? places.find((one) => one > start && one < stop) : places.findLast((one) => one < start);
    if (found !== undefined) this.range = [found, stop];
  }

  sentences() {
    return this.split("sentence");
  }

  words() {
    return this.split("word");
  }

  // [from, to] of each, found once a text.
  split(granularity) {
    this.parts = this.parts || {};
    if (!this.parts[granularity]) {
      const found = [];
      for (const [at, part, wordlike] of Marking.segments(this.text, granularity)) {
        const range = wordlike ? this.trimmed(at, at + part.length) : null;
        if (range) found.push(range);
      }
      this.parts[granularity] = found.length ? found : [this.trimmed(0, this.text.length)];
    }
    return this.parts[granularity];
  }

  static *segments(text, granularity) {
    if (typeof Intl.Segmenter === "function") {
      const segmenter = new Intl.Segmenter(undefined, { granularity });
      for (const { index, segment, isWordLike } of segmenter.segment(text)) yield [index, segment, isWordLike !== false];
      return;
    }
    const pattern = granularity === "word" ? /\S+/g : /[^.!?。！？\n]+[.!?。！？]*/g;
    for (const found of text.matchAll(pattern)) yield [found.index, found[0], true];
  }

  draw() {
    if (!this.range) {
      this.element.replaceChildren(this.text);
      this.drawn();
      return;
    }
    const [start, stop] = this.range;
    const mark = document.createElement("mark");
    mark.textContent = this.text.slice(start, stop);
    this.element.replaceChildren(this.text.slice(0, start), mark, this.text.slice(stop));
    this.drawn();
    if (this.active) mark.scrollIntoView({ block: "nearest" });
  }
}
