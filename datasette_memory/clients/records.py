"""One record for each client: what it keeps where, as data. Nothing here reads or writes a file.

Paths are templates: `{home}`, `{project}`, and the folders that `places.bases` knows. In what is
written for a client, `{program}` stands for the program, `{arguments}` for the list of its
arguments, `{words}` for the list of both, and `{line}` for one command line.
"""

from dataclasses import dataclass, field
from types import MappingProxyType

INSTALL_READY = "install-ready"
DOCS_ONLY = "docs-only"
VERIFIED = "verified"

EVENTS = (
    "session-start",
    "prompt",
    "stop",
    "session-end",
    "pre-compact",
    "post-compact",
    "subagent-start",
    "subagent-stop",
)
"""What `memory hook` is told; each client has names of its own for some of them."""

Paths = MappingProxyType[str, str] | dict[str, str]
"""A path template by scope (`user`, `project`); by `scope:platform` where a platform differs."""


@dataclass(frozen=True, slots=True)
class Server:
    """The entry that makes a client start `memory mcp`: `entry` under `key` in the file at `paths`.

    `style` says how the entry hangs there: `key`, under its name in an object; `list`, with its name
    inside, in a list.
    """

    paths: Paths
    format: str
    key: tuple[str, ...]
    entry: dict[str, object]
    style: str = "key"
    fresh: str = ""


@dataclass(frozen=True, slots=True)
class Hooks:
    """How a client is told to call `memory hook`, by its own name of each event.

    `style`: `object`, a list of `entry` under each event in `key` of the file; `file`, a file of
    ours with that content; `scripts`, one executable file for each event in a folder; `module`, the
    files of a template in `clients/modules`, where the client takes nothing else.
    """

    paths: Paths
    style: str
    events: dict[str, str]
    entry: dict[str, object] = field(default_factory=dict)
    format: str = "json"
    key: tuple[str, ...] = ("hooks",)
    around: dict[str, object] = field(default_factory=dict)
    module: str = ""
    settings: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Record:
    """A client. `rules_own` says that the rules file is ours alone; else we own a block in it.

    `programs` are the names that its program may have on the PATH. `commands` has the place of the
    command `/remember`. `transcripts` is told to the user and read by nothing here. `trusts` says that
    the client runs a hook only when its hash is approved, and that the approval can be written.
    """

    name: str
    title: str
    level: str
    programs: tuple[str, ...]
    server: Server
    hooks: Hooks | None = None
    rules: Paths = field(default_factory=dict)
    rules_own: bool = False
    skills: Paths = field(default_factory=dict)
    commands: Paths = field(default_factory=dict)
    transcripts: str = ""
    trusts: bool = False
    notes: tuple[str, ...] = ()


_MCP_SERVERS = ("mcpServers",)
_PLAIN = {"command": "{program}", "args": "{arguments}"}
# Claude Code and Copilot read the same file of a project, so one entry has to suit both.
_SHARED = {"type": "stdio", **_PLAIN, "env": {}, "tools": ["*"], "alwaysLoad": True}
_CLAUDE_EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "Stop": "stop",
    "SessionEnd": "session-end",
    "PreCompact": "pre-compact",
    "PostCompact": "post-compact",
    "SubagentStart": "subagent-start",
    "SubagentStop": "subagent-stop",
}


def _nested(timeout: int, **more: object) -> dict[str, object]:
    return {"hooks": [{"type": "command", **more, "command": "{line}", "timeout": timeout}]}


RECORDS = (
    Record(
        "claude-code", "Claude Code", INSTALL_READY, ("claude",),
        Server(
            {"user": "{claude_json}", "project": "{project}/.mcp.json"}, "json", _MCP_SERVERS,
            _SHARED,
        ),
        Hooks(
            {"user": "{claude}/settings.json", "project": "{project}/.claude/settings.local.json"},
            "object", _CLAUDE_EVENTS, _nested(10),
        ),
        rules={"user": "{claude}/CLAUDE.md", "project": "{project}/CLAUDE.md"},
        skills={"user": "{claude}/skills", "project": "{project}/.claude/skills"},
        commands={
            "user": "{claude}/commands/remember.md",
            "project": "{project}/.claude/commands/remember.md",
        },
        transcripts="{claude}/projects/*/SESSION.jsonl",
        notes=(
            "Restart Claude Code; /mcp and /hooks show what it sees.",
            'Without a person to ask, allow the tools: claude -p "..." --allowedTools '
            '"mcp__memory__*".',
        ),
    ),
    Record(
        "codex", "Codex CLI", INSTALL_READY, ("codex",),
        Server(
            {"user": "{codex}/config.toml", "project": "{project}/.codex/config.toml"}, "toml",
            ("mcp_servers",), {**_PLAIN, "startup_timeout_sec": 20},
        ),
        Hooks(
            {"user": "{codex}/hooks.json", "project": "{project}/.codex/hooks.json"}, "object",
            _CLAUDE_EVENTS, _nested(10),
        ),
        rules={"user": "{codex}/AGENTS.md", "project": "{project}/AGENTS.md"},
        skills={"user": "{codex}/skills"},
        commands={"user": "{codex}/prompts/remember.md"},
        transcripts="{codex}/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl",
        trusts=True,
        notes=(
            "Codex runs no hook before you have approved it, and does not say so: start codex, type "
            "/hooks, and approve those of memory; or install with --trust, which approves them in your "
            "place. A hook that changes has to be approved again.",
            "Codex waits one second for a server, and then begins the first turn, which is the only one "
            "of codex exec, without its tools. Where that is too short, put "
            "mcp_optional_startup_grace_ms = 10000 at the top of config.toml.",
            "Files of a project are read in a project that Codex trusts. It keeps approvals of their "
            "hooks in the file of the user.",
            "Tools that write are asked for; to be asked no more, set default_tools_approval_mode "
            '= "approve" under [mcp_servers.memory].',
        ),
    ),
    Record(
        "gemini-cli", "Gemini CLI", INSTALL_READY, ("gemini",),
        Server(
            {
                "user": "{home}/.gemini/settings.json",
                "project": "{project}/.gemini/settings.json",
            },
            "jsonc", _MCP_SERVERS, {**_PLAIN, "timeout": 20000},
        ),
        Hooks(
            {
                "user": "{home}/.gemini/settings.json",
                "project": "{project}/.gemini/settings.json",
            },
            # PreCompress is left out: it fires before every request to the model.
            "object",
            {
                "SessionStart": "session-start",
                "BeforeAgent": "prompt",
                "AfterAgent": "stop",
                "SessionEnd": "session-end",
            },
            _nested(10000, name="memory"), "jsonc",
        ),
        rules={"user": "{home}/.gemini/GEMINI.md", "project": "{project}/GEMINI.md"},
        skills={"user": "{home}/.gemini/skills"},
        commands={"user": "{home}/.gemini/commands/remember.toml"},
        transcripts="{home}/.gemini/tmp/NAME/chats/session-*.jsonl",
        notes=(
            "Gemini CLI works in trusted folders only; trust yours when it asks.",
            'It asks before each tool; to be asked no more, add "trust": true to the server.',
        ),
    ),
    Record(
        "qwen-code", "Qwen Code", INSTALL_READY, ("qwen",),
        Server(
            {"user": "{home}/.qwen/settings.json", "project": "{project}/.qwen/settings.json"},
            "jsonc", _MCP_SERVERS, {**_PLAIN, "timeout": 20000},
        ),
        Hooks(
            {"user": "{home}/.qwen/settings.json", "project": "{project}/.qwen/settings.json"},
            "object", _CLAUDE_EVENTS, _nested(10, name="memory"), "jsonc",
        ),
        rules={"user": "{home}/.qwen/QWEN.md", "project": "{project}/QWEN.md"},
        skills={"user": "{home}/.qwen/skills"},
        commands={"user": "{home}/.qwen/commands/remember.md"},
        transcripts="{home}/.qwen/projects/*/chats/SESSION.jsonl",
        notes=('It asks before each tool; to be asked no more, add "trust": true to the server.',),
    ),
    Record(
        "opencode", "OpenCode", INSTALL_READY, ("opencode",),
        Server(
            {
                "user": "{xdg}/opencode/opencode.jsonc|{xdg}/opencode/opencode.json",
                "project": "{project}/opencode.jsonc|{project}/opencode.json",
            },
            "jsonc", ("mcp",), {"type": "local", "command": "{words}", "enabled": True},
        ),
        Hooks(
            {"user": "{xdg}/opencode/plugins", "project": "{project}/.opencode/plugins"}, "module",
            {"chat.message": "prompt"}, module="opencode",
        ),
        rules={"user": "{xdg}/opencode/AGENTS.md", "project": "{project}/AGENTS.md"},
        skills={"user": "{xdg}/opencode/skills"},
        commands={"user": "{xdg}/opencode/commands/remember.md"},
        transcripts="{home}/.local/share/opencode/opencode.db",
    ),
    Record(
        "copilot", "GitHub Copilot CLI", INSTALL_READY, ("copilot",),
        Server(
            {"user": "{home}/.copilot/mcp-config.json", "project": "{project}/.mcp.json"}, "jsonc",
            _MCP_SERVERS, _SHARED,
        ),
        Hooks(
            {
                "user": "{home}/.copilot/hooks/memory.json",
                "project": "{project}/.github/hooks/memory.json",
            },
            "file",
            {
                "sessionStart": "session-start",
                "userPromptSubmitted": "prompt",
                "agentStop": "stop",
                "sessionEnd": "session-end",
                "preCompact": "pre-compact",
                "subagentStart": "subagent-start",
                "subagentStop": "subagent-stop",
            },
            {"type": "command", "bash": "{line}", "powershell": "{powershell}", "timeoutSec": 10},
            around={"version": 1},
        ),
        rules={
            "user": "{home}/.copilot/copilot-instructions.md",
            "project": "{project}/.github/copilot-instructions.md",
        },
        skills={"user": "{home}/.copilot/skills"},
        transcripts="{home}/.copilot/session-state/SESSION/events.jsonl",
        notes=(
            "Hooks and servers of a project are passed over in a folder that is not trusted.",
            "Copilot reads CLAUDE.md, GEMINI.md and AGENTS.md too; one of them is enough.",
        ),
    ),
    Record(
        "cline", "Cline", INSTALL_READY, ("cline",),
        Server(
            {"user": "{home}/.cline/data/settings/cline_mcp_settings.json"}, "json", _MCP_SERVERS,
            {**_PLAIN, "disabled": False, "timeout": 60},
        ),
        Hooks(
            {"user": "{home}/.cline/hooks"}, "scripts",
            {
                "TaskStart": "session-start",
                "TaskResume": "session-start",
                "UserPromptSubmit": "prompt",
                "TaskComplete": "stop",
                "SessionShutdown": "session-end",
                "PreCompact": "pre-compact",
            },
        ),
        rules={"user": "{home}/.cline/rules/memory.md"}, rules_own=True,
        transcripts="{home}/.cline/data/sessions/ID/ID.messages.json",
        notes=(
            "What a hook of Cline says at the start of a task does not reach the model: the agent "
            "has to search by itself, as the rules file tells it.",
        ),
    ),
    Record(
        "continue", "Continue", INSTALL_READY, ("cn",),
        Server(
            {"user": "{home}/.continue/config.yaml"}, "yaml", _MCP_SERVERS,
            {"type": "stdio", **_PLAIN}, style="list",
            fresh="name: local\nversion: 1.0.0\nschema: v1\n",
        ),
        rules={
            "user": "{home}/.continue/rules/memory.md",
            "project": "{project}/.continue/rules/memory.md",
        },
        rules_own=True,
        skills={"user": "{home}/.continue/skills"},
        transcripts="{home}/.continue/sessions/ID.json",
        notes=("Continue has hooks in its settings and never calls them, so none are written.",),
    ),
    Record(
        "openclaw", "OpenClaw", INSTALL_READY, ("openclaw",),
        Server(
            {"user": "{home}/.openclaw/openclaw.json"}, "json5", ("mcp", "servers"), _PLAIN,
        ),
        Hooks(
            {"user": "{home}/.openclaw/plugins/memory-hooks"}, "module",
            {"before_prompt_build": "prompt"}, module="openclaw",
            settings={
                "plugins": {
                    "load": {"paths": ["{folder}"]},
                    "entries": {
                        "memory-hooks": {
                            "enabled": True,
                            "hooks": {
                                "allowPromptInjection": True,
                                "allowConversationAccess": True,
                            },
                        }
                    },
                }
            },
        ),
        skills={"user": "{home}/.openclaw/skills"},
        transcripts="{home}/.openclaw/agents/AGENT/agent/openclaw-agent.sqlite",
        notes=(
            "OpenClaw has a memory_search of its own; ours is memory__memory_search, found by "
            "tool_search.",
        ),
    ),
    Record(
        "cursor", "Cursor", DOCS_ONLY, ("cursor-agent", "cursor"),
        Server(
            {"user": "{home}/.cursor/mcp.json", "project": "{project}/.cursor/mcp.json"}, "jsonc",
            _MCP_SERVERS, _PLAIN,
        ),
        Hooks(
            {"user": "{home}/.cursor/hooks.json", "project": "{project}/.cursor/hooks.json"},
            "object",
            {
                "sessionStart": "session-start",
                "beforeSubmitPrompt": "prompt",
                "stop": "stop",
                "sessionEnd": "session-end",
                "preCompact": "pre-compact",
            },
            {"command": "{line}"}, around={"version": 1},
        ),
        rules={"project": "{project}/.cursor/rules/memory.mdc"}, rules_own=True,
        skills={"user": "{home}/.cursor/skills"},
        notes=("Cursor may run the hooks of .claude/settings.json too.",),
    ),
    Record(
        "vscode", "VS Code (GitHub Copilot)", DOCS_ONLY, ("code",),
        Server(
            {
                "user": "{xdg}/Code/User/mcp.json",
                "user:darwin": "{support}/Code/User/mcp.json",
                "user:win32": "{appdata}/Code/User/mcp.json",
                "project": "{project}/.vscode/mcp.json",
            },
            "jsonc", ("servers",), {"type": "stdio", **_PLAIN},
        ),
        rules={"project": "{project}/.github/copilot-instructions.md"},
        notes=("VS Code also runs the hooks of .github/hooks and of .claude/settings.json.",),
    ),
    Record(
        "qoder", "Qoder", INSTALL_READY, ("qodercli",),
        Server(
            {"user": "{home}/.qoder/settings.json"}, "json", _MCP_SERVERS, _PLAIN,
        ),
        Hooks(
            {"user": "{home}/.qoder/settings.json"}, "object",
            {
                key: _CLAUDE_EVENTS[key]
                for key in (
                    "SessionStart",
                    "UserPromptSubmit",
                    "Stop",
                    "SessionEnd",
                    "PreCompact",
                    "SubagentStart",
                    "SubagentStop",
                )
            },
            _nested(10),
        ),
        notes=(
            "Seen without a login only: the server is listed, and the hook at the end of a session "
            "runs. Whether hooks reach the model is not known.",
        ),
    ),
    Record(
        "goose", "Goose", DOCS_ONLY, ("goose",),
        Server(
            {
                "user": "{xdg}/goose/config.yaml",
                "user:win32": "{appdata}/Block/goose/config/config.yaml",
            },
            "yaml", ("extensions",),
            {
                "type": "stdio", "name": "memory", "cmd": "{program}", "args": "{arguments}",
                "envs": {}, "enabled": True, "timeout": 300,
            },
        ),
        rules={"project": "{project}/.goosehints"},
        notes=("No hook of Goose is known to give the model context.",),
    ),
    Record(
        "hermes", "Hermes Agent", DOCS_ONLY, ("hermes",),
        Server({"user": "{home}/.hermes/config.yaml"}, "yaml", ("mcp_servers",), _PLAIN),
        skills={"user": "{home}/.hermes/skills"},
        notes=("Hooks of Hermes (on_session_start, pre_llm_call, ...) ask for consent one by one.",),
    ),
    Record(
        "windsurf", "Windsurf", DOCS_ONLY, ("windsurf",),
        Server(
            {"user": "{home}/.codeium/windsurf/mcp_config.json"}, "json", _MCP_SERVERS, _PLAIN,
        ),
        rules={"project": "{project}/.windsurf/rules/memory.md"}, rules_own=True,
        notes=("No hook of Windsurf is known to give the model context.",),
    ),
    Record(
        "zed", "Zed", DOCS_ONLY, ("zed", "zeditor"),
        Server(
            {
                "user": "{xdg}/zed/settings.json",
                "user:darwin": "{home}/.config/zed/settings.json",
                "user:win32": "{appdata}/Zed/settings.json",
                "project": "{project}/.zed/settings.json",
            },
            "jsonc", ("context_servers",), {**_PLAIN, "env": {}},
        ),
        rules={"project": "{project}/AGENTS.md"},
        notes=("Zed has no hooks that are known.",),
    ),
    Record(
        "kiro", "Kiro", DOCS_ONLY, ("kiro-cli", "kiro"),
        Server(
            {
                "user": "{home}/.kiro/settings/mcp.json",
                "project": "{project}/.kiro/settings/mcp.json",
            },
            "jsonc", _MCP_SERVERS, {**_PLAIN, "disabled": False},
        ),
        rules={"user": "{home}/.kiro/steering/memory.md"}, rules_own=True,
        skills={"user": "{home}/.kiro/skills"},
        notes=(
            "Hooks of the Kiro CLI stand in the JSON of an agent: agentSpawn, userPromptSubmit, "
            "stop; what they print is the context.",
        ),
    ),
)  # fmt: skip

BY_NAME = {record.name: record for record in RECORDS}
