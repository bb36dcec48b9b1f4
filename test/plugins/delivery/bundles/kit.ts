import { mkdir, writeFile } from 'node:fs/promises'
import path from 'node:path'

type Json = Readonly<Record<string, unknown>>

/** What of an extension is other than usual. */
export interface KitOptions {
  readonly name?: string
  readonly manifest?: Json
  /** In place of the one profile `default`. */
  readonly profiles?: readonly Json[]
  readonly bundle?: Json
  /** Agents by folder: lines of the head; `planner` and its sidecars unless given. */
  readonly agents?: Readonly<Record<string, string>>
  readonly files?: Readonly<Record<string, string>>
}

export const layout = (id: string, more: Json = {}) => ({
  version: 1,
  id,
  display_name: `Layout ${id}`,
  aspect: 'any',
  overflow: 'stack',
  document: { version: 2, workspace_id: '', desktops: [desktop], windows: {}, overrides: {} },
  ...more,
})
const desktop = { id: 'd1', name: 'One', order: 0, purpose: 'standard', floating: [], groups: [] }

export const agentFile = (name: string, head = '', prompt = `You are ${name}.`) =>
  `---\nname: ${name}\n${head}---\n${prompt}\n`

export const job = (name: string, more: Json = {}) => ({
  name,
  agent: 'planner',
  prompt: 'Check.',
  schedule: { mode: 'every', interval: '24h' },
  ...more,
})

export const trigger = (name: string, more: Json = {}) => ({
  name,
  agent: 'planner',
  prompt: 'Summarise {{ .Kind }}.',
  event: 'session.stopped',
  filter: { 'data.stop_reason': 'error' },
  ...more,
})

export const bridge = (name: string, more: Json = {}) => ({
  name,
  display_name: 'Chat room',
  platform: 'slack',
  routing_policy: { include_peer: true },
  secret_slots: [{ name: 'bot_token', kind: 'token' }],
  ...more,
})

/** One of everything. */
export const profile = (more: Json = {}) => ({
  name: 'default',
  description: 'The usual',
  channels: { primary: 'release', items: [{ name: 'release', description: 'Release room' }, { name: 'aside' }] },
  agents: [{ path: 'agents/planner' }],
  layouts: [{ path: 'layouts/two-up.json' }],
  jobs: [job('nightly')],
  triggers: [trigger('on-stop')],
  bridges: [bridge('chat')],
  ...more,
})

/** Writes an extension with a bundle into a folder. */
export async function writeKit(folder: string, options: KitOptions = {}): Promise<string> {
  const { name = 'demo-kit', manifest = {}, profiles = [profile()], bundle = {}, agents, files = {} } = options
  const all: Record<string, string> = {
    'extension.json': JSON.stringify({
      name,
      version: '1.0.0',
      resources: { bundles: ['bundles'] },
      ...manifest,
    }),
    'bundles/kit.json': JSON.stringify({ name: 'release-kit', description: 'All for a release', profiles, ...bundle }),
    'layouts/two-up.json': JSON.stringify(layout('two-up')),
    ...(agents
      ? Object.fromEntries(Object.entries(agents).map(([dir, text]) => [`agents/${dir}/AGENT.md`, text]))
      : {
          'agents/planner/AGENT.md': agentFile('planner', 'model: some-model\ncategory_path: ["Release"]\n'),
          'agents/planner/SOUL.md': '---\nversion: 1\nrole: planner\n---\nCalm.\n',
          'agents/planner/HEARTBEAT.md': '---\nversion: 1\nenabled: true\n---\nInspect your inbox.\n',
        }),
    ...files,
  }
  for (const [file, text] of Object.entries(all)) {
    await mkdir(path.dirname(path.join(folder, file)), { recursive: true })
    await writeFile(path.join(folder, file), text)
  }
  return folder
}
