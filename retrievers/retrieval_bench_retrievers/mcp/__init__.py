"""Search tools of MCP servers, of both eras of the protocol, over stdio and Streamable HTTP."""
