/** A definition with every field there is. */
export const FULL = `---
name: reviewer
provider: codex
model: some-model
reasoning_effort: high
permissions: approve-reads
command: agent --mode "two words"
tools: ["service__skill_*", "mcp__git__log"]
toolsets: ["core"]
deny_tools: ["service__bridges_update"]
category_path: ["Engineering", "Review"]
skills: { disabled: ["old-skill"] }
mcp_servers:
  - { name: git, command: uvx, args: ["mcp-server-git"], env: { GIT_TOKEN: t0p, MODE: fast }, auth: { type: oauth, client_secret_ref: "vault:mcp/x" } }
hooks:
  - { name: gate, event: tool.pre_call, mode: sync, command: ./gate.sh }
---

You review code.
`
