// timeout: 120s
import { readFile, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { auth, identity } from '../../../../plugins/index.js'
import { eventually, openWorld, type World } from '../../../fixtures/session-world.js'
import { ask } from '../../../kernel/http/doors.js'
import { tokenOf } from '../auth/scene.js'

/** Asks, as a program of its own, what stands in its argument, and writes down what it is answered. */
const CALLER = `
import http from 'node:http'
import { renameSync, writeFileSync } from 'node:fs'
const { where, file, asks } = JSON.parse(process.argv[2])
const ask = ({ door, method, url, headers, body }) => new Promise(resolve => {
  const request = http.request({ ...where[door], method, path: url, headers }, response => {
    let text = ''
    response.on('data', chunk => (text += chunk)).on('end', () => resolve([response.statusCode, text]))
  })
  request.on('error', error => resolve([0, String(error)])).end(body)
})
const answers = []
for (const one of asks) answers.push(await ask(one))
writeFileSync(file + '.new', JSON.stringify(answers))
renameSync(file + '.new', file)
`

const quote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

/** Ways in which an agent starts a program that shall not be taken for its own. */
const ways: Readonly<Record<string, (command: string) => string>> = {
  'a child': command => command,
  'its own process session': command => `setsid ${command}`,
  'an empty environment': command => `env -i ${command}`,
  'a double fork': command => `(setsid sh -c ${quote(`(${command} &); exit`)} &)`,
  'all of these combined': command =>
    `(env -i setsid sh -c ${quote(`(env -i setsid sh -c ${quote(`(${command} &); exit`)} &); exit`)} &)`,
  'a removed mark': command => `ulimit -S -m unlimited; exec ${command}`,
}

const test = suite<{ world: World; at: string; where: Record<string, object>; caller: string }>('descent')

test.before(async context => {
  const config = { http: { port: 0 } }
  const world = await openWorld({ config, plugins: [auth, identity], listen: ['socket', 'tcp'] })
  await world.agent('ada')
  const caller = path.join(world.root, 'caller.mjs')
  await writeFile(caller, CALLER)
  const listener = world.kernel.kernel.host.listeners().find(({ door }) => door === 'tcp')
  Object.assign(context, {
    world,
    caller,
    at: (await world.session('ada')).at,
    where: {
      socket: { socketPath: path.join(world.home, 'daemon.sock') },
      tcp: { host: '127.0.0.1', port: listener?.door === 'tcp' ? listener.port : 0 },
    },
  })
})
test.after(({ world }) => world.close())

for (const [name, way] of Object.entries(ways)) {
  test(`an agent is identified by ${name} on the operator transports and approves nothing`, async context => {
    const { world, at, where, caller } = context
    const authorization = `Bearer ${await tokenOf(world.home)}`
    const headers = { authorization, 'content-type': 'application/json' }
    const body = JSON.stringify({ request_id: 'x', decision: 'allow-once' })
    const approve = { method: 'POST', url: `${at}/approve`, headers, body }
    const status = { method: 'GET', url: '/api/status', headers }
    const asks = ['socket', 'tcp'].flatMap(door => [status, approve].map(one => ({ ...one, door })))
    const file = path.join(world.root, 'answers')
    const argument = quote(JSON.stringify({ where, file, asks }))
    await world.prompt(at, `shell ${way(`${process.execPath} ${caller} ${argument}`)}`)
    await eventually(async () => (await readFile(file).catch(() => '')).length > 0, 'the answers')
    const answers = JSON.parse(await readFile(file, 'utf8')) as [number, string][]
    await rm(file)
    const codes = answers.map(([status, text]) => [status, JSON.parse(text).code])
    const refused = [403, 'identity_unauthorized']
    assert.equal(codes, [[200, undefined], refused, [200, undefined], refused])
  })
}

test('a caller that does not descend from an agent is served', async ({ world, at, where }) => {
  await world.prompt(at, 'say hello')
  const headers = { authorization: `Bearer ${await tokenOf(world.home)}` }
  for (const door of Object.values(where)) {
    const body = { request_id: 'x', decision: 'allow-once' }
    const reply = await ask(door as never, `${at}/approve`, { method: 'POST', headers, body })
    assert.equal([reply.status, reply.body.code], [400, 'invalid_request'])
  }
})

test.run()
