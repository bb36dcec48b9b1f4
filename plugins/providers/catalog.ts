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
const nativeCli = (name: string, displayName: string, command: string, install: string): Provider => ({
  name,
  displayName,
  argv: [command],
  harness: 'acp',
  authMode: 'native_cli',
  envPolicy: 'filtered',
  homePolicy: 'operator',
  runtimeProvider: name,
  install,
})

/** Every provider, in the order in which they are tried. Another one is another entry here. */
export const catalog: readonly Provider[] = [
  builtIn,
  nativeCli('claude', 'Claude', 'claude-agent-acp', 'npm install -g @agentclientprotocol/claude-agent-acp'),
  nativeCli('codex', 'Codex', 'codex-acp', 'npm install -g @zed-industries/codex-acp'),
]
