"""One call of a tool, the same over each transport: admission, validation, live data, response."""
