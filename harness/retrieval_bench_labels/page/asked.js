"use strict";
// Words of the question, underlined in a document: painted over its text, which stays as it is, so
// that places in it are still those of the text. A browser that cannot paint so shows none.

const COMMON = new Set(
  ("a an and are as at be by did do does for from had has have how in is it its of on or that the this to was were what " +
    "when where which who why will with au aux comment de des du elle en est et il la le les ou par pour pourquoi que quel " +
    "quelle qui quoi sur un une").split(" "),
);

class Asked {
  constructor(element) {
    this.element = element;
    this.words = [];
  }

  set(question) {
    const found = [];
    for (const [, part, wordlike] of Marking.segments(question.toLowerCase(), "word")) {
      if (wordlike && !COMMON.has(part)) found.push(Asked.stem(part));
    }
    this.words = [...new Set(found)].filter((word) => word);
  }

  // Endings differ between a question and its answer: "whales" is looked for as "whale", "l'eau" as "eau", and a
  // Korean word by its first two syllables, without the particle that may follow.
  static stem(word) {
    if (/^\p{Script=Hangul}{3,}$/u.test(word)) return word.slice(0, 2);
    const bare = word.replace(/^(?:qu|[cdjlmnst])['’]/, "");
    return /^[a-z]{4,}s$/.test(bare) ? bare.slice(0, -1) : bare;
  }

  paint() {
    if (!("highlights" in CSS)) return;
    const ranges = [];
    const walk = document.createTreeWalker(this.element, NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode()) {
      const text = node.data.toLowerCase();
      if (text.length !== node.data.length) continue; // some capitals get longer: places would be others
      for (const word of this.words) {
        for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
          if (Asked.inside(text, at, word)) continue;
          const range = new Range();
          range.setStart(node, at);
          range.setEnd(node, at + word.length);
          ranges.push(range);
        }
      }
    }
    CSS.highlights.set("asked", new Highlight(...ranges));
  }

  // Whether a place lies within another word, where words stand apart.
  static inside(text, at, word) {
    const letter = /[\p{Script=Latin}\p{Script=Cyrillic}\p{Script=Greek}\p{N}]/u;
    return at > 0 && letter.test(text[at - 1]) && letter.test(word[0]);
  }
}
