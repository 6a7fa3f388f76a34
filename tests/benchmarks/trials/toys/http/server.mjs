// GET /search?q=leave&n=5 on port PORT (8321): {"took": ms, "pages": [{"path", "title", "score", "body"}]}
import { createServer } from "node:http";
import { ranked } from "./rank.mjs";

createServer((request, response) => {
  const url = new URL(request.url, "http://localhost");
  const began = performance.now();
  const pages = ranked(url.searchParams.get("q") ?? "", Number(url.searchParams.get("n") ?? 5));
  const shown = pages.map(({ file, title, score, body }) => ({ path: `handbook/${file}`, title, score, body }));
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ took: performance.now() - began, pages: shown }));
}).listen(Number(process.env.PORT ?? 8321), "127.0.0.1");
