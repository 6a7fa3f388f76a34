// The toy's search behind npm's SDK, on stdio; NODE_PATH leads to the SDK and zod.
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { z } = require("zod");

const DOCS = JSON.parse(process.env.TOY_DOCS);
const server = new McpServer({ name: "sdk", version: "1.0" });
const inputSchema = { query: z.string(), limit: z.number().int().default(10) };
server.registerTool("search", { description: "Searches.", inputSchema }, async (asked) => {
  const words = new Set(asked.query.toLowerCase().split(/\s+/));
  const rows = Object.entries(DOCS).map(([id, text]) => {
    const own = text.toLowerCase().split(/\s+/);
    const shared = new Set(own.filter((word) => words.has(word))).size;
    return { id, score: shared / Math.sqrt(own.length), text };
  });
  const hits = rows.filter((row) => row.score);
  hits.sort((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1));
  return { content: [{ type: "text", text: JSON.stringify(hits.slice(0, asked.limit)) }] };
});
server.connect(new StdioServerTransport());
