// timeout: 120s
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel, type Kernel } from '../../../../kernel/index.js'
import { canRunCode } from '../../../../kernel/kit/annotations/index.js'
import { definePlugin, Fault, type Plugin, type Route } from '../../../../kernel/plugin.js'
import { accessTo, type RouteClass, rules } from '../../../../plugins/access/auth/access.js'
import { inTree, quiesceOrder } from '../../../../plugins/index.js'
import { temporaryFolder } from '../../../harness/kernel.js'
import { ask } from '../../../kernel/http/doors.js'
import { type Case, cases, harmless } from './cases.js'
import { bearer, tokenOf } from './scene.js'

const routes: readonly Route[] = inTree.flatMap(({ surface }) => surface.routes ?? [])
const nameOf = ({ method, path }: Route) => `${method} ${path}`

/** Stands behind all that decides who may call, and before the handlers: nothing is done by what is asked here. */
const gate = definePlugin({ name: 'gate', version: '1.0.0' }).surface({
  hooks: {
    admit: (_self, _incoming, { privileged, method, path }) =>
      (privileged && isOpen) || (path === '/api/v0/auth/generate' && isOpen)
        ? undefined
        : new Fault('reached', 418, `${method} ${path} was reached`),
  },
}) as Plugin
/** Lets privileged routes through, whose last guard comes after the gate. */
let isOpen = false

class World {
  private constructor(
    readonly kernel: Kernel,
    readonly home: string,
    readonly where: { readonly tcp: { host: string; port: number }; readonly socket: { socketPath: string } },
    readonly tokens: Readonly<Record<NonNullable<Case['token']>, string>>,
  ) {}

  static async start(settings: object): Promise<World> {
    const home = await temporaryFolder('matrix')
    const config = { http: { port: 0, allowed_hosts: ['box.example'], ...settings } }
    await writeFile(path.join(home, 'config.json'), JSON.stringify(config))
    const env = { PATH: '', HOME: home, SVC_HOME: home }
    const plugins = [...inTree, gate]
    const kernel = await createKernel({
      home,
      plugins,
      env,
      listen: ['socket', 'tcp'],
      quiesceOrder,
      checkReplies: true,
    })
    const tcp = kernel.host.listeners().find(({ door }) => door === 'tcp')
    const where = {
      tcp: { host: '127.0.0.1', port: tcp?.door === 'tcp' ? tcp.port : 0 },
      socket: { socketPath: path.join(home, 'daemon.sock') },
    }
    const operator = await tokenOf(home)
    isOpen = true
    const [key, revoked] = await Promise.all(
      ['key', 'revoked'].map(async () => {
        const asked = { method: 'POST', headers: bearer(operator) }
        return (await ask(where.socket, '/api/v0/auth/generate', asked)).body.data as { id: string; api_key: string }
      }),
    )
    isOpen = false
    await kernel.host.unload('gate')
    const deleted = { method: 'DELETE', headers: bearer(operator) }
    assert.is((await ask(where.socket, `/api/v0/auth/keys/${revoked?.id}`, deleted)).status, 200)
    await kernel.host.load(gate)
    const tokens = {
      operator,
      key: key?.api_key ?? '',
      revoked: revoked?.api_key ?? '',
      wrong: `svc_op_${'0'.repeat(64)}`,
      foreign: 'somebody-elses-token',
    }
    return new World(kernel, home, where, tokens)
  }

  async close(): Promise<void> {
    await this.kernel.close()
    await rm(this.home, { recursive: true, force: true })
  }
}

const test = suite<{ strict: World; trusting: World }>('matrix')
test.before(async context => {
  context.strict = await World.start({})
  context.trusting = await World.start({ trust_own_user: true })
})
test.after(async ({ strict, trusting }) => {
  await strict.close()
  await trusting.close()
})

interface Sent {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly setHost: boolean
  readonly body: string
}

/** What a case sends to a route. */
function requestOf({ noHost, headers = {}, body = '', token }: Case, route: Route, world: World): Sent {
  const known = token === undefined ? {} : bearer(world.tokens[token])
  return {
    method: route.method,
    path: route.path.replace(/\{[^}]+\}/g, 'nothing'),
    headers: { ...known, ...headers, ...(body === '' ? {} : { 'content-length': String(body.length) }) },
    setHost: noHost !== true && headers.host === undefined,
    body,
  }
}

/** Sends requests one after the other over kept connections, 8 at a time; status and code of each. Also runs as a program. */
async function sendAll(
  given: [where: object, requests: readonly Sent[]],
  request: typeof http.request,
  Agent: typeof http.Agent,
) {
  const [where, requests] = given
  const agent = new Agent({ keepAlive: true, maxSockets: 8 })
  const one = ({ body, ...sent }: Sent) =>
    new Promise<string>((resolve, reject) => {
      request({ ...where, ...sent, agent }, response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        response.on('end', () => {
          const code = /"code":"(\w+)"/.exec(text)?.[1]
          resolve(code === 'reached' ? code : `${response.statusCode} ${code}`)
        })
      })
        .on('error', reject)
        .end(body)
    })
  const answers = await Promise.all(requests.map(one))
  agent.destroy()
  return answers
}

/** Only root may start a process as another user. */
const isRoot = process.geteuid?.() === 0 && process.platform === 'linux'

async function sendAsStranger(where: object, requests: readonly Sent[]): Promise<string[]> {
  const script = `const http = require('node:http'); let text = ''
    process.stdin.on('data', piece => { text += piece }).on('end', async () => {
      console.log(JSON.stringify(await (${sendAll.toString()})(JSON.parse(text), http.request, http.Agent)))
    })`
  const child = spawn(process.execPath, ['-e', script], {
    uid: 12_345,
    gid: 12_345,
    cwd: '/',
    env: {},
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  let all = ''
  child.stdout.setEncoding('utf8').on('data', piece => {
    all += piece
  })
  child.stdin.end(JSON.stringify([where, requests]))
  await once(child, 'close')
  return JSON.parse(all)
}

for (const one of cases) {
  for (const door of ['tcp', 'socket'] as const) {
    if (one.stranger && (door === 'socket' || !isRoot)) continue
    test(`every route gives ${one.name} the expected reply over ${door}`, async ({ strict, trusting }) => {
      const world = one.trusting ? trusting : strict
      const requests = routes.map(route => requestOf(one, route, world))
      const answers = await (one.stranger
        ? sendAsStranger(world.where[door], requests)
        : sendAll([world.where[door], requests], http.request, http.Agent))
      const expected = one[door] ?? 'reached'
      const wrong = routes.flatMap((route, at) => {
        const wanted = typeof expected === 'function' ? expected(route) : expected
        return answers[at] === wanted ? [] : [`${nameOf(route)}: ${answers[at]}, not ${wanted}`]
      })
      assert.equal(wrong, [])
      assert.ok(answers.length > 100)
    })
  }
}

test('privileged routes are refused over TCP beyond loopback and by a proxy name', async () => {
  for (const settings of [{ host: '0.0.0.0', plaintext: true }, {}]) {
    const world = await World.start(settings)
    isOpen = true
    const privileged = routes.filter(route => route.privileged)
    assert.ok(privileged.length > 5)
    const request = { name: '', token: 'operator', headers: { host: 'box.example' }, tcp: 'reached' } as const
    const requests = privileged.map(route => requestOf(request, route, world))
    const answers = await sendAll([world.where.tcp, requests], http.request, http.Agent)
    isOpen = false
    assert.equal([...new Set(answers)], ['403 privileged_only'])
    await world.close()
  }
})

test('the matrix lists the allowed callers of each class of routes', async ({ strict }) => {
  const callers = { operator: 'operator_token', key: 'api_key' } as const
  for (const [token, caller] of Object.entries(callers)) {
    for (const kind of ['public', 'ordinary', 'privileged'] as const satisfies readonly RouteClass[])
      assert.is.not(rules[kind][caller], 'no', `${token} ${kind}`)
  }
  for (const [kind, { nobody }] of Object.entries(rules)) assert.is(nobody === 'yes', kind === 'public')
  await strict.kernel.host.unload('gate')
  const { body } = await strict.kernel.inject({ method: 'GET', url: '/api/auth/matrix' })
  await strict.kernel.host.load(gate)
  const told = JSON.parse(body).routes as { method: string; path: string; plugin: string }[]
  assert.is(told.length, routes.length)
  for (const plugin of inTree)
    for (const route of plugin.surface.routes ?? []) {
      const line = told.find(({ method, path }) => method === route.method && path === route.path)
      assert.equal(line, accessTo(plugin.name, route))
    }
})

test('routes that can run code are marked: all that change something, except known harmless ones', () => {
  const changing = routes.filter(({ method }) => method !== 'GET')
  assert.equal(
    changing
      .filter(route => !canRunCode(route))
      .map(nameOf)
      .sort(),
    harmless,
  )
  for (const part of [
    '/agents',
    '/sessions',
    '/prompt',
    '/approve',
    '/resources',
    '/jobs',
    '/extensions',
    '/activations',
  ])
    assert.ok(
      routes.some(route => route.path.includes(part) && canRunCode(route)),
      part,
    )
})

test.run()
