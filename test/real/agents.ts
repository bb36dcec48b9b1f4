import fs from 'node:fs'
import path from 'node:path'
import { catalog } from '../../plugins/agents/providers/catalog.js'

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
  /** Of the npm registry. */
  readonly package: string
  readonly version: string
  /** Further packages that it needs in its prefix, by name. */
  readonly with?: Readonly<Record<string, string>>
  /** It runs its tools without a question, whatever it is told; the README says so. */
  readonly neverAsks?: true
  /** Name of its entry in the catalog of providers, which says by what name and with which arguments it is started. */
  readonly provider: string
  /** Writes the agent's own configuration; returns its program and what it needs in its environment. */
  start(place: Place): { readonly cmd: readonly string[]; readonly env: Readonly<Record<string, string>> }
  /**
   * What makes the model call a shell tool with a command.
   * @param asks so that the agent has to ask permission for it; without, as a model does where everything is allowed
   */
  tool(command: string, asks?: boolean): string
  /** A second model that it can be given without internet; undefined where its set-up here has one model alone. */
  readonly otherModel?: string
  /** What makes the model look up the tools of MCP servers, where the agent does not offer them from the beginning. */
  readonly lookUp?: string
}

const codex: RealAgent = {
  provider: 'codex',
  otherModel: 'gpt-5.4',
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
  tool(command, asks = true) {
    // Without bubblewrap on the machine a sandboxed command fails; one that wants out of the sandbox is asked about.
    const escalated = { sandbox_permissions: 'require_escalated', justification: 'for the test' }
    const wish = { cmd: command, ...(asks && escalated) }
    return `[[tool:^exec_command$ ${JSON.stringify(wish)}]]`
  },
}

const claude: RealAgent = {
  provider: 'claude',
  otherModel: 'haiku',
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

const put = (file: string, value: unknown) => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, JSON.stringify(value))
}

const opencode: RealAgent = {
  provider: 'opencode',
  otherModel: 'fake/other-model',
  package: 'opencode-ai',
  version: '1.18.33',
  start({ root, home, base }) {
    const models = {
      'fake-model': { name: 'fake-model', limit: { context: 100_000, output: 4000 }, tool_call: true },
      'other-model': { name: 'other-model', limit: { context: 100_000, output: 4000 }, tool_call: true },
    }
    const options = { baseURL: `${base}/v1`, apiKey: 'x' }
    put(path.join(home, '.config/opencode/opencode.json'), {
      autoupdate: false,
      share: 'disabled',
      model: 'fake/fake-model',
      small_model: 'fake/fake-model',
      enabled_providers: ['fake'],
      provider: { fake: { npm: '@ai-sdk/openai-compatible', name: 'fake', options, models } },
    })
    return {
      cmd: [path.join(root, 'opencode/node_modules/.bin/opencode')],
      env: {
        OPENCODE_DISABLE_MODELS_FETCH: '1',
        OPENCODE_DISABLE_AUTOUPDATE: '1',
        OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
        OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
      },
    }
  },
  tool: command => `[[tool:^bash$ ${JSON.stringify({ command, description: 'for the test' })}]]`,
}

/** The shell tool of Gemini CLI and of what was made from it. */
const runShellCommand = (command: string) =>
  `[[tool:^run_shell_command$ ${JSON.stringify({ command, description: 'for the test', is_background: false })}]]`

const gemini: RealAgent = {
  provider: 'gemini',
  otherModel: 'gemini-2.5-pro',
  package: '@google/gemini-cli',
  version: '0.61.0',
  start({ root, home, base }) {
    put(path.join(home, '.gemini/settings.json'), {
      security: { auth: { selectedType: 'gemini-api-key' } },
      general: { enableAutoUpdate: false, disableUpdateNag: true },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      model: { name: 'gemini-2.5-flash' },
    })
    return {
      cmd: [path.join(root, 'gemini/node_modules/.bin/gemini')],
      env: { GEMINI_API_KEY: 'fake', GOOGLE_GEMINI_BASE_URL: base, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    }
  },
  tool: runShellCommand,
}

const qwen: RealAgent = {
  provider: 'qwen',
  package: '@qwen-code/qwen-code',
  version: '0.15.10',
  start({ root, home, base }) {
    put(path.join(home, '.qwen/settings.json'), {
      security: { auth: { selectedType: 'openai' } },
      privacy: { usageStatisticsEnabled: false },
      telemetry: { enabled: false },
      general: { disableAutoUpdate: true, disableUpdateNag: true },
    })
    return {
      cmd: [fs.realpathSync(path.join(root, 'qwen/node_modules/.bin/qwen'))],
      env: {
        OPENAI_API_KEY: 'x',
        OPENAI_BASE_URL: `${base}/v1`,
        OPENAI_MODEL: 'fake-model',
        QWEN_CODE_NO_TELEMETRY: '1',
      },
    }
  },
  lookUp: '[[tool:^tool_search$ {"query":"note_it"}]][[say:looked up]]',
  tool: runShellCommand,
}

const kimi: RealAgent = {
  provider: 'kimi',
  package: '@moonshot-ai/kimi-code',
  version: '2.1.0',
  // It needs Node 22.19, which comes as a package, whatever Node the tests run on.
  with: { node: '24' },
  start: ({ root, base }) => ({
    cmd: [
      path.join(root, 'kimi/node_modules/node/bin/node'),
      fs.realpathSync(path.join(root, 'kimi/node_modules/.bin/kimi')),
    ],
    env: {
      KIMI_MODEL_NAME: 'fake-model',
      KIMI_MODEL_PROVIDER_TYPE: 'openai',
      KIMI_MODEL_BASE_URL: `${base}/v1`,
      KIMI_MODEL_API_KEY: 'x',
      KIMI_MODEL_MAX_CONTEXT_SIZE: '100000',
      KIMI_DISABLE_TELEMETRY: '1',
    },
  }),
  tool: command => `[[tool:^(Bash|Shell|bash)$ ${JSON.stringify({ command })}]]`,
}

const pi: RealAgent = {
  provider: 'pi',
  otherModel: 'fake/other-model',
  package: 'pi-acp',
  version: '0.0.23',
  with: { '@mariozechner/pi-coding-agent': '0.73.1' },
  neverAsks: true,
  start({ root, home, base }) {
    const model = {
      id: 'fake-model',
      name: 'fake',
      contextWindow: 100_000,
      maxTokens: 4000,
      input: ['text'],
      reasoning: false,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    }
    const fake = {
      baseUrl: `${base}/v1`,
      api: 'openai-completions',
      apiKey: 'x',
      models: [model, { ...model, id: 'other-model', name: 'other' }],
    }
    put(path.join(home, '.pi/agent/models.json'), { providers: { fake } })
    put(path.join(home, '.pi/agent/settings.json'), {
      defaultProvider: 'fake',
      defaultModel: 'fake-model',
      quietStartup: true,
    })
    const bin = path.join(root, 'pi/node_modules/.bin')
    return {
      cmd: [process.execPath, path.join(root, 'pi/node_modules/pi-acp/dist/index.js')],
      env: {
        PATH: `${bin}:${process.env.PATH}`,
        PI_OFFLINE: '1',
        PI_SKIP_VERSION_CHECK: '1',
        PI_TELEMETRY: '0',
      },
    }
  },
  tool: command => `[[tool:^bash$ ${JSON.stringify({ command })}]]`,
}

/** Tried at each change; the others take `npm run test:real -- --all`. */
export const AT_EACH_CHANGE: readonly string[] = ['codex', 'claude']

export const realAgents: Readonly<Record<string, RealAgent>> = { codex, claude, opencode, gemini, qwen, kimi, pi }

/**
 * The command of an agent as its entry in the catalog has it, with the program replaced by a script of the same name that
 * sets the agent's environment: so the daemon recognizes it, and each entry is tried with the real program.
 */
export function commandOf(agent: RealAgent, place: Place): string {
  const { cmd, env } = agent.start(place)
  const [program = '', ...args] = catalog.find(({ name }) => name === agent.provider)?.argv ?? []
  const script = path.join(place.home, 'bin', program)
  const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`
  const exports = Object.entries({ ...env, HOME: place.home }).map(([name, value]) => `export ${name}=${quoted(value)}`)
  fs.mkdirSync(path.dirname(script), { recursive: true })
  fs.writeFileSync(script, `#!/bin/sh\n${exports.join('\n')}\nexec ${cmd.map(quoted).join(' ')} "$@"\n`, {
    mode: 0o755,
  })
  return [script, ...args].join(' ')
}
