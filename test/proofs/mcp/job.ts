import assert from 'node:assert/strict'
import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspectProcesses } from '../../../plugins/platform/processes/inspect.js'
import type { OAuthWorld } from '../../plugins/work/mcp/oauth-world.js'
import { EXTENSION } from '../../plugins/work/tools/scene.js'
import { commandOf, type RealAgent } from '../../real/agents.js'
import { fakeOpener, logInBy } from './browser.js'
import { calling, type Model } from './model.js'
import { FILESYSTEM, type Step, type Terminal, type Wire, type World } from './world.js'

/** What a model is told of our tools at most. */
const MOST_SCHEMA_BYTES = 8000
const READING_MS = 500
const REMOVED = 'removable'
const call = (id: string, input: object) => calling('tool_call$', { id, input })

export interface JobWorld {
  readonly world: World
  readonly authority: OAuthWorld
  readonly model: Model
  readonly real: RealAgent
  /** Where the real agents are installed. */
  readonly root: string
  /** A catalog over HTTP, and the folder that it serves. */
  readonly catalog: { readonly url: string; readonly folder: string }
  /** That server-filesystem may read. */
  readonly files: string
}

/** The work of a person with skills, tools and MCP servers, from an empty home on. */
export function jobSteps({ world, authority, model, real, root, catalog, files }: JobWorld): readonly Step[] {
  const user = path.join(world.folder, 'user')
  let terminal: Terminal | undefined
  const results = () => model.results()
  /** Types a prompt; resolves with the result that its model is given. */
  const prompted = async (prompt: string, meanwhile = async () => {}) => {
    const before = (await results()).length
    terminal?.type(`${prompt}\r`)
    await meanwhile()
    return world.until('the result of the tool', async () => (await results())[before])
  }
  const shown = async (id: string): Promise<Wire> => JSON.parse(await world.svc('tool', 'show', id, '--json')).tool
  return [
    {
      what: 'a skill, an extension and two MCP servers are installed out of a catalog over HTTP',
      async run() {
        await world.svc('daemon', 'start')
        const source = path.join(world.folder, 'clock')
        fs.mkdirSync(source)
        for (const [name, text] of Object.entries(EXTENSION)) fs.writeFileSync(path.join(source, name), text)
        await world.svc('extension', 'publish', source, '--to', catalog.folder, '--author', 'Authors')
        await world.svc('config', 'set', 'marketplace.catalog.base_url', catalog.url)
        await world.svc('marketplace', 'refresh')
        assert.match(await world.svc('marketplace', 'search', 'bisect'), /bisect/)
        await world.svc('skill', 'install', 'bisect')
        await world.svc('extension', 'install', 'clock', '--from', 'curated', '--allow-unverified', '--yes')
        await world.svc('mcp', 'install', 'filesystem')
        const guarded = await world.json<Wire>('mcp', 'install', 'guarded')
        assert.equal(guarded.next_step, 'authorize', JSON.stringify(guarded))
        assert.match(await world.svc('skill', 'list'), /bisect/)
        return 'bisect, clock, filesystem, guarded'
      },
    },
    {
      what: 'before the login the tools of the server cannot be called, and it is said why',
      async run() {
        const { mcp_server: server } = await world.ask('GET', '/api/settings/mcp-servers/guarded?probe=true')
        assert.equal(server.runtime_status.reason, 'mcp_auth_required', JSON.stringify(server))
        return server.runtime_status.diagnostic
      },
    },
    {
      what: 'a person logs in to it in Chromium, which the command line opens',
      async run() {
        const opener = fakeOpener(path.join(world.folder, 'openers'))
        const login = world.terminal(['mcp', 'auth', 'login', 'guarded'], { PATH: `${opener.path}:${world.env.PATH}` })
        await login.shows(/Log in here:\s+http/)
        const address = await world.until('the address in the browser', () => opener.address())
        const { pages, last } = await logInBy(address)
        await login.shows(/logged in to guarded/)
        assert.equal(await login.ended, 0, login.text)
        return `${pages.length} pages; the last one says ${last.trim().replaceAll(/\s+/g, ' ')}`
      },
    },
    {
      what: 'a real agent starts in a sandbox, in the terminal',
      async run() {
        const command = commandOf(real, { root, home: user, base: model.base })
        const head = `name: ada\npermissions: approve-all\ncommand: '${command}'`
        world.writeHome('agents/ada/AGENT.md', `---\n${head}\n---\nYou do what you are told.\n`)
        world.writeHome(`agents/${REMOVED}/AGENT.md`, `---\nname: ${REMOVED}\n---\nYou are removed.\n`)
        const work = path.join(world.folder, 'work')
        fs.mkdirSync(work)
        const { session } = await world.ask('POST', '/api/sessions', { workspace_path: work, agent_name: 'ada' })
        terminal = world.terminal(['session', 'attach', session.id])
        await terminal.shows(/attached to/)
        return `${session.id}, ${session.sandbox?.backend ?? 'no sandbox'}`
      },
    },
    {
      what: 'it finds a tool by search, the first time somebody searches',
      async run() {
        const found = await prompted(calling('tool_search$', { query: 'says who asks' }))
        assert.match(found, /mcp__guarded__who/)
        const { tools, bytes } = await model.offered(/svc/)
        assert.ok(tools === 3 && bytes <= MOST_SCHEMA_BYTES, `${tools} tools, ${bytes} bytes`)
        return `its model is told of ${tools} tools in ${bytes} bytes`
      },
    },
    {
      what: 'it calls a native tool, one of the extension and one of each server',
      async run() {
        assert.match(await prompted(call('service__agent_list', {})), /You do what you are told/)
        assert.match(await prompted(call('ext__clock__now', { zone: 'UTC' })), /12:00/)
        assert.match(await prompted(call('mcp__guarded__who', {})), /you are me/)
        fs.writeFileSync(path.join(files, 'read.txt'), 'from the file')
        const read = await prompted(call('mcp__filesystem__read_text_file', { path: path.join(files, 'read.txt') }))
        assert.match(read, /from the file/)
        return 'four answers'
      },
    },
    {
      what: 'one that deletes waits for the person, who allows it in the terminal',
      async run() {
        const removed = await prompted(call('service__agent_delete', { name: REMOVED }), async () => {
          await terminal?.shows(/\? call: service__agent_delete \(destructive\)/)
          await terminal?.shows(/instead: /)
          assert.equal(
            (await world.request('socket', 'GET', `/api/agents/${REMOVED}`)).status,
            200,
            'it is still there',
          )
          // What is typed before a person can have read the question does not answer it.
          await sleep(READING_MS)
          terminal?.type('y')
          await terminal?.shows(/Allowed: service__agent_delete/)
        })
        assert.doesNotMatch(removed, /denied/)
        assert.equal((await world.request('socket', 'GET', `/api/agents/${REMOVED}`)).status, 404)
        return 'asked once, and the agent is gone'
      },
    },
    {
      what: 'the token expires and is renewed without a person',
      async run() {
        const renewals = () => authority.asked.filter(line => line === 'POST /token').length
        const before = { tokens: new Set(authority.shown).size, asked: renewals() }
        await world.until('another token', async () => {
          assert.match(
            JSON.stringify(await world.ask('POST', '/api/tools/mcp__guarded__who/invoke', { input: {} })),
            /you are me/,
          )
          return new Set(authority.shown).size > before.tokens
        })
        assert.ok(renewals() > before.asked)
        return `${new Set(authority.shown).size} tokens so far`
      },
    },
    {
      what: 'a server is killed, and svc tool show says why its tools cannot be called',
      async run() {
        // The agent has started one of its own, which is no child of the daemon.
        const { pid: daemon } = world.discovery
        const servers = [...inspectProcesses(process.platform).values()].filter(
          ({ pid, parent }) =>
            parent === daemon && fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0')[1] === FILESYSTEM,
        )
        assert.equal(servers.length, 1, 'it runs')
        for (const { pid } of servers) process.kill(pid, 'SIGKILL')
        const id = 'mcp__filesystem__read_text_file'
        const tool = await world.until('why', async () => {
          const one = await shown(id)
          return one.decision.callable === false && one
        })
        assert.ok(JSON.stringify(tool).includes('mcp_unreachable'), JSON.stringify(tool))
        const text = await world.svc('tool', 'show', id)
        assert.match(text, /filesystem: it has ended/)
        return /MCP server filesystem:.*/.exec(text)?.[0] ?? ''
      },
    },
    {
      what: 'it is started again by who needs it',
      async run() {
        const wish = call('mcp__filesystem__read_text_file', { path: path.join(files, 'read.txt') })
        await world.until('the server', async () => /from the file/.test(await prompted(wish)))
        terminal?.kill()
        return 'its tool answers'
      },
    },
  ]
}
