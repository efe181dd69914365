"""datasette-memory: a memory for AI agents that its owner can read, query and trust."""

__version__ = "0.1"
