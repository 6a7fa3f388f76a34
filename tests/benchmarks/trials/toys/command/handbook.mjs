#!/usr/bin/env node
// node handbook.mjs "how many days of leave": prints the pages that answer.
import { ranked } from "./rank.mjs";

const [question, limit = "5"] = process.argv.slice(2);
if (!question) {
  console.error('usage: node handbook.mjs "QUESTION" [LIMIT]');
  process.exit(2);
}
for (const { file, title, score } of ranked(question, Number(limit))) console.log(`${score.toFixed(2)}\t${file}\t${title}`);
