"""How each client is run without a person, against a model on this computer: data alone.

In all texts `{url}` is the address of the model, `{model}` its name, `{question}` the prompt,
`{home}` and `{project}` the folders of the run.
"""

import json
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Run:
    """`install` is what a person types to get the program. `files` are the client's own settings, by
    their paths under the home; `before` are arguments of runs that have to come first. `without`
    says why a step of `verify` cannot be had, by its name. `trust` has the hooks approved.
    """

    install: str
    arguments: tuple[str, ...]
    environment: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    before: tuple[tuple[str, ...], ...] = ()
    without: dict[str, str] = field(default_factory=dict)
    trust: bool = False


def _npm(package: str) -> str:
    return f"npm install -g {package}"


def _json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


_OPENAI = {
    "OPENAI_API_KEY": "none",
    "OPENAI_BASE_URL": "{url}/v1",
    "OPENAI_MODEL": "{model}",
}

RUNS = {
    "claude-code": Run(
        _npm("@anthropic-ai/claude-code"),
        ("-p", "{question}", "--allowedTools", "mcp__memory__*"),
        {
            "ANTHROPIC_BASE_URL": "{url}",
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        {".claude.json": _json({"hasCompletedOnboarding": True})},
    ),
    "codex": Run(
        _npm("@openai/codex"),
        ("exec", "--skip-git-repo-check", "{question}"),
        {"STAND_IN_KEY": "none"},
        {
            # Codex begins without the tools of a server that takes longer than a second; on a busy
            # computer ours does, and that is not what is asked here.
            ".codex/config.toml": 'model = "{model}"\nmodel_provider = "stand_in"\n'
            "mcp_optional_startup_grace_ms = 0\n\n"
            '[model_providers.stand_in]\nname = "stand-in"\nbase_url = "{url}/v1"\n'
            'wire_api = "responses"\nenv_key = "STAND_IN_KEY"\n\n'
            '[projects."{project}"]\ntrust_level = "trusted"\n'
        },
        trust=True,
    ),
    "gemini-cli": Run(
        _npm("@google/gemini-cli"),
        ("-m", "gemini-2.5-flash", "--yolo", "-p", "{question}"),
        {
            "GEMINI_API_KEY": "none",
            "GOOGLE_GEMINI_BASE_URL": "{url}",
            "GEMINI_CLI_TRUST_WORKSPACE": "true",
            "GEMINI_TELEMETRY_ENABLED": "false",
        },
        {".gemini/settings.json": _json({"security": {"auth": {"selectedType": "gemini-api-key"}}})},
    ),
    "qwen-code": Run(
        _npm("@qwen-code/qwen-code"),
        ("--yolo", "-p", "{question}"),
        _OPENAI,
        {".qwen/settings.json": _json({"security": {"auth": {"selectedType": "openai"}}})},
    ),
    "opencode": Run(
        _npm("opencode-ai"),
        ("run", "{question}"),
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        },
        {
            ".config/opencode/opencode.json": _json(
                {
                    "model": "stand-in/{model}",
                    "small_model": "stand-in/{model}",
                    "autoupdate": False,
                    "share": "disabled",
                    "enabled_providers": ["stand-in"],
                    "provider": {
                        "stand-in": {
                            "npm": "@ai-sdk/openai-compatible",
                            "name": "stand-in",
                            "options": {"baseURL": "{url}/v1", "apiKey": "none"},
                            "models": {
                                "{model}": {
                                    "name": "stand-in",
                                    "tool_call": True,
                                    "limit": {"context": 100000, "output": 4000},
                                }
                            },
                        }
                    },
                }
            )
        },
    ),
    "copilot": Run(
        _npm("@github/copilot"),
        ("-p", "{question}", "--allow-all-tools"),
        {
            "COPILOT_OFFLINE": "true",
            # Trusts the folder too, else servers and hooks of a project are passed over.
            "COPILOT_ALLOW_ALL": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_BASE_URL": "{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "none",
            "COPILOT_MODEL": "{model}",
        },
    ),
    "cline": Run(
        _npm("cline"),
        ("-P", "openai-compatible", "-m", "{model}", "{question}"),
        {"CLINE_TELEMETRY_DISABLED": "1"},
        before=(
            ("auth", "-p", "openai-compatible", "-k", "none", "-m", "{model}", "-b", "{url}/v1"),
        ),
        without={"context": "what a hook of Cline says before the first request is dropped by it"},
    ),
    "continue": Run(
        _npm("@continuedev/cli"),
        ("-p", "--config", "{home}/.continue/config.yaml", "--auto", "{question}"),
        {"CONTINUE_TELEMETRY_ENABLED": "0"},
        {
            ".continue/config.yaml": "name: local\nversion: 1.0.0\nschema: v1\nmodels:\n"
            "  - name: stand-in\n    provider: openai\n    model: {model}\n"
            "    apiBase: {url}/v1\n    apiKey: none\n    roles: [chat]\n"
            "    capabilities: [tool_use]\n"
        },
        without={
            "hook": "Continue never calls the hooks of its settings",
            "context": "Continue never calls the hooks of its settings",
        },
    ),
    "openclaw": Run(
        _npm("openclaw"),
        (
            "agent", "--local", "--agent", "main", "--session-id", "verify", "--message",
            "{question}", "--json",
        ),
        {"OPENCLAW_DISABLE_BONJOUR": "1"},
        {
            ".openclaw/openclaw.json": _json(
                {
                    "gateway": {"mode": "local"},
                    "agents": {
                        "defaults": {
                            "workspace": "{project}",
                            "model": {"primary": "stand-in/{model}"},
                            "skipBootstrap": True,
                        }
                    },
                    "models": {
                        "mode": "replace",
                        "providers": {
                            "stand-in": {
                                "baseUrl": "{url}/v1",
                                "apiKey": "none",
                                "api": "openai-completions",
                                "models": [
                                    {
                                        "id": "{model}",
                                        "name": "stand-in",
                                        "reasoning": False,
                                        "input": ["text"],
                                        "contextWindow": 128000,
                                        "maxTokens": 4000,
                                        "cost": {
                                            "input": 0,
                                            "output": 0,
                                            "cacheRead": 0,
                                            "cacheWrite": 0,
                                        },
                                    }
                                ],
                            }
                        },
                    },
                }
            )
        },
    ),
}  # fmt: skip
