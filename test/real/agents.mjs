// Real ACP agents that run without internet against fake-model.mjs. Each preset writes the agent's own configuration
// into `home` and returns { cmd, env }. ACP_ROOT is a folder with one npm prefix per agent:
//   npm i --prefix $ACP_ROOT/codex  @zed-industries/codex-acp@0.16.0                (Rust binary, Node 20, 223 MB, about 15 s)
//   npm i --prefix $ACP_ROOT/claude @agentclientprotocol/claude-agent-acp@0.49.0    (Node 20, 290 MB, about 25 s)
import fs from 'node:fs'
import path from 'node:path'

const root = () => process.env.ACP_ROOT ?? path.resolve('.real')
const put = (file, text) => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, text)
}

export const presets = {
  codex: ({ home, base }) => {
    put(
      path.join(home, '.codex/config.toml'),
      [
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
      ].join('\n'),
    )
    return {
      cmd: [path.join(root(), 'codex/node_modules/.bin/codex-acp')],
      env: {
        FAKE_KEY: 'x',
        OPENAI_API_KEY: 'sk-fake',
        CODEX_API_KEY: 'sk-fake',
        NO_BROWSER: '1',
        CODEX_HOME: path.join(home, '.codex'),
      },
      // The name under which this agent offers a shell to its model; arguments {"cmd": "..."}. Without bubblewrap on the machine a
      // sandboxed command fails; with "sandbox_permissions": "require_escalated", "justification": "..." it asks for permission instead.
      shellTool: '^exec_command$',
    }
  },
  claude: ({ base }) => ({
    cmd: [
      process.execPath,
      path.join(root(), 'claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js'),
    ],
    env: {
      ANTHROPIC_BASE_URL: base,
      ANTHROPIC_API_KEY: 'sk-ant-fake',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      IS_SANDBOX: '1',
    },
    shellTool: '^Bash$', // arguments {"command": "..."}; asks for permission for what changes files, `touch x` say
  }),
}
