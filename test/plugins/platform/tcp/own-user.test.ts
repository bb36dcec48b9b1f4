import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type FileHandle, mkdtemp, open, rm, writeFile } from 'node:fs/promises'
import http from 'node:http'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { createKernel } from '../../../../kernel/index.js'
import { describe } from '../../../../kernel/kit/annotations/index.js'
import {
  anonymous,
  definePlugin,
  ok,
  type Plugin,
  type PluginKernel,
  routeOf,
  streamed,
} from '../../../../kernel/plugin.js'
import { Daemon } from '../../../../plugins/desk/daemon/api.js'
import daemon from '../../../../plugins/desk/daemon/index.js'
import configuration from '../../../../plugins/platform/configuration/index.js'
import { Tcp, type TcpApi } from '../../../../plugins/platform/tcp/api.js'
import { tcpWith } from '../../../../plugins/platform/tcp/index.js'
import { PeerTable } from '../../../../plugins/platform/tcp/peers.js'
import { freePort } from '../../../harness/free-port.js'
import { temporaryFolder, withBase } from '../../../harness/kernel.js'
import { ask, type Doors, openDoors, parseReply, pause } from '../../../kernel/http/doors.js'

const ME = process.geteuid?.() ?? -1
const STRANGER = 12_345
/** Only root may start a process as another user. */
const asRoot = ME === 0 && process.platform === 'linux' ? test : test.skip
const onLinux = process.platform === 'linux' ? test : test.skip

/** What handlers were asked to do, by the name in the path. */
const done: string[] = []
const route = routeOf<unknown>(describe('Test'))
const reply = v.object({ name: v.string() })
const doers: Plugin = definePlugin({ name: 'doers', version: '1.0.0', service: async () => class {} }).surface({
  routes: [
    ...(['GET', 'POST', 'PUT', 'DELETE'] as const).map(method =>
      route({
        method,
        path: '/api/do/{name}',
        summary: 'Takes note',
        replies: { 200: reply },
        handle: (_self, { params }) => {
          done.push(params.name)
          return ok({ name: params.name })
        },
      }),
    ),
    route({
      method: 'GET',
      path: '/api/stream',
      summary: 'Streams',
      contentType: 'text/event-stream',
      replies: { 200: null },
      frames: v.object({ data: v.number() }),
      handle: () => {
        done.push('stream')
        return streamed(
          (async function* () {
            yield { data: 1 }
          })(),
        )
      },
    }),
  ],
}) as Plugin

async function during<T>(work: (doors: Doors) => Promise<T>, http = {}): Promise<T> {
  done.length = 0
  const doors = await openDoors([doers], undefined, http)
  try {
    return await work(doors)
  } finally {
    await doors.close()
  }
}

/** Sends each of the texts over a connection of its own; prints what came over each, as JSON. */
const CLIENT = `
  const [where, ...texts] = JSON.parse(process.argv[1])
  const send = text => new Promise(resolve => {
    const socket = require('node:net').connect(where)
    let all = ''
    socket.on('data', data => { all += data }).on('error', () => {}).on('close', () => resolve(all))
    socket.write(text)
  })
  Promise.all(texts.map(send)).then(all => process.stdout.write(JSON.stringify(all)))`

/** What a process of another user gets for its requests, one connection each. */
async function sendAs(uid: number, where: object, texts: readonly string[], wrap: readonly string[] = []) {
  const [command = '', ...args] = [...wrap, process.execPath, '-e', CLIENT, JSON.stringify([where, ...texts])]
  const child = spawn(command, args, { uid, gid: uid, cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'ignore'] })
  let all = ''
  child.stdout.setEncoding('utf8').on('data', data => {
    all += data
  })
  await once(child, 'close')
  return JSON.parse(all) as string[]
}

const head = (first: string, port: number, ...more: string[]) =>
  `${[`${first} HTTP/1.1`, `host: localhost:${port}`, ...more].join('\r\n')}\r\n\r\n`
const codeOf = (text: string) => {
  const { status, body } = parseReply(text)
  return `${status} ${(body as { code?: string }).code}`
}

asRoot('another user gets 401 over TCP, whatever the request', async () => {
  await during(async ({ port }) => {
    const requests = [
      head('GET /api/do/a', port),
      head('POST /api/do/a', port, 'content-length: 0'),
      `${head('PUT /api/do/a', port, 'content-type: application/json', 'content-length: 2')}{}`,
      head('DELETE /api/do/a', port),
      head('GET /api/stream', port, 'accept: text/event-stream'),
      head('GET /nowhere', port),
      head('GET /api/do/a', port, 'origin: http://evil.example'),
      head('GET /api/do/a', port, 'x-svc-acting: act_1'),
      head(
        'GET /api/do/a',
        port,
        'connection: upgrade',
        'upgrade: websocket',
        'sec-websocket-version: 13',
        'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
      ),
      head('GET /api/do/a', port, 'connection: upgrade', 'upgrade: h2c'),
    ]
    for (const host of ['127.0.0.1', '::ffff:127.0.0.1']) {
      const replies = await sendAs(STRANGER, { host, port }, requests)
      replies.forEach((reply, at) => {
        assert.is(codeOf(reply), '401 unauthorized_peer', `${host} ${requests[at]}`)
      })
    }
    // The connection ends with its first refusal: what was sent behind is not answered.
    const [both = ''] = await sendAs(STRANGER, { host: '127.0.0.1', port }, [`${requests[0]}${requests[0]}`])
    assert.is(both.match(/HTTP\/1\.1/g)?.length, 1)
    assert.match(both, `from user ${STRANGER}`)
    assert.match(both, 'Unix socket')
    assert.equal(done, [])
  })
})

asRoot('root of another user namespace is that user', async () => {
  const wrap = ['unshare', '--user', '--map-root-user']
  const { status } = spawnSync('unshare', ['--user', '--map-root-user', 'true'], {
    uid: STRANGER,
    gid: STRANGER,
    cwd: '/',
  })
  if (status !== 0) return console.log('skipped: this machine allows users no namespaces')
  await during(async ({ port }) => {
    const [text] = await sendAs(STRANGER, { host: '127.0.0.1', port }, [head('GET /api/do/a', port)], wrap)
    assert.is(codeOf(text ?? ''), '401 unauthorized_peer')
  })
})

onLinux('the own user is served over both families, and with keep-alive', async () => {
  for (const [bound, hosts] of [
    ['localhost', ['127.0.0.1', '::ffff:127.0.0.1']],
    ['127.0.0.2', ['127.0.0.2']],
    ['::1', ['::1']],
  ] as const) {
    await during(
      async ({ port }) => {
        for (const host of hosts) {
          const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
          const headers = { host: bound === '127.0.0.2' ? `127.0.0.2:${port}` : `localhost:${port}` }
          for (const name of ['a', 'b', 'c']) {
            const { status, text } = await ask({ host, port }, `/api/do/${name}`, { agent, headers })
            assert.is(status, 200, `${host}: ${text}`)
          }
          assert.is(Object.values(agent.freeSockets).flat().length, 1, 'one connection')
          agent.destroy()
        }
      },
      { host: bound },
    )
  }
})

onLinux('many connections at once are each told apart', async () => {
  await during(async ({ port }) => {
    const where = { host: '127.0.0.1', port }
    const own = Array.from({ length: 100 }, (_, n) => ask(where, `/api/do/own${n}`))
    const others = ME === 0 ? sendAs(STRANGER, where, Array(50).fill(head('PUT /api/do/other', port))) : []
    assert.equal(new Set((await Promise.all(own)).map(({ status }) => status)), new Set([200]))
    for (const reply of await others) assert.is(codeOf(reply), '401 unauthorized_peer')
    assert.is(done.length, 100)
    assert.not(done.includes('other'))
  })
})

onLinux('a connection that was closed, half closed or reset before its lookup is nobody’s', async () => {
  await during(async ({ port }) => {
    const request = (name: string) => head(`PUT /api/do/${name}`, port)
    const endings: Record<string, (socket: net.Socket) => void> = {
      closed: socket => socket.destroySoon(),
      half: socket => socket.end(),
      reset: socket => socket.resetAndDestroy(),
    }
    for (const [name, end] of Object.entries(endings)) {
      for (let round = 0; round < 20; round++) {
        const socket = net.connect({ host: '127.0.0.1', port, allowHalfOpen: true })
        let text = ''
        socket
          .on('error', () => {})
          .on('data', data => {
            text += data
          })
        await once(socket, 'connect')
        socket.write(request(`${name}${round}`))
        end(socket)
        if (name === 'half') {
          await once(socket, 'end')
          // The lookup and the end race each other; without a reply nothing was done either.
          assert.is(/^HTTP\/1\.1 200/.test(text), done.includes(`${name}${round}`), text)
          socket.destroy()
        }
      }
    }
    assert.is((await ask({ host: '127.0.0.1', port }, '/api/do/after')).status, 200)
  })
})

/** A kernel for which the connection table is what this file says. */
async function withTable(work: (port: number, say: (text: string) => Promise<void>) => Promise<void>) {
  const home = await temporaryFolder('tables')
  await writeFile(path.join(home, 'config.json'), '{ "http": { "port": 0, "trust_own_user": true } }')
  const tables = await mkdtemp(path.join(os.tmpdir(), 'svc-tables-'))
  const say = (text: string) => writeFile(path.join(tables, 'tcp'), text)
  await say(TABLE_HEAD)
  done.length = 0
  const kernel = await createKernel({
    home,
    plugins: [doers, configuration, tcpWith(tables)],
    listen: ['tcp'],
  })
  const [tcp] = kernel.host.listeners()
  await work(tcp?.door === 'tcp' ? tcp.port : 0, say).finally(async () => {
    await kernel.close()
    await rm(home, { recursive: true })
    await rm(tables, { recursive: true })
  })
}

const TABLE_HEAD = '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n'
const end = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`
/** One row as the system writes it: the end of a client. */
const row = (from: number, to: number, { state = '01', uid = ME, inode = 77 } = {}) =>
  `   1: ${end(from)} ${end(to)} ${state} 00000000:00000000 00:00000000 00000000 ${uid}        0 ${inode} 1 0\n`

onLinux('only a row that is established and has an inode counts', async () => {
  await withTable(async (port, say) => {
    const statusFrom = async (more: object | undefined, filler = '') => {
      const localPort = await freePort()
      await say(TABLE_HEAD + filler + (more ? row(localPort, port, more) : ''))
      return (await ask({ host: '127.0.0.1', port, localPort }, '/api/do/a')).status
    }
    assert.is(await statusFrom({}), 200)
    assert.is(await statusFrom(undefined), 401)
    assert.is(await statusFrom({ uid: ME + 1 }), 401)
    for (const state of ['02', '04', '05', '06', '07', '08', '0A']) assert.is(await statusFrom({ state }), 401, state)
    assert.is(await statusFrom({ inode: 0 }), 401, 'without an inode')
    const many = Array.from({ length: 5000 }, (_, n) => row(n + 1, port, { uid: ME + 1 + n })).join('')
    assert.is(await statusFrom({}, many), 200, 'behind many others')
    assert.is(await statusFrom({}, row(1, port).repeat(51).slice(1)), 200, 'over the border of a page')
  })
})

onLinux('a table is read up to the row of the connection', async () => {
  await withTable(async (port, say) => {
    const localPort = await freePort()
    await say(TABLE_HEAD + row(localPort, port) + row(1, port).repeat(8000))
    const handle = await open('/dev/null')
    const files: FileHandle = Object.getPrototypeOf(handle)
    await handle.close()
    const { read } = files
    let pages = 0
    files.read = function (this: FileHandle, ...of: Parameters<typeof read>) {
      if ((of as readonly unknown[])[2] === 8192) pages++
      return read.apply(this, of)
    } as typeof read
    const { status } = await ask({ host: '127.0.0.1', port, localPort }, '/api/do/a')
    files.read = read
    assert.equal([status, pages], [200, 1])
  })
})

onLinux('a connection that was reset is not its successor’s with the same port', async () => {
  await withTable(async (port, say) => {
    const localPort = await freePort()
    // What the table says when another user's connection was reset and the daemon's user opened one from the same port.
    await say(TABLE_HEAD + row(localPort, port).repeat(8000))
    const socket = net.connect({ host: '127.0.0.1', port, localPort })
    await once(socket, 'connect')
    socket.write(head('PUT /api/do/reset', port))
    socket.resetAndDestroy()
    // The system may deliver the reset late; meanwhile this thread, and with it the lookup, stands still.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 200)
    await once(socket, 'close')
    await pause(100)
    assert.equal(done, [])
  })
})

asRoot('a peer in another network namespace is nobody', async () => {
  const name = `svc-test-${process.pid}`
  const [ours, theirs] = [`sv${process.pid}`, `sw${process.pid}`]
  const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'ignore' })
  try {
    ip('netns', 'add', name)
    ip('link', 'add', ours, 'type', 'veth', 'peer', 'name', theirs)
    ip('link', 'set', theirs, 'netns', name)
    ip('addr', 'add', '10.213.77.1/30', 'dev', ours)
    ip('link', 'set', ours, 'up')
    ip('netns', 'exec', name, 'ip', 'addr', 'add', '10.213.77.2/30', 'dev', theirs)
    ip('netns', 'exec', name, 'ip', 'link', 'set', theirs, 'up')
  } catch {
    spawnSync('ip', ['netns', 'del', name])
    return console.log('skipped: this machine makes no network namespaces')
  }
  const table = await PeerTable.open()
  if (typeof table === 'string') throw new Error(table)
  const server = net.createServer(async socket => {
    socket.end(JSON.stringify(await table.of(socket)))
  })
  try {
    await new Promise<void>(resolve => server.listen(0, '10.213.77.1', resolve))
    const where = { host: '10.213.77.1', port: (server.address() as net.AddressInfo).port }
    // Root, like this process: in its own namespace it is known, in the other it is not.
    assert.equal(JSON.parse((await sendAs(0, where, ['x']))[0] ?? ''), { status: 'known', uid: 0 })
    assert.equal(JSON.parse((await sendAs(0, where, ['x'], ['ip', 'netns', 'exec', name]))[0] ?? ''), {
      status: 'unknown',
    })
  } finally {
    server.close()
    await table.close()
    spawnSync('ip', ['netns', 'del', name])
    spawnSync('ip', ['link', 'del', ours])
  }
})

onLinux(
  'a token counts more than the user of the process that sends it, however late its plugin is asked',
  async () => {
    const guests = definePlugin({ name: 'z-guests', version: '1.0.0', requires: { daemon: Daemon } }).surface({
      hooks: {
        authenticate: async (_, { headers }) =>
          headers.authorization === 'Guest ada' ? { ...anonymous, id: 'ada', origin: 'guest' } : undefined,
      },
      routes: [
        route({
          method: 'GET',
          path: '/api/who',
          summary: 'Says who asks',
          replies: { 200: reply },
          handle: (_self, { actor }) => ok({ name: actor.id }),
        }),
      ],
    })
    const doors = await openDoors([daemon, guests])
    const who = async (headers = {}) => (await ask(doors.where.tcp, '/api/who', { headers })).body.name
    assert.is(await who({ authorization: 'Guest ada' }), 'ada')
    assert.is(await who(), 'daemon-control')
    await doors.close()
  },
)

test('the own user needs a token where the system reports no peer user', async () => {
  let served: TcpApi | undefined
  const looker = definePlugin({
    name: 'looker',
    version: '1.0.0',
    requires: { tcp: Tcp },
    service: async () =>
      class {
        constructor({ needs }: PluginKernel<{ tcp: typeof Tcp }>) {
          served = needs.tcp
        }
      },
  }).surface({}) as Plugin
  const listens = async (settings: object, tables?: string) => {
    const home = await temporaryFolder('enabled')
    await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, ...settings } }))
    const log: string[] = []
    const kernel = await createKernel({
      home,
      plugins: withBase([doers, daemon, looker, ...(tables ? [tcpWith(tables)] : [])]),
      listen: ['socket', 'tcp'],
      log: ({ msg }) => log.push(msg),
    })
    const tcp = kernel.host.listeners().find(({ door }) => door === 'tcp')
    const status = tcp?.door === 'tcp' ? (await ask({ host: '127.0.0.1', port: tcp.port }, '/api/do/a')).status : 0
    const state = (served as TcpApi).state
    const { items } = JSON.parse((await kernel.inject({ method: 'GET', url: '/api/doctor?only=daemon.tcp' })).body)
    const { daemon: identity } = JSON.parse((await kernel.inject({ method: 'GET', url: '/api/status/identity' })).body)
    await kernel.close()
    await rm(home, { recursive: true })
    return { status, state: state.status, why: identity.http_off, code: items[0].code, told: log.join('\n') }
  }
  const seen = ({ status, state, code }: Awaited<ReturnType<typeof listens>>) => [status, state, code]
  for (const enabled of ['auto', true])
    assert.equal(seen(await listens({ enabled })), [401, 'on', 'tcp_ok'], 'without a token nobody is served')
  const untold = await listens({ trust_own_user: true }, '/nonexistent')
  assert.equal(seen(untold), [401, 'on', 'tcp_ok'])
  assert.match(untold.told, 'http.trust_own_user has no effect')
  assert.match(untold.told, 'does not report')
  const open = await listens({ require_token: false }, '/nonexistent')
  assert.equal(seen(open), [200, 'unchecked', 'tcp_unchecked'])
  assert.match(open.told, 'every local user')
  const disabled = await listens({ enabled: false })
  assert.equal(seen(disabled), [0, 'disabled', 'tcp_ok'])
  assert.match(disabled.why, 'http.enabled is false')
  if (process.platform !== 'linux') return
  assert.equal(seen(await listens({ trust_own_user: true })), [200, 'on', 'tcp_ok'])
})

test.run()
