"""What models and clients read parses as they read it, and is short enough to be read at all."""

import json
import re
import tomllib

import yaml

from datasette_memory import tools
from datasette_memory.clients import modules, texts


def front(text):
    return yaml.safe_load(re.match(r"---\n(.*?)\n---\n", text, re.S)[1])


def test_the_skill_and_the_commands_have_the_heads_that_clients_ask_for():
    head = front(texts.skill())
    assert head["name"] == "remember" and len(head["description"]) < 1024
    assert "记住" in head["description"]
    assert front(texts.command(".md"))["description"]
    assert front(texts.rules_file(".mdc"))["alwaysApply"] is True
    assert not texts.rules_file(".md").startswith("---")
    command = tomllib.loads(texts.command(".toml"))
    assert texts.REMEMBER in command["prompt"] and "{{args}}" in command["prompt"]
    assert "$ARGUMENTS" in texts.command(".md")


def test_the_texts_name_tools_that_there_are():
    served = {tool.name for tool in tools.TOOLS}
    for text in (texts.RULES, texts.REMEMBER):
        named = set(re.findall(r"`(memory_\w+)`", text))
        assert named and named <= served


def test_the_rules_are_short():
    assert len(texts.RULES) < 2000


def test_a_module_runs_the_program_as_a_list_of_words():
    words = ['C:\\my "tools"\\memory.exe']
    body = modules.files("opencode", words, ["--client", "opencode"])["datasette-memory.js"]
    assert json.loads(re.search(r"^const WORDS = (.*)$", body, re.M)[1]) == [*words, "hook"]
    files = modules.files("openclaw", words, [])
    assert sorted(files) == ["index.js", "openclaw.plugin.json", "package.json"]
    assert json.loads(files["openclaw.plugin.json"])["id"] == "memory-hooks"
