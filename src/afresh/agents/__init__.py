"""Tools for agents (MCP): the doors of a service as tools, each result with one sentence on what may be concluded."""
