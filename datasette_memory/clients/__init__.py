"""Agent clients: what each keeps where, and edits of their files that harm nothing."""
