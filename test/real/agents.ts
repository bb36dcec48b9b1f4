import fs from 'node:fs'
import path from 'node:path'

/** Where things are for an agent that is started. */
export interface Place {
  /** A folder with one npm prefix per agent, as scripts/test-real.ts installs them. */
  readonly root: string
  /** HOME of the agent. */
  readonly home: string
  /** URL of fake-model.mjs. */
  readonly base: string
}

/** A real agent that runs without internet against fake-model.mjs. */
export interface RealAgent {
  /** Of the npm registry; both run under Node 20. */
  readonly package: string
  readonly version: string
  /** Writes the agent's own configuration; returns its command and what it needs in its environment. */
  start(place: Place): { readonly cmd: readonly string[]; readonly env: Readonly<Record<string, string>> }
  /** What makes the model call a shell tool, with a command that the agent has to ask permission for. */
  tool(command: string): string
}

const codex: RealAgent = {
  package: '@zed-industries/codex-acp',
  version: '0.16.0',
  start({ root, home, base }) {
    const config = [
      'model = "fake-model"',
      'model_provider = "fake"',
      'check_for_update_on_startup = false',
      '[model_providers.fake]',
      'name = "fake"',
      `base_url = "${base}/v1"`,
      'wire_api = "responses"',
      'env_key = "FAKE_KEY"',
      'requires_openai_auth = false',
      '[analytics]',
      'enabled = false',
      '',
    ]
    const folder = path.join(home, '.codex')
    fs.mkdirSync(folder, { recursive: true })
    fs.writeFileSync(path.join(folder, 'config.toml'), config.join('\n'))
    return {
      cmd: [path.join(root, 'codex/node_modules/.bin/codex-acp')],
      env: { FAKE_KEY: 'x', OPENAI_API_KEY: 'sk-fake', CODEX_API_KEY: 'sk-fake', NO_BROWSER: '1', CODEX_HOME: folder },
    }
  },
  tool(command) {
    // Without bubblewrap on the machine a sandboxed command fails; one that wants out of the sandbox is asked about.
    const wish = { cmd: command, sandbox_permissions: 'require_escalated', justification: 'for the test' }
    return `[[tool:^exec_command$ ${JSON.stringify(wish)}]]`
  },
}

const claude: RealAgent = {
  package: '@agentclientprotocol/claude-agent-acp',
  version: '0.49.0',
  start: ({ root, base }) => ({
    cmd: [process.execPath, path.join(root, 'claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js')],
    env: {
      ANTHROPIC_BASE_URL: base,
      ANTHROPIC_API_KEY: 'sk-ant-fake',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1',
    },
  }),
  tool: command => `[[tool:^Bash$ ${JSON.stringify({ command })}]]`,
}

export const realAgents: Readonly<Record<string, RealAgent>> = { codex, claude }
