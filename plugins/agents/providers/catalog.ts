import type { Provider } from './api.js'
import { BUILT_IN_PROVIDER, OWN_AGENT, OWN_AGENT_PROGRAM } from './built-in.js'

/** Runs the command that an agent names itself. */
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

/** An agent program that logs in by itself, in the home of the user, and speaks ACP. */
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
    | 'sandboxedArgs'
    | 'keyVariables'
    | 'ownFiles'
    | 'ownFilesEnv'
    | 'codeFiles'
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

/** Every provider, in the order in which they are tried. Another one is another entry here. */
export const catalog: readonly Provider[] = [
  builtIn,
  nativeCli('claude', 'Claude', ['claude-agent-acp'], {
    install: 'npm install -g @agentclientprotocol/claude-agent-acp',
    login: 'claude-agent-acp --cli auth login --claudeai',
    loginCheck: ['claude-agent-acp', '--cli', 'auth', 'status'],
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
    sandboxedArgs: ['-c', 'sandbox_mode="danger-full-access"', '-c', 'approval_policy="untrusted"'],
    keyVariables: ['OPENAI_API_KEY', 'CODEX_API_KEY'],
    ownFiles: ['.codex'],
    ownFilesEnv: ['CODEX_HOME'],
    codeFiles: ['.codex/config.toml', '.codex/hooks.json', '.codex/hooks'],
  }),
  nativeCli('gemini', 'Gemini CLI', ['gemini', '--acp'], {
    install: 'npm install -g @google/gemini-cli',
    login: 'gemini',
    keyVariables: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
    ownFiles: ['.gemini'],
    codeFiles: ['.gemini/settings.json', '.gemini/extensions', '.gemini/hooks'],
  }),
  nativeCli('opencode', 'OpenCode', ['opencode', 'acp'], {
    install: 'npm install -g opencode-ai',
    login: 'opencode auth login',
    askingEnv: { OPENCODE_PERMISSION: '{"edit":"ask","bash":"ask","webfetch":"ask"}' },
    ownFiles: ['.config/opencode', '.local/share/opencode', '.local/state/opencode', '.cache/opencode'],
    ownFilesEnv: ['OPENCODE_CONFIG_DIR'],
    codeFiles: ['opencode.json', 'opencode.jsonc', '.opencode'].flatMap(name => [name, `.config/opencode/${name}`]),
  }),
  nativeCli('copilot', 'GitHub Copilot CLI', ['copilot', '--acp'], {
    install: 'npm install -g @github/copilot',
    login: 'copilot login',
    keyVariables: ['COPILOT_GITHUB_TOKEN', 'GH_TOKEN', 'GITHUB_TOKEN'],
    ownFiles: ['.copilot'],
    codeFiles: ['.copilot/mcp-config.json', '.github/hooks'],
  }),
  nativeCli('qwen', 'Qwen Code', ['qwen', '--acp'], {
    install: 'npm install -g @qwen-code/qwen-code',
    login: 'qwen auth',
    keyVariables: ['OPENAI_API_KEY', 'DASHSCOPE_API_KEY'],
    ownFiles: ['.qwen'],
    codeFiles: ['.qwen/settings.json', '.qwen/extensions', '.qwen/hooks'],
  }),
  nativeCli('kimi', 'Kimi Code CLI', ['kimi', 'acp'], {
    install: 'npm install -g @moonshot-ai/kimi-code',
    login: 'kimi login',
    keyVariables: ['KIMI_MODEL_API_KEY', 'KIMI_API_KEY', 'MOONSHOT_API_KEY'],
    ownFiles: ['.kimi'],
    codeFiles: ['.kimi/config.toml', '.kimi/mcp.json'],
  }),
  nativeCli('pi', 'Pi', ['pi-acp'], {
    harness: 'pi_acp',
    install: 'npm install -g pi-acp @earendil-works/pi-coding-agent',
    login: 'pi-acp --terminal-login',
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
    // Its conversations.
    ownFilesEnv: ['SVC_AGENT_STATE'],
  },
]
