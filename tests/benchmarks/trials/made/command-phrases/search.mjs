import { createInterface } from "node:readline";
import { ranked } from "./rank.mjs";

createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, text, k } = JSON.parse(line);
  const hits = ranked(text, k).map(({ file, score, body }) => ({ id: file, score, text: body, source: file }));
  console.log(JSON.stringify({ id, hits }));
});
