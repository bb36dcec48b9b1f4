// Proves tools, skills, MCP servers and the marketplace with programs of others: `npm run prove:mcp -- [--all] [servers] [job]
// [agents]`. `servers`: the official servers through the registry of tools, the inspector and the conformance runner against
// `svc mcp serve`, and the runner against the daemon as a client. `job`: from an empty home a person installs out of a catalog,
// logs in through Chromium at a real authorization server, and a real agent finds and calls tools, one of which is allowed in the
// terminal; the token expires, a server is killed. `agents`: real agents with an MCP configuration of their own. Packages come
// from the npm registry once. Prints each step, exits with 1 when one is not as it should be, with 2 when a package cannot be
// installed. --all: every scenario of the runner and each agent; default: those of each change, in about a minute.
import fs from 'node:fs'
import path from 'node:path'
import { performance } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { install, NotInstalled, root } from '../../scripts/test-real/install.js'
import { oauthWorld } from '../plugins/work/mcp/oauth-world.js'
import { realAgents } from '../real/agents.js'
import { serveCatalog } from './mcp/catalog.js'
import { conformanceServers, conformanceSteps } from './mcp/conformance.js'
import { inspectorSteps } from './mcp/inspector.js'
import { jobSteps } from './mcp/job.js'
import { Model } from './mcp/model.js'
import { configure, ownClientSteps } from './mcp/own-client.js'
import { installPackages } from './mcp/packages.js'
import { officialServers, serverSteps } from './mcp/servers.js'
import { type Step, World } from './mcp/world.js'

const MAX_WHY = 2500
/** The agent of the job, and the one that is tried by itself at each change. */
const AGENT = 'claude'
/** Seconds that a token counts: it is renewed half a minute before its end. */
const TOKEN_SECONDS = 45

const { values, positionals } = parseArgs({ options: { all: { type: 'boolean' } }, allowPositionals: true })
const config = { http: { port: 0 }, tools: { policy: { external_default: 'enabled' } } }

/** Runs steps in their order until one is wrong; returns those that are. */
async function follow(name: string, steps: readonly Step[], world: World): Promise<string[]> {
  for (const { what, run } of steps) {
    const startedAt = performance.now()
    try {
      console.log(`ok    ${name}: ${what}: ${await run()}  (${seconds(startedAt)})`)
    } catch (error) {
      const why = String(error instanceof Error ? error.stack : error).slice(0, MAX_WHY)
      console.log(`FAIL  ${name}: ${what}: ${why}${world.logTail().slice(-MAX_WHY)}`)
      return [`${name}: ${what}`]
    }
  }
  return []
}

const seconds = (since: number) => `${((performance.now() - since) / 1000).toFixed(1)} s`

/** The official servers, and clients of the daemon. */
async function servers(): Promise<string[]> {
  const world = new World(config)
  const folder = path.join(world.folder, 'files')
  fs.mkdirSync(folder)
  world.writeHome('mcp.json', JSON.stringify({ mcpServers: { ...officialServers(folder), ...conformanceServers } }))
  try {
    await world.svc('daemon', 'start')
    const steps = [...serverSteps(world, folder), ...inspectorSteps(world), ...conformanceSteps(world, !!values.all)]
    return await follow('servers', steps, world)
  } finally {
    await world.remove()
  }
}

/** The work of a person. */
async function job(): Promise<string[]> {
  const world = new World(config)
  const files = path.join(world.folder, 'files')
  fs.mkdirSync(files)
  const folder = path.join(world.folder, 'catalog')
  const authority = await oauthWorld({ ttl: TOKEN_SECONDS, pages: true })
  const catalog = await serveCatalog(folder, authority.url, files)
  const model = await Model.start()
  try {
    const real = realAgents[AGENT]!
    const places = { root, files, catalog: { url: catalog.url, folder } }
    return await follow('job', jobSteps({ world, authority, model, real, ...places }), world)
  } finally {
    await world.remove()
    model.stop()
    catalog.close()
    await authority.close()
  }
}

/** Agents that are clients of the daemon by themselves. */
async function agents(): Promise<string[]> {
  const world = new World(config)
  const model = await Model.start()
  try {
    await world.svc('daemon', 'start')
    const steps = names.flatMap(name => ownClientSteps(world, model, name, realAgents[name]!, root))
    return await follow('agents', steps, world)
  } finally {
    await world.remove()
    model.stop()
  }
}

const parts: Readonly<Record<string, () => Promise<string[]>>> = { servers, job, agents }
const names = values.all ? Object.keys(configure) : [AGENT]

async function main(): Promise<number> {
  const wanted = positionals.length > 0 ? positionals : Object.keys(parts)
  const unknown = wanted.find(name => !parts[name])
  if (unknown) throw new NotInstalled(`nothing called ${unknown}; there are ${Object.keys(parts).join(', ')}`)
  await installPackages()
  for (const name of names) await install(name, realAgents[name]!)
  const startedAt = performance.now()
  const wrong: string[] = []
  const waiting = [...wanted]
  const lane = async () => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) wrong.push(...(await parts[name]!()))
  }
  await Promise.all([lane(), lane()])
  for (const what of wrong) console.log(`wrong: ${what}`)
  console.log(`${wrong.length} wrong  ${seconds(startedAt)}`)
  return wrong.length === 0 ? 0 : 1
}

process.exitCode = await main().catch(error => {
  console.error(error instanceof NotInstalled ? error.message : error)
  return 2
})
