"""The small modules for clients that take hooks as JavaScript only. Each runs `memory hook`.

A module sends one JSON object on stdin (`session_id`, `cwd`, `prompt`) and takes `additionalContext`
from the one on stdout. Whatever goes wrong, it gives nothing and breaks nothing.
"""

import json

_RUN = """\
// datasette-memory: written by `memory client install`, removed by `memory client uninstall`.
import { spawn } from "node:child_process"

const WORDS = %(words)s
const AFTER = %(after)s

// What `memory hook EVENT` answers as context; "" on any fault, or after three seconds.
const ask = (event, input) => new Promise((resolve) => {
  try {
    const child = spawn(WORDS[0], [...WORDS.slice(1), event, ...AFTER], { stdio: ["pipe", "pipe", "ignore"], windowsHide: true })
    let out = ""
    const done = (text) => { clearTimeout(timer); resolve(text) }
    const timer = setTimeout(() => { child.kill(); resolve("") }, 3000)
    child.on("error", () => done(""))
    child.stdin.on("error", () => {})
    child.stdout.setEncoding("utf8")
    child.stdout.on("data", (data) => { out += data })
    child.on("close", () => {
      try { done(JSON.parse(out).additionalContext || "") } catch { done("") }
    })
    child.stdin.end(JSON.stringify({ hook_event_name: event, ...input }))
  } catch { resolve("") }
})
const started = new Set()
// The context of a prompt, with that of the session before its first one.
const context = async (session_id, cwd, prompt) => {
  const first = !started.has(session_id)
  started.add(session_id)
  const parts = [first ? await ask("session-start", { session_id, cwd, source: "startup" }) : "",
    await ask("prompt", { session_id, cwd, prompt })]
  return parts.filter(Boolean).join("\\n\\n")
}
"""  # noqa: E501

_OPENCODE = """
export const DatasetteMemory = async ({ directory }) => {
  let number = 0
  return {
    "chat.message": async (input, output) => {
      try {
        const prompt = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text).join("\\n")
        if (!prompt.trim()) return
        const text = await context(input.sessionID, directory, prompt)
        if (text) output.parts.push({ id: "prt_zzmemory" + Date.now() + "x" + number++, sessionID: input.sessionID, messageID: output.message.id, type: "text", synthetic: true, text })
      } catch {}
    },
    "experimental.session.compacting": async (input) => { await ask("pre-compact", { session_id: input.sessionID, cwd: directory }) },
    event: async ({ event }) => {
      const session_id = event?.properties?.sessionID
      if (event?.type === "session.idle") await ask("stop", { session_id, cwd: directory })
      if (event?.type === "session.compacted") await ask("post-compact", { session_id, cwd: directory })
    },
  }
}
"""  # noqa: E501

_OPENCLAW = """
const id = (event, ctx) => ctx?.sessionId ?? event?.sessionId ?? ctx?.sessionKey ?? "session"
export default { id: "memory-hooks", name: "memory-hooks", register(api) {
  const cwd = process.cwd()
  api.on("before_prompt_build", async (event, ctx) => {
    try {
      if (!String(event?.prompt ?? "").trim()) return
      const text = await context(id(event, ctx), ctx?.workspaceDir ?? cwd, String(event.prompt))
      if (text) return { prependContext: text }
    } catch {}
  })
  const tell = { agent_end: "stop", session_end: "session-end", before_compaction: "pre-compact", after_compaction: "post-compact" }
  for (const [name, told] of Object.entries(tell))
    api.on(name, async (event, ctx) => { await ask(told, { session_id: id(event, ctx), cwd: ctx?.workspaceDir ?? cwd }) })
} }
"""  # noqa: E501


def files(name: str, words: list[str], after: list[str]) -> dict[str, str]:
    """The files of a module by their names: `words` are run, then the event, then `after`."""
    run = _RUN % {
        "words": json.dumps([*words, "hook"], ensure_ascii=False),
        "after": json.dumps(after, ensure_ascii=False),
    }
    if name == "opencode":
        return {"datasette-memory.js": run + _OPENCODE}
    plugin = {
        "id": "memory-hooks",
        "name": "memory-hooks",
        "version": "1.0.0",
        "description": "datasette-memory",
        "activation": {"onStartup": True},
        "configSchema": {"type": "object", "additionalProperties": False, "properties": {}},
    }
    package = {
        "name": "memory-hooks",
        "version": "1.0.0",
        "description": "datasette-memory",
        "type": "module",
        "openclaw": {"extensions": ["./index.js"]},
    }
    return {
        "openclaw.plugin.json": json.dumps(plugin, indent=2) + "\n",
        "package.json": json.dumps(package, indent=2) + "\n",
        "index.js": run + _OPENCLAW,
    }
