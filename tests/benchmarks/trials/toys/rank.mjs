import { readdirSync, readFileSync } from "node:fs";

const folder = new URL("./handbook/", import.meta.url);
const split = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];
const synonyms = {};

const pages = readdirSync(folder).sort().map((file) => {
  const [title, body] = readFileSync(new URL(file, folder), "utf8").replace("# ", "").trim().split("\n\n");
  const text = `${title} ${body}`;
  return { file, title, body, words: new Set(split(text)) };
});
const known = new Map();
for (const page of pages) for (const word of page.words) known.set(word, (known.get(word) ?? 0) + 1);

/** The best pages for a question: rare words that they share with it count more. */
export function ranked(question, limit) {
  const asked = new Set(split(question).map((word) => synonyms[word] ?? word));
  const score = (page) =>
    [...asked].reduce((sum, word) => sum + (page.words.has(word) ? Math.log(1 + pages.length / known.get(word)) : 0), 0);
  return pages
    .map((page) => ({ ...page, score: score(page) }))
    .filter((page) => page.score > 0)
    .sort((a, b) => b.score - a.score || a.file.localeCompare(b.file))
    .slice(0, limit);
}
