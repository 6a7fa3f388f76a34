// An MCP server on stdio with one tool, `search_handbook`, over the pages in handbook/.
import { createInterface } from "node:readline";
import { ranked } from "./rank.mjs";

const tool = {
  name: "search_handbook",
  description: "Finds pages of the handbook.",
  inputSchema: {
    type: "object",
    properties: { query: { type: "string" }, limit: { type: "integer" } },
    required: ["query"],
  },
};

function result({ method, params }) {
  if (method === "initialize")
    return { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "handbook", version: "1" } };
  if (method === "tools/list") return { tools: [tool] };
  if (method === "tools/call") {
    const pages = ranked(params.arguments.query, params.arguments.limit ?? 5);
    const text = pages.map(({ file, title, body }) => `## ${title} (handbook/${file})\n${body}`).join("\n\n");
    return { content: [{ type: "text", text }] };
  }
  return null;
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.id === undefined) return;
  const answer = result(message);
  const rest = answer ? { result: answer } : { error: { code: -32601, message: "unknown method" } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...rest }));
});
