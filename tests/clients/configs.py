"""Configuration files of the kinds that people have, as bytes; each parses in its format."""

STRICT = {
    "empty": b"",
    "white space": b"  \n\n",
    "byte order mark alone": b"\xef\xbb\xbf",
    "empty object": b"{}",
    "empty object, spaced": b"{ }\n",
    "empty object on two lines": b"{\n}\n",
    "empty object with blank lines": b"{\n\n\n}",
    "one line": b'{"theme": "dark", "n": 1}',
    "one line, compact": b'{"theme":"dark","mcpServers":{"git":{"command":"git-mcp"}}}',
    "one line, spaces inside": b'{ "theme": "dark" }\n',
    "two spaces": b'{\n  "theme": "dark",\n  "n": 1\n}\n',
    "four spaces": b'{\n    "theme": "dark"\n}\n',
    "tabs": b'{\n\t"theme": "dark",\n\t"a": {\n\t\t"b": []\n\t}\n}\n',
    "CRLF": b'{\r\n  "theme": "dark",\r\n  "mcpServers": {\r\n    "git": {"command": "g"}\r\n  }\r\n}\r\n',
    "CRLF and tabs": b'{\r\n\t"mcpServers": {\r\n\t}\r\n}\r\n',
    "no newline at the end": b'{\n  "a": 1\n}',
    "many newlines at the end": b'{\n  "a": 1\n}\n\n\n',
    "byte order mark": b'\xef\xbb\xbf{\n  "a": 1\n}\n',
    "other servers": b'{\n  "mcpServers": {\n    "git": {\n      "command": "git-mcp",\n      "args": ["-v"]\n    },\n'
    b'    "files": {"command": "npx", "args": ["-y", "x"]}\n  }\n}\n',
    "servers empty": b'{\n  "mcpServers": {}\n}\n',
    "servers empty and spaced": b'{\n  "mcpServers": { }\n}\n',
    "servers first, more behind": b'{\n  "mcpServers": {\n    "git": {"command": "g"}\n  },\n  "z": [1, 2]\n}\n',
    "other hooks": b'{\n  "hooks": {\n    "SessionStart": [\n      {"hooks": [{"type": "command", "command": "date"}]}\n'
    b'    ],\n    "Stop": [],\n    "PreToolUse": [{"matcher": "Bash", "hooks": []}]\n  }\n}\n',
    "hooks empty": b'{"hooks": {}, "mcpServers": {}}\n',
    "hooks on one line": b'{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}',
    "duplicate keys": b'{\n  "mcpServers": {"a": {"command": "a"}},\n  "mcpServers": {"b": {"command": "b"}}\n}\n',
    "duplicate scalars": b'{"a": 1, "a": 2}',
    "Chinese keys": '{\n  "主题": "深色",\n  "mcpServers": {\n    "记忆": {"command": "记忆"}\n  }\n}\n'.encode(),
    "emoji and escapes": '{"\\u4e2d": "\\ud83d\\ude00 😀", "path": "C:\\\\x"}\n'.encode(),
    "numbers as written": b'{"a": 1.0, "b": 1e5, "c": -0, "d": 123456789012345678901234567890}\n',
    "odd spacing": b'{ "a" :1 ,\n"b":  [ 1,2 ,3 ] ,   "c" : { } }',
    "nested with other indents": b'{\n  "a": {\n        "b": {\n         "c": 1\n        }\n  },\n      "d": 2\n}\n',
    "closing brace on the line": b'{\n  "a": 1,\n  "b": 2}',
    "members begin on the brace's line": b'{"a": 1,\n "b": 2\n}\n',
    "text like ours": b'{"note": "mcpServers { memory } // not a comment, \\" /* nor this */"}\n',
    "deep": b'{"a": ' + b"[" * 90 + b"]" * 90 + b"}\n",
    "blank lines between": b'{\n\n  "a": 1,\n\n\n  "b": 2\n\n}\n',
    "carriage returns alone at ends": b'{\r  "a": 1\r}\r',
    "2 MB": b'{\n  "projects": {\n'
    + b",\n".join(b'    "/home/me/p%d": {"history": ["%s"]}' % (i, b"x" * 80) for i in range(16000))
    + b"\n  }\n}\n",
    "2 MB on one line": b'{"a":['
    + b",".join(b'{"k":"%s"}' % (b"y" * 100) for _ in range(18000))
    + b"]}",
}
"""Strict JSON."""

COMMENTED = {
    "comment at the top": b'// mine\n{\n  "a": 1\n}\n',
    "comment alone": b"// nothing yet\n",
    "comment behind the last value": b'{\n  "a": 1 // keep\n}\n',
    "comment before the first": b'{\n  // about a\n  "a": 1\n}\n',
    "comment at the brace": b'{ // top\n  "a": 1,\n}\n',
    "comment in an empty object": b"{\n  // nothing here\n}\n",
    "block comment in an empty object": b"{ /* nothing */ }",
    "block comments": b'/* head\n   more */\n{\n  "a": /* one */ 1, /* two */\n  "b": 2 /* three */\n}\n/* tail */\n',
    "trailing comma": b'{\n  "a": 1,\n}\n',
    "trailing comma and comment": b'{\n  "a": 1, // last\n}\n',
    "trailing comma on one line": b'{"a": 1,}',
    "trailing commas everywhere": b'{\n  "mcpServers": {\n    "git": {"command": "g", "args": ["a",],},\n  },\n}\n',
    "server commented out": b'{\n  "mcpServers": {\n    // "old": {"command": "old"},\n    "git": {"command": "g"}\n    // end\n  }\n}\n',
    "all servers commented out": b'{\n  "mcpServers": {\n    // "old": {}\n  }\n}\n',
    "CRLF and comments": b'{\r\n  // a\r\n  "a": 1, // b\r\n  "hooks": {}\r\n}\r\n',
    "comment with brackets": b'{ /* }]," */ "a": "}" } // {\n',
    "comment at the very end": b'{"a": 1} // end',
    "Chinese comments": '{\n  // 不要动\n  "a": 1, // 这里也是\n}\n'.encode(),
}
"""JSON with comments and trailing commas."""

FIVE = {
    "names without quotes": b"{\n  gateway: { mode: 'local' },\n  mcp: { servers: { git: { command: 'g' } } },\n}\n",
    "numbers of JSON5": b"{ a: 0xFF, b: .5, c: +1, d: Infinity, e: 1., }\n",
    "plugins of others": b"{ plugins: { load: { paths: ['/x/other'] }, entries: { other: { enabled: true } } } }\n",
    "string over two lines": b'{ a: \'one \\\n two\', "b": "it\'s" }\n',
}

TOML = {
    "empty": b"",
    "comment alone": b"# mine\n",
    "plain": b'model = "gpt"\n',
    "no newline at the end": b'model = "gpt"',
    "CRLF": b'model = "gpt"\r\n[projects."/x"]\r\ntrust_level = "trusted"\r\n',
    "other servers": b'[mcp_servers.git]\ncommand = "git-mcp"\nargs = ["-v"]\n\n[tui]\nx = 1 # here\n',
    "inline tables": b'[mcp_servers]\ngit = { command = "g", env = { A = "1" } }\n',
    "dotted keys": b'mcp_servers.git.command = "g"\nmcp_servers.git.args = []\n',
    "dotted table": b'[mcp_servers.git.env]\nA = "1"\n[mcp_servers.git.tools]\n',
    "quoted keys": '["mcp_servers"."记忆"]\ncommand = \'c:\\x\'\n'.encode(),
    "arrays of tables": b"[[rules]]\na = 1\n\n[[rules]]\na = 2\n\n\n",
    "multi-line strings": b"a = \"\"\"\n[mcp_servers.memory]\n# not a table\n\"\"\"\nb = '''\nx'''\n",
    "byte order mark": b"\xef\xbb\xbfa = 1\n",
    "dates and numbers": b"a = 1979-05-27T07:32:00Z\nb = 1_000\nc = 0xff\nd = inf\n",
    "tabs and odd spacing": b"\ta   =  1\n [ b ]\n\tc=[1,\n\t2,\n\t]\n",
}

YAML = {
    "empty": b"",
    "comment alone": b"# mine\n",
    "plain": b"name: local\nversion: 1.0.0\n",
    "no newline at the end": b"name: local",
    "other servers": b"mcpServers:\n  - name: git\n    command: g # here\n    args:\n      - -v\n\n# end\nmodels: []\n",
    "list at the margin": b"mcpServers:\n- name: git\n  command: g\nmodels:\n- name: m\n",
    "flow list": b"mcpServers: [{name: git, command: g}]\nz: 1\n",
    "empty flow list": b"mcpServers: []\n",
    "nothing under the key": b"mcpServers:\nmodels: []\n",
    "anchors": b"base: &base\n  provider: openai\nmodels:\n  - <<: *base\n    name: m\nmcpServers:\n  - name: git\n    env: *base\n    command: g\n",
    "block scalar last": b"mcpServers:\n  - name: git\n    note: |\n      one\n      two\n\n\nz: 1\n",
    "CRLF": b"name: local\r\nmcpServers:\r\n  - name: git\r\n    command: g\r\n",
    "byte order mark": b"\xef\xbb\xbfname: local\n",
    "Chinese": "name: 本地\nmcpServers:\n  - name: 记忆\n    command: 记 # 注释\n".encode(),
    "tags": b"a: !custom x\nmcpServers:\n  - name: git\n    command: !x g\n",
    "document mark": b"---\nname: local\n",
    "four spaces": b"mcpServers:\n    -   name: git\n        command: g\n",
}

MARKDOWN = {
    "empty": b"",
    "plain": b"# Rules\n\nBe brief.\n",
    "no newline at the end": b"Be brief.",
    "CRLF": b"# Rules\r\n\r\nBe brief.\r\n",
    "blank lines at the end": b"Be brief.\n\n\n",
    "byte order mark": b"\xef\xbb\xbfBe brief.\n",
    "Chinese": "# 规则\n\n简短。\n".encode(),
    "somebody else's marks": b"<!-- other: start -->\nx\n<!-- other: end -->\n",
}

BROKEN = {
    "json": {
        "half written": b'{"mcpServers": {"git": {"comm',
        "half written string": b'{"a": "b',
        "two values": b'{"a": 1}{"b": 2}',
        "merge conflict": b'{\n<<<<<<< HEAD\n  "a": 1\n=======\n  "a": 2\n>>>>>>> x\n}\n',
        "comment in strict JSON": b'{\n  // no\n  "a": 1\n}\n',
        "trailing comma in strict JSON": b'{"a": 1,}\n',
        "a list": b"[1, 2]\n",
        "servers are a list": b'{"mcpServers": []}',
        "UTF-16": '{"a": 1}'.encode("utf-16"),
        "too deep": b"[" * 5000 + b"]" * 5000,
        "a word": b"hello\n",
        "missing comma": b'{"a": 1 "b": 2}',
        "zero bytes": b"\x00" * 64,
    },
    "toml": {
        "half written": b"[mcp_servers.gi",
        "twice": b"a = 1\na = 2\n",
        "servers on one line": b'mcp_servers = { git = { command = "g" } }\n',
        "not UTF-8": b'a = "\xff"\n',
    },
    "yaml": {
        "half written": b'a: "b\n',
        "tab": b"a:\n\t- b\n",
        "two documents": b"a: 1\n---\nb: 2\n",
        "all in braces": b"{name: local}\n",
        "a list": b"- a\n",
    },
}
