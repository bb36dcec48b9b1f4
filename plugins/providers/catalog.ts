import { BUILT_IN_PROVIDER, type Provider } from './api.js'

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
  more: Pick<Provider, 'install' | 'login' | 'loginCheck'> & { readonly harness?: Provider['harness'] },
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
  }),
  nativeCli('codex', 'Codex', ['codex-acp'], {
    install: 'npm install -g @zed-industries/codex-acp @openai/codex',
    login: 'codex login',
    loginCheck: ['codex', 'login', 'status'],
  }),
  nativeCli('gemini', 'Gemini CLI', ['gemini', '--acp'], {
    install: 'npm install -g @google/gemini-cli',
    login: 'gemini',
  }),
  nativeCli('opencode', 'OpenCode', ['opencode', 'acp'], {
    install: 'npm install -g opencode-ai',
    login: 'opencode auth login',
  }),
  nativeCli('copilot', 'GitHub Copilot CLI', ['copilot', '--acp'], {
    install: 'npm install -g @github/copilot',
    login: 'copilot',
  }),
  nativeCli('qwen', 'Qwen Code', ['qwen', '--acp'], {
    install: 'npm install -g @qwen-code/qwen-code',
    login: 'qwen',
  }),
  nativeCli('kimi', 'Kimi Code CLI', ['kimi', 'acp'], {
    install: 'npm install -g @moonshot-ai/kimi-code',
    login: 'kimi login',
  }),
  nativeCli('pi', 'Pi', ['pi-acp'], {
    harness: 'pi_acp',
    install: 'npm install -g pi-acp @earendil-works/pi-coding-agent',
    login: 'pi-acp --terminal-login',
  }),
]
