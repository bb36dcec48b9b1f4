import fs from 'node:fs'
import path from 'node:path'
import { looksSecret } from '../../plugins/agents/providers/api.js'
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
  /**
   * Writes the agent's own files, its credentials among them, where its login puts them; returns its program and what else it needs
   * in its environment, which holds no credentials.
   */
  start(place: Place): { readonly cmd: readonly string[]; readonly env: Readonly<Record<string, string>> }
  /**
   * What makes the model call a shell tool with a command.
   * @param asks so that the agent has to ask permission for it; without, as a model does where everything is allowed
   */
  tool(command: string, asks?: boolean): string
  /** What makes the model write a file, and change a passage of one, with the agent's own file tools; absolute paths. */
  readonly files: {
    write(file: string, text: string): string
    edit(file: string, before: string, after: string): string
  }
  /** In a sandbox its model is told to ask for each command, and does. */
  readonly asksInSandbox?: true
  /** Names of tools by which the model asks the person, as a pattern, and what one is called with. */
  readonly question: { readonly tool: string; readonly args: object }
  /** A second model that it can be given without internet; undefined where its set-up here has one model alone. */
  readonly otherModel?: string
  /** What makes the model call the tool `note_it` of an MCP server where that has a way of its own. */
  readonly callNoteIt?: (args: object) => string
  /** What makes the model look up the tools of MCP servers, where the agent does not offer them from the beginning. */
  readonly lookUp?: string
}

const call = (tool: string, args: object) => `[[do:^(${tool})$ ${JSON.stringify(args)}]]`

const put = (file: string, value: unknown) => {
  fs.mkdirSync(path.dirname(file), { recursive: true })
  fs.writeFileSync(file, typeof value === 'string' ? value : JSON.stringify(value))
}

/** A question with two choices, as the tools that ask several at once take it. */
const COLOUR = {
  question: 'Which colour?',
  header: 'Colour',
  options: [
    { label: 'Red', description: 'warm' },
    { label: 'Blue', description: 'cold' },
  ],
}

/** Programs that need a newer Node than the tests run on have it as a package beside them. */
const NODE_24 = { node: '24' }
const node24 = (root: string, name: string) => path.join(root, name, 'node_modules/node/bin/node')

/** It takes a patch as the command of its shell. */
const patch = (lines: readonly string[]) =>
  call('exec_command', {
    cmd: ["apply_patch <<'EOF'", '*** Begin Patch', ...lines, '*** End Patch', 'EOF'].join('\n'),
  })

const codexFiles: RealAgent['files'] = {
  write: (file, text) => patch([`*** Add File: ${file}`, `+${text}`]),
  edit: (file, before, after) => patch([`*** Update File: ${file}`, '@@', `-${before}`, `+${after}`]),
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
      'experimental_bearer_token = "x"',
      'requires_openai_auth = false',
      '[analytics]',
      'enabled = false',
      '',
    ]
    put(path.join(home, '.codex/config.toml'), config.join('\n'))
    put(path.join(home, '.codex/auth.json'), { OPENAI_API_KEY: 'sk-fake' })
    return { cmd: [path.join(root, 'codex/node_modules/.bin/codex-acp')], env: { NO_BROWSER: '1' } }
  },
  tool(command, asks = true) {
    // Without bubblewrap on the machine a sandboxed command fails; one that wants out of the sandbox is asked about.
    const escalated = { sandbox_permissions: 'require_escalated', justification: 'for the test' }
    const wish = { cmd: command, ...(asks && escalated) }
    return `[[tool:^exec_command$ ${JSON.stringify(wish)}]]`
  },
  files: codexFiles,
  question: {
    tool: 'request_user_input',
    args: { questions: [{ id: 'colour', ...COLOUR }] },
  },
}

const codexNew: RealAgent = {
  ...codex,
  asksInSandbox: true,
  otherModel: 'gpt-5.5',
  package: '@agentclientprotocol/codex-acp',
  version: '2.6.0',
  start: place => ({
    ...codex.start(place),
    cmd: [
      process.execPath,
      path.join(place.root, 'codex-new/node_modules/@agentclientprotocol/codex-acp/dist/index.js'),
    ],
  }),
}

const claude: RealAgent = {
  provider: 'claude',
  otherModel: 'haiku',
  package: '@agentclientprotocol/claude-agent-acp',
  version: '0.49.0',
  start({ root, home, base }) {
    put(path.join(home, '.claude/settings.json'), {
      env: { ANTHROPIC_API_KEY: 'sk-ant-fake', ANTHROPIC_BASE_URL: base },
    })
    return {
      cmd: [
        process.execPath,
        path.join(root, 'claude/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js'),
      ],
      env: { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1', DISABLE_AUTOUPDATER: '1', IS_SANDBOX: '1' },
    }
  },
  tool: command => `[[tool:^Bash$ ${JSON.stringify({ command })}]]`,
  files: {
    write: (file_path, content) => call('Write', { file_path, content }),
    edit: (file_path, old_string, new_string) =>
      `${call('Read', { file_path })}${call('Edit', { file_path, old_string, new_string })}`,
  },
  question: { tool: 'AskUserQuestion', args: { questions: [{ ...COLOUR, multiSelect: false }] } },
}

const claudeNew: RealAgent = {
  ...claude,
  version: '0.101.0',
  with: NODE_24,
  start: place => ({
    ...claude.start(place),
    cmd: [
      node24(place.root, 'claude-new'),
      path.join(place.root, 'claude-new/node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js'),
    ],
  }),
  lookUp: '[[tool:^ToolSearch$ {"query":"note_it","max_results":5}]][[say:looked up]]',
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
    const options = { baseURL: `${base}/v1` }
    put(path.join(home, '.local/share/opencode/auth.json'), { fake: { type: 'api', key: 'x' } })
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
  files: {
    write: (filePath, content) => call('write', { filePath, content }),
    edit: (filePath, oldString, newString) =>
      `${call('read', { filePath })}${call('edit', { filePath, oldString, newString })}`,
  },
  question: { tool: 'question', args: { questions: [COLOUR] } },
}

/** The shell tool of Gemini CLI and of what was made from it. */
const runShellCommand = (command: string) =>
  `[[tool:^run_shell_command$ ${JSON.stringify({ command, description: 'for the test', is_background: false })}]]`

/** Their file tools. */
const geminiFiles: RealAgent['files'] = {
  write: (file_path, content) => call('write_file', { file_path, content }),
  edit: (file_path, old_string, new_string) =>
    `${call('read_file', { file_path })}${call('replace|edit', { file_path, old_string, new_string, instruction: 'change it' })}`,
}

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
    put(path.join(home, '.gemini/.env'), 'GEMINI_API_KEY=fake\n')
    return {
      cmd: [path.join(root, 'gemini/node_modules/.bin/gemini')],
      env: { GOOGLE_GEMINI_BASE_URL: base, GEMINI_CLI_TRUST_WORKSPACE: 'true' },
    }
  },
  tool: runShellCommand,
  files: geminiFiles,
  question: { tool: 'ask_user', args: { questions: [{ ...COLOUR, type: 'choice' }] } },
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
    put(path.join(home, '.qwen/.env'), `OPENAI_API_KEY=x\nOPENAI_BASE_URL=${base}/v1\nOPENAI_MODEL=fake-model\n`)
    return {
      cmd: [fs.realpathSync(path.join(root, 'qwen/node_modules/.bin/qwen'))],
      env: { QWEN_CODE_NO_TELEMETRY: '1', OPENAI_BASE_URL: `${base}/v1`, OPENAI_MODEL: 'fake-model' },
    }
  },
  lookUp: '[[tool:^tool_search$ {"query":"note_it"}]][[say:looked up]]',
  tool: runShellCommand,
  files: geminiFiles,
  question: { tool: 'ask_user_question', args: { questions: [{ ...COLOUR, multiSelect: false }] } },
}

const qwenNew: RealAgent = {
  ...qwen,
  callNoteIt: args => `[[tool:^tool_call$ ${JSON.stringify({ name: 'mcp__notebook__note_it', arguments: args })}]]`,
  version: '0.24.4',
  with: NODE_24,
  start: place => ({
    ...qwen.start(place),
    cmd: [node24(place.root, 'qwen-new'), fs.realpathSync(path.join(place.root, 'qwen-new/node_modules/.bin/qwen'))],
  }),
}

const copilot: RealAgent = {
  provider: 'copilot',
  package: '@github/copilot',
  version: '1.0.102',
  start: ({ root, base }) => ({
    cmd: [path.join(root, 'copilot/node_modules/.bin/copilot')],
    // A model of one's own needs neither an account nor a key.
    env: {
      COPILOT_PROVIDER_BASE_URL: `${base}/v1`,
      COPILOT_PROVIDER_TYPE: 'openai',
      COPILOT_MODEL: 'fake-model',
      COPILOT_OFFLINE: 'true',
      COPILOT_AUTO_UPDATE: 'false',
    },
  }),
  tool: command => `[[tool:^bash$ ${JSON.stringify({ command, description: 'for the test' })}]]`,
  files: {
    write: (file, file_text) => call('create', { path: file, file_text }),
    edit: (file, old_str, new_str) => call('edit|str_replace', { path: file, old_str, new_str }),
  },
  question: { tool: 'ask_user', args: { question: 'Which colour?', choices: ['Red', 'Blue'] } },
}

const kimi: RealAgent = {
  provider: 'kimi',
  package: '@moonshot-ai/kimi-code',
  version: '2.1.0',
  with: NODE_24,
  start({ root, home, base }) {
    const config = [
      'default_model = "fake"',
      'telemetry = false',
      '[providers.fake]',
      'type = "openai"',
      `base_url = "${base}/v1"`,
      'api_key = "x"',
      '[models.fake]',
      'provider = "fake"',
      'model = "fake-model"',
      'max_context_size = 100000',
      '',
    ]
    put(path.join(home, '.kimi-code/config.toml'), config.join('\n'))
    return {
      cmd: [node24(root, 'kimi'), fs.realpathSync(path.join(root, 'kimi/node_modules/.bin/kimi'))],
      env: { KIMI_DISABLE_TELEMETRY: '1' },
    }
  },
  tool: command => `[[tool:^(Bash|Shell|bash)$ ${JSON.stringify({ command })}]]`,
  files: {
    write: (file, content) => call('Write|WriteFile', { path: file, content }),
    edit: (file, old_string, new_string) => call('Edit|StrReplaceFile', { path: file, old_string, new_string }),
  },
  question: { tool: 'AskUserQuestion', args: { questions: [{ ...COLOUR, multi_select: false }] } },
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
  files: {
    write: (file, content) => call('write', { path: file, content }),
    edit: (file, oldText, newText) => call('edit', { path: file, edits: [{ oldText, newText }] }),
  },
  question: { tool: '.*(?:ask|question).*', args: {} },
}

const piNew: RealAgent = {
  ...pi,
  version: '0.0.34',
  with: { '@earendil-works/pi-coding-agent': '1.6.0', ...NODE_24 },
  start(place) {
    const bin = path.join(place.root, 'pi-new/node_modules/.bin')
    const { env } = pi.start(place)
    return {
      cmd: [node24(place.root, 'pi-new'), path.join(place.root, 'pi-new/node_modules/pi-acp/dist/index.js')],
      env: { ...env, PATH: `${path.dirname(node24(place.root, 'pi-new'))}:${bin}:${process.env.PATH}` },
    }
  },
}

/** Tried at each change; the others take `npm run test:real -- --all`. */
export const AT_EACH_CHANGE: readonly string[] = ['codex', 'claude']

export const realAgents: Readonly<Record<string, RealAgent>> = {
  codex,
  'codex-new': codexNew,
  claude,
  'claude-new': claudeNew,
  opencode,
  gemini,
  qwen,
  'qwen-new': qwenNew,
  kimi,
  copilot,
  pi,
  'pi-new': piNew,
}

/**
 * The command of an agent as its entry in the catalog has it, with the program replaced by a script of the same name that
 * sets the agent's environment: so the daemon recognizes it, and each entry is tried with the real program.
 */
export function commandOf(agent: RealAgent, place: Place): string {
  const { cmd, env } = agent.start(place)
  const secret = Object.keys(env).find(looksSecret)
  if (secret) throw new Error(`${secret} is a credential: it stands in a file, as after a login`)
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
