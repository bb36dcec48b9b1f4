import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Installed } from '../../e2e/installed.js'

const AGENT = fileURLToPath(new URL('../../fixtures/acp-agent.mjs', import.meta.url))

/** A running daemon with something to lose; ids. */
export interface Furnished {
  readonly pid: number
  readonly port: number
  /** Of the operator. */
  readonly token: string
  readonly workspace: string
  readonly session: string
}

/** Starts a daemon on a home that has one of everything that is made without much ado. */
export async function furnish(at: Installed): Promise<Furnished> {
  const root = path.join(at.folder, 'work')
  const agent = path.join(at.home, 'agents', 'scripted')
  mkdirSync(root, { recursive: true })
  mkdirSync(agent, { recursive: true })
  writeFileSync(
    path.join(agent, 'AGENT.md'),
    `---\nname: scripted\ncommand: '${process.execPath} ${AGENT}'\n---\nGo.\n`,
  )
  const { pid } = await at.json<{ pid: number }>('daemon', 'start')
  const ask = async (url: string, body: unknown) => JSON.parse((await at.request('socket', 'POST', url, body)).text)
  const workspace = (await ask('/api/workspaces/resolve', { path: root })).workspace.id as string
  const { session } = await ask('/api/sessions', { workspace, agent_name: 'scripted' })
  return { pid, port: at.discovery.port, token: at.token, workspace, session: session.id }
}

/** What requests can change, as text; times and counts of the clock are left out. */
export async function stateOf(at: Installed, { workspace, session }: Furnished): Promise<string> {
  const lists = [
    '/api/resources?limit=500',
    `/api/agents?workspace=${workspace}`,
    '/api/workspaces',
    `/api/sessions/${session}`,
    `/api/workspaces/${workspace}/sessions/${session}/events`,
    `/api/workspaces/${workspace}/window-manager/layout`,
    '/api/automation/jobs',
    '/api/extensions',
  ]
  const replies = await Promise.all(lists.map(async url => (await at.request('socket', 'GET', url)).text))
  return replies.join('\n').replace(/"[a-z_]*(?:_at|_seconds|_ms|activity[a-z_]*)":(?:"[^"]*"|[\d.]+|null),?/g, '')
}
