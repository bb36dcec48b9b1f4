import type { Provider } from './api.js'
import { BUILT_IN_PROVIDER, OWN_AGENT, OWN_AGENT_PROGRAM } from './built-in.js'

/** Runs an agent's own command. */
export const builtIn: Provider = {
  name: BUILT_IN_PROVIDER,
  displayName: "The agent's own command",
  argv: [],
  harness: 'acp',
  authMode: 'none',
  envPolicy: 'filtered',
  homePolicy: 'operator',
  runtimeProvider: BUILT_IN_PROVIDER,
}

/** An agent program with its own login in the user's home that supports ACP. */
function nativeCli(
  name: string,
  displayName: string,
  argv: readonly string[],
  more: Pick<
    Provider,
    | 'install'
    | 'login'
    | 'loginCheck'
    | 'neverAsks'
    | 'askingEnv'
    | 'askingModes'
    | 'sandboxedArgs'
    | 'sandboxedNote'
    | 'keyVariables'
    | 'ownFiles'
    | 'ownFilesEnv'
    | 'codeFiles'
    | 'programs'
    | 'packages'
    | 'withholds'
    | 'mcpTransports'
  > & { readonly harness?: Provider['harness'] },
): Provider {
  return {
    name,
    displayName,
    argv,
    harness: 'acp',
    authMode: 'native_cli',
    envPolicy: 'filtered',
    homePolicy: 'operator',
    runtimeProvider: name,
    ...more,
  }
}

/**
 * Built-in providers in the order of detection. The configuration and extensions add others with the same members
 * (`schemas/settings/entries.ts`).
 */
export const catalog: readonly Provider[] = [
  builtIn,
  nativeCli('claude', 'Claude', ['claude-agent-acp'], {
    install: 'npm install -g @agentclientprotocol/claude-agent-acp',
    login: 'claude-agent-acp --cli auth login --claudeai',
    loginCheck: ['claude-agent-acp', '--cli', 'auth', 'status'],
    programs: ['claude-code-acp'],
    packages: [
      '@agentclientprotocol/claude-agent-acp',
      '@zed-industries/claude-agent-acp',
      '@zed-industries/claude-code-acp',
    ],
    keyVariables: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
    ownFiles: ['.claude', '.claude.json'],
    ownFilesEnv: ['CLAUDE_CONFIG_DIR'],
    codeFiles: [
      '.claude/settings.json',
      '.claude/settings.local.json',
      '.claude/hooks',
      '.claude/plugins',
      '.mcp.json',
    ],
  }),
  nativeCli('codex', 'Codex', ['codex-acp'], {
    install: 'npm install -g @zed-industries/codex-acp @openai/codex',
    login: 'codex login',
    loginCheck: ['codex', 'login', 'status'],
    packages: ['@zed-industries/codex-acp', '@agentclientprotocol/codex-acp'],
    sandboxedArgs: ['-c', 'sandbox_mode="danger-full-access"', '-c', 'approval_policy="untrusted"'],
    // Its ACP adapter takes no arguments, and has no mode that asks without starting a sandbox.
    sandboxedNote:
      'Your commands run in a sandbox already, inside which a second one cannot be started. Ask to run each command outside of your own sandbox: sandbox_permissions "require_escalated" with a justification.',
    keyVariables: ['OPENAI_API_KEY', 'CODEX_API_KEY'],
    ownFiles: ['.codex'],
    ownFilesEnv: ['CODEX_HOME'],
    codeFiles: ['.codex/config.toml', '.codex/hooks.json', '.codex/hooks'],
  }),
  nativeCli('gemini', 'Gemini CLI', ['gemini', '--acp'], {
    install: 'npm install -g @google/gemini-cli',
    login: 'gemini',
    packages: ['@google/gemini-cli'],
    // It treats the answer for a missing file as a failure, and so never creates files; without `fs` it accesses them
    // itself.
    withholds: ['fs'],
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    ownFiles: ['.gemini'],
    codeFiles: ['.gemini/settings.json', '.gemini/extensions', '.gemini/hooks'],
  }),
  nativeCli('opencode', 'OpenCode', ['opencode', 'acp'], {
    install: 'npm install -g opencode-ai',
    login: 'opencode auth login',
    packages: ['opencode-ai'],
    askingEnv: { OPENCODE_PERMISSION: '{"edit":"ask","bash":"ask","webfetch":"ask"}' },
    ownFiles: ['.config/opencode', '.local/share/opencode', '.local/state/opencode', '.cache/opencode'],
    ownFilesEnv: ['OPENCODE_CONFIG_DIR'],
    codeFiles: ['opencode.json', 'opencode.jsonc', '.opencode'].flatMap(name => [name, `.config/opencode/${name}`]),
  }),
  nativeCli('copilot', 'GitHub Copilot CLI', ['copilot', '--acp'], {
    install: 'npm install -g @github/copilot',
    login: 'copilot login',
    packages: ['@github/copilot'],
    // Its initial mode, which asks for permission.
    askingModes: ['https://agentclientprotocol.com/protocol/session-modes#agent'],
    // It accepts stdio servers but does not start them.
    mcpTransports: ['http'],
    keyVariables: ['COPILOT_GITHUB_TOKEN', 'GH_TOKEN', 'GITHUB_TOKEN'],
    ownFiles: ['.copilot'],
    codeFiles: ['.copilot/mcp-config.json', '.github/hooks'],
  }),
  nativeCli('qwen', 'Qwen Code', ['qwen', '--acp'], {
    install: 'npm install -g @qwen-code/qwen-code',
    login: 'qwen auth',
    packages: ['@qwen-code/qwen-code'],
    keyVariables: ['OPENAI_API_KEY', 'DASHSCOPE_API_KEY'],
    ownFiles: ['.qwen'],
    codeFiles: ['.qwen/settings.json', '.qwen/extensions', '.qwen/hooks'],
  }),
  nativeCli('kimi', 'Kimi Code CLI', ['kimi', 'acp'], {
    install: 'npm install -g @moonshot-ai/kimi-code',
    login: 'kimi login',
    keyVariables: ['KIMI_MODEL_API_KEY', 'KIMI_API_KEY', 'MOONSHOT_API_KEY'],
    packages: ['@moonshot-ai/kimi-code', 'kimi-cli'],
    // The folders of Kimi Code and of its predecessor.
    ownFiles: ['.kimi-code', '.kimi'],
    ownFilesEnv: ['KIMI_CODE_HOME'],
    codeFiles: ['.kimi-code', '.kimi'].flatMap(folder =>
      ['config.toml', 'mcp.json', 'plugins', 'hooks'].map(name => `${folder}/${name}`),
    ),
  }),
  nativeCli('pi', 'Pi', ['pi-acp'], {
    harness: 'pi_acp',
    install: 'npm install -g pi-acp @earendil-works/pi-coding-agent',
    login: 'pi-acp --terminal-login',
    packages: ['pi-acp'],
    neverAsks: true,
    ownFiles: ['.pi'],
    codeFiles: ['.pi/settings.json', '.pi/extensions', '.pi/agent/settings.json', '.pi/agent/extensions'],
  }),
  {
    name: OWN_AGENT,
    displayName: 'svc-agent',
    argv: [OWN_AGENT_PROGRAM],
    needsEndpoint: true,
    harness: 'acp',
    authMode: 'bound_secret',
    envPolicy: 'filtered',
    homePolicy: 'operator',
    runtimeProvider: OWN_AGENT,
    // Folder of its conversations.
    ownFilesEnv: ['SVC_AGENT_STATE'],
  },
]
