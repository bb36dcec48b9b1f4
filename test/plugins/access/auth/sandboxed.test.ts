// timeout: 120s
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { definePlugin, Fault, type Plugin, type Route } from '../../../../kernel/plugin.js'
import { Auth } from '../../../../plugins/access/auth/api.js'
import { base, inTree } from '../../../../plugins/index.js'
import { Processes } from '../../../../plugins/platform/processes/api.js'
import { Sessions } from '../../../../plugins/work/sessions/api.js'
import { AGENT, eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { insideCases } from './cases.js'
import { bearer, tokenOf } from './scene.js'

const routes: readonly Route[] = inTree.flatMap(({ surface }) => surface.routes ?? [])

/** Asks every route over both doors, as a program inside the sandbox; `unreachable` where it finds nothing to ask. */
const SENDER = `
import http from 'node:http'
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
const file = process.argv[2]
while (!existsSync(file + '.asks')) await new Promise(resolve => setTimeout(resolve, 20))
const { doors, asks } = JSON.parse(readFileSync(file + '.asks', 'utf8'))
const answers = {}
for (const [door, where] of Object.entries(doors)) {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 8 })
  const one = ask => new Promise(resolve => {
    const request = http.request({ ...where, ...ask, agent }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', piece => (text += piece)).on('end', () => {
        const code = /"code":"(\\w+)"/.exec(text)?.[1]
        resolve(code === 'reached' ? code : response.statusCode + ' ' + code)
      })
    })
    request.on('error', () => resolve('unreachable')).end()
  })
  answers[door] = await Promise.all(asks.map(one))
  agent.destroy()
}
writeFileSync(file + '.new', JSON.stringify(answers))
renameSync(file + '.new', file)
`

/** Stands behind what identity decides, for it requires as much and is sorted after it: nothing is done by what is asked here. */
const gate = definePlugin({ name: 'zgate', version: '1.0.0', requires: { Sessions, Auth, Processes } }).surface({
  hooks: {
    admit: (_self, _incoming, { method, path }) => new Fault('reached', 418, `${method} ${path} was reached`),
  },
}) as Plugin

const test = suite<{ world: World; doors: Readonly<Record<'tcp' | 'socket', object>> }>('sandboxed')

test.before(async context => {
  const own = new Set(['daemon', 'resources', 'workspaces', 'providers', 'agents', 'sessions'])
  const others = inTree.filter(plugin => !own.has(plugin.name) && !base.includes(plugin))
  const world = await openWorld({
    plugins: others,
    listen: ['socket', 'tcp'],
    config: {
      http: { port: 0 },
      sandboxes: { offline: { backend: 'bubblewrap', network: { allow_outbound: false } } },
    },
  })
  // One of the home: those of a workspace that is not trusted do not run.
  const folder = path.join(world.home, 'agents/ada')
  await mkdir(folder, { recursive: true })
  const head = `name: ada\npermissions: approve-all\ncommand: '${process.execPath} ${AGENT}'`
  await writeFile(path.join(folder, 'AGENT.md'), `---\n${head}\n---\nDo.\n`)
  await writeFile(path.join(world.root, 'sender.mjs'), SENDER)
  const tcp = world.kernel.kernel.host.listeners().find(({ door }) => door === 'tcp')
  context.world = world
  context.doors = {
    tcp: { host: '127.0.0.1', port: tcp?.door === 'tcp' ? tcp.port : 0 },
    socket: { socketPath: path.join(world.home, 'daemon.sock') },
  }
})
test.after(({ world }) => world.close())

for (const [at, { name, sandbox, token, ...expected }] of insideCases.entries()) {
  test(`every route gives a process inside a sandbox ${name} the expected reply over both transports`, async ({
    world,
    doors,
  }) => {
    const { id, at: url } = await world.session('ada', { sandbox })
    assert.is((await world.row(id)).sandbox?.backend, 'bubblewrap')
    const file = path.join(world.root, `answers-${at}`)
    const text = `shell ${process.execPath} ${world.root}/sender.mjs ${file}`
    assert.ok((await world.kernel.request('POST', `${url}/prompt`, { text })).status < 300)
    const { host } = world.kernel.kernel
    await host.load(gate)
    const known = { operator: await tokenOf(world.home), wrong: `svc_op_${'0'.repeat(64)}` }
    const headers = token ? bearer(known[token]) : {}
    const asks = routes.map(({ method, path }) => ({ method, path: path.replace(/\{[^}]+\}/g, 'nothing'), headers }))
    await writeFile(`${file}.asks.new`, JSON.stringify({ doors, asks }))
    await rename(`${file}.asks.new`, `${file}.asks`)
    const told = await eventually(() => readFile(file, 'utf8').catch(() => undefined), 'the answers')
    await host.unload('zgate')
    const answers = JSON.parse(told) as Record<'tcp' | 'socket', string[]>
    for (const door of ['tcp', 'socket'] as const) {
      const wrong = routes.flatMap((route, at) => {
        const wanted = typeof expected[door] === 'function' ? expected[door](route) : expected[door]
        return answers[door][at] === wanted
          ? []
          : [`${route.method} ${route.path}: ${answers[door][at]}, not ${wanted}`]
      })
      assert.equal(wrong, [], door)
      assert.is(answers[door].length, routes.length)
    }
  })
}

test.run()
