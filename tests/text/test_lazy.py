import pkgutil
import re
from importlib import import_module

import pytest

from datasette_memory import context, search, text, vault
from datasette_memory.text.lazy import lazy

MODULES = [
    f"{package.__name__}.{module.name}"
    for package in (text, vault, search, context)
    for module in pkgutil.iter_modules(package.__path__)
]


def test_it_does_what_a_compiled_pattern_does():
    pattern = lazy(r"(a+)b", re.IGNORECASE)
    assert pattern.findall("AAb ab") == ["AA", "a"]
    assert pattern.sub("-", "xAAb ab") == "x- -"
    assert pattern.match("ab")[1] == pattern.match("ab")[1] == "a"
    assert (pattern.pattern, pattern.groups) == (r"(a+)b", 1)


def test_a_bad_pattern_is_told_when_it_is_used():
    pattern = lazy("(")
    with pytest.raises(re.error):
        pattern.search("x")


@pytest.mark.parametrize("name", MODULES)
def test_every_pattern_compiles(name):
    for value in vars(import_module(name)).values():
        if isinstance(value, type(lazy(""))):
            re.compile(value.pattern)
