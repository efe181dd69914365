"""Tags as they are compared."""

from .normalise import normalise

#: Tags, as `fold_tag` gives them, of what is no longer so.
STALE_TAGS = frozenset(("stale", "outdated", "过期", "已过期"))


def fold_tag(tag: str) -> str:
    """A tag in small letters, half width and Simplified Chinese, words joined by `-`, without `#`."""
    return normalise(tag).casefold().strip().lstrip("#").replace("_", "-").replace(" ", "-")
