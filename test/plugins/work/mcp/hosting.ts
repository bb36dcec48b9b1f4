import path from 'node:path'
import { audit, auth, identity } from '../../../../plugins/index.js'
import { agentText, openWorld, type World } from '../../../fixtures/session-world.js'
import { FakeTools, fakeTools } from './fake-tools.js'

const BIN = path.resolve('dist/bin')

/** A server that an agent was handed. */
export interface Handed {
  readonly name: string
  readonly command: string
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: string }[]
}

/** A daemon with tools that a test decides on, served over MCP. */
export async function openHosting(config: unknown = {}) {
  const tools = new FakeTools()
  const world = await openWorld({
    config,
    plugins: [audit, auth, identity, fakeTools(tools)],
    listen: ['socket'],
    env: { PATH: process.env.PATH, SVC_BIN_DIR: BIN, XDG_RUNTIME_DIR: '/tmp' },
  })
  await world.agent('ada')
  return { world, tools }
}

/** Starts a session, and what its agent was handed as the server `svc`. */
export async function handed(world: World) {
  const session = await world.session('ada')
  const servers: Handed[] = JSON.parse(agentText(await world.prompt(session.at, 'handed')))
  return { ...session, servers, proxy: servers.find(({ name }) => name === 'svc') }
}
