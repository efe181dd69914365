"""The command line: `memory`, `memory-import`, and the same import within sqlite-utils.

`main` and what it imports load click alone; a command loads what it needs when it runs.
"""
