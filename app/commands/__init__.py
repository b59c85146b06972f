"""The command line: one module a command, and how a terminal is written to."""
