import { once } from 'node:events'
import { chmod, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { auth, daemon, resources } from '../../../../plugins/index.js'
import { validateReply } from '../../../harness/contract.js'
import { boot, temporaryFolder } from '../../../harness/kernel.js'
import { ask } from '../../../kernel/http/doors.js'
import { bearer, eventReader, places, tokenOf, withAuth } from './scene.js'

/** Opens a stream; tells what came when it is over. */
async function openStream(where: object, url: string, headers = {}) {
  const request = http.get({ ...where, path: url, headers, agent: false })
  const [response] = (await once(request, 'response')) as [http.IncomingMessage]
  let text = ''
  response.setEncoding('utf8').on('data', piece => {
    text += piece
  })
  const over = new Promise<string>(resolve => response.on('error', () => {}).on('close', () => resolve(text)))
  let isOver = false
  void over.then(() => {
    isOver = true
  })
  await once(response, 'data')
  return { over, isOver: () => isOver, close: () => request.destroy() }
}

test('the operator token is created at start, readable only by its user, and is valid over TCP', () =>
  withAuth(async ({ home, tcp, token, log }) => {
    assert.is((await stat(path.join(home, 'operator.token'))).mode & 0o777, 0o600)
    assert.match(await token(), /^svc_op_[0-9a-f]{64}$/)
    assert.equal((await tcp('GET', '/api/who', await token())).body, { id: 'daemon-control', origin: 'http' })
    assert.is((await tcp('GET', '/api/who')).code, 'identity_required')
    assert.is((await tcp('GET', '/api/who', `${await token()}0`)).code, 'token_unknown')
    assert.is((await tcp('GET', '/api/who', 'somebody-elses')).code, 'identity_required')
    const page = await tcp('GET', '/api/who', await token(), { headers: { 'sec-fetch-site': 'same-origin' } })
    assert.is(page.body.origin, 'web')
    assert.not(JSON.stringify(log).includes(await token()))
  }))

test('a rotated token is valid from the next request on, and closes connections of the old one', () =>
  withAuth(async ({ where, tcp, token }) => {
    const old = await token()
    const stream = await openStream(where.tcp, '/api/ticks', bearer(old))
    const socket = await openStream(where.socket, '/api/ticks')
    const waiting = tcp('POST', '/api/waits', old)
    const rotated = await tcp('POST', '/api/v0/auth/rotate', old)
    assert.equal([rotated.status, Object.keys(rotated.body)], [200, ['message']])
    assert.equal([(await waiting).status, (await waiting).code], [401, 'token_unknown'])
    assert.match(await stream.over, '"code":"identity_required"')
    assert.not(socket.isOver(), 'the Unix socket needs no token')
    socket.close()
    assert.is((await tcp('GET', '/api/who', old)).code, 'token_unknown')
    assert.is.not(await token(), old)
    assert.is((await tcp('GET', '/api/who', await token())).status, 200)
  }))

test('concurrent rotations run in order, and the token in the file is the valid one', () =>
  withAuth(async ({ tcp, where, token }) => {
    for (let round = 0; round < 5; round++) {
      const old = await token()
      const headers = { authorization: `Bearer ${old}` }
      const replies = await Promise.all(
        Array.from({ length: 4 }, (_, at) =>
          at % 2 === 0
            ? tcp('POST', '/api/v0/auth/rotate', old)
            : ask(where.socket, '/api/v0/auth/rotate', { method: 'POST', headers }),
        ),
      )
      assert.equal(replies.map(({ status }) => status).sort(), [200, 401, 401, 401])
      assert.is.not(await token(), old)
      assert.is((await tcp('GET', '/api/who', await token())).status, 200)
      assert.is((await tcp('GET', '/api/who', old)).code, 'token_unknown')
    }
  }))

test('a key is valid until it is deleted, which ends its streams and requests and no others', () =>
  withAuth(async ({ where, tcp, token, key }) => {
    const [mine, other] = [await key(), await key()]
    assert.equal((await tcp('GET', '/api/who', mine.key)).body, { id: mine.id, origin: 'http' })
    const [stream, others] = [
      await openStream(where.tcp, '/api/ticks', bearer(mine.key)),
      await openStream(where.tcp, '/api/ticks', bearer(other.key)),
    ]
    const waiting = tcp('POST', '/api/waits', mine.key)
    while ((await tcp('GET', '/api/who', mine.key)).status !== 200);
    const deleted = await tcp('DELETE', `/api/v0/auth/keys/${mine.id}`, await token())
    assert.is(deleted.status, 200)
    assert.match(await stream.over, '"code":"identity_required"')
    assert.equal([(await waiting).status, (await waiting).code], [401, 'token_unknown'])
    assert.is((await tcp('GET', '/api/who', mine.key)).code, 'token_unknown')
    assert.is((await tcp('GET', '/api/who', other.key)).status, 200)
    assert.not(others.isOver())
    others.close()
  }))

test('only the operator token creates, lists and deletes keys, on both transports', () =>
  withAuth(async ({ where, token, key }) => {
    const program = await key()
    const urls = [
      ['POST', '/api/v0/auth/generate'],
      ['GET', '/api/v0/auth/keys'],
      ['DELETE', `/api/v0/auth/keys/${program.id}`],
      ['POST', '/api/v0/auth/rotate'],
    ] as const
    for (const door of [where.socket, where.tcp]) {
      for (const [method, url] of urls) {
        for (const headers of [{}, bearer(program.key), bearer('svc_op_wrong'), { authorization: 'Basic eDp5' }]) {
          const { status, body } = await ask(door, url, { method, headers })
          assert.is(status, 401, `${method} ${url} ${JSON.stringify(headers)}`)
          assert.equal(validateReply(method, url, status, body), [])
          assert.is(typeof body.details, 'string', 'the next step is a text here')
        }
      }
      const headers = bearer(await token())
      const { status, body } = await ask(door, '/api/v0/auth/keys', { headers })
      assert.equal([status, body.data.keys.map(({ id }: { id: string }) => id)], [200, [program.id]])
      const unknown = await ask(door, '/api/v0/auth/keys/key_0', { method: 'DELETE', headers })
      assert.equal([unknown.status, unknown.body.code], [404, 'api_key_not_found'])
    }
  }))

test('a key is shown once: lists, the log and files of the home contain only its prefix', () =>
  withAuth(async ({ home, kernel, tcp, token, key, log }) => {
    const { id, key: secret } = await key()
    await tcp('GET', '/api/who', secret)
    const { body } = await tcp('GET', '/api/v0/auth/keys', await token())
    const [listed] = body.data.keys
    assert.equal(Object.keys(listed).sort(), ['created_at', 'id', 'last_used', 'prefix'])
    assert.ok(secret.startsWith(listed.prefix) && secret.length > listed.prefix.length + 60)
    assert.is(listed.id, id)
    await kernel.host.checkpoint()
    const hidden = secret.slice(listed.prefix.length + 1)
    assert.not(JSON.stringify(log).includes(hidden))
    for (const name of await readdir(home, { recursive: true, withFileTypes: true })) {
      if (!name.isFile()) continue
      const bytes = await readFile(path.join(name.parentPath, name.name))
      assert.not(bytes.includes(hidden), name.name)
    }
  }))

test('keys and the token survive a restart, except a token readable by others', async () => {
  const home = await temporaryFolder('auth')
  const config = path.join(home, 'config.json')
  await writeFile(config, JSON.stringify({ http: { port: 0 } }))
  const start = async () => {
    const svc = await boot({ home, plugins: [auth, places], listen: ['tcp'] })
    const listener = svc.kernel.host.listeners()[0]
    const tcp = { host: '127.0.0.1', port: listener?.door === 'tcp' ? listener.port : 0 }
    const who = async (token: string) => (await ask(tcp, '/api/who', { headers: bearer(token) })).status
    const make = async () => {
      const headers = bearer(await tokenOf(home))
      return (await ask(tcp, '/api/v0/auth/generate', { method: 'POST', headers })).body.data.api_key as string
    }
    return { svc, who, make }
  }
  const first = await start()
  const [token, key] = [await tokenOf(home), await first.make()]
  await first.svc.close()
  const second = await start()
  assert.equal([await second.who(token), await second.who(key)], [200, 200])
  await second.svc.close()
  await chmod(path.join(home, 'operator.token'), 0o644)
  const third = await start()
  assert.equal([await third.who(token), await third.who(key)], [401, 200])
  assert.is(await third.who(await tokenOf(home)), 200)
  assert.ok(third.svc.log.some(({ msg }) => /other users could read/.test(msg)))
  await third.svc.close()
  await writeFile(path.join(home, 'operator.token'), 'short\n')
  const fourth = await start()
  assert.is(await fourth.who('short'), 401)
  assert.is(await fourth.who(await tokenOf(home)), 200)
  await fourth.svc.close()
  await rm(home, { recursive: true })
})

test('a key has a unique name by which it is listed and deleted', () =>
  withAuth(async ({ tcp, token }) => {
    const operator = await token()
    const make = (name?: unknown) =>
      tcp('POST', '/api/v0/auth/generate', operator, name === undefined ? {} : { body: { name } })
    const made = await make('ci of web')
    assert.is(made.status, 201)
    await make()
    assert.equal(
      [(await make(' ci of web ')).code, (await make('a\nb')).status, (await make('')).status],
      [...['api_key_name_taken', 400, 400]],
    )
    const twice = await Promise.all([make('two'), make('two')])
    assert.equal(twice.map(({ status }) => status).sort(), [201, 409])
    const names = async () =>
      (await tcp('GET', '/api/v0/auth/keys', operator)).body.data.keys.map((key: { name?: string }) => key.name)
    assert.equal(await names(), ['ci of web', undefined, 'two'])
    const secret = made.body.data.api_key
    assert.is((await tcp('GET', '/api/who', secret)).status, 200)
    const removal = await tcp('DELETE', '/api/v0/auth/keys/ci%20of%20web', operator)
    assert.equal(removal.body, { message: `deleted ${made.body.data.id}` })
    assert.is((await tcp('GET', '/api/who', secret)).status, 401)
    assert.is((await tcp('DELETE', '/api/v0/auth/keys/ci%20of%20web', operator)).code, 'api_key_not_found')
    assert.equal(await names(), [undefined, 'two'])
  }))

test('every event names its actor and transport', () =>
  withAuth(
    async ({ where, tcp, token, key, kernel }) => {
      const { id, key: secret } = await key()
      const put = { method: 'PUT', body: { scope: { kind: 'global' }, spec: { text: 'x' }, expected_version: 0 } }
      const url = (name: string) => `/api/resources/test.note/${name}`
      await ask(where.socket, url('uds'), put)
      await ask(where.socket, url('cli'), { ...put, headers: { 'user-agent': 'svc/cli' } })
      await tcp('PUT', url('http'), await token(), put)
      await tcp('PUT', url('web'), await token(), { ...put, headers: { 'sec-fetch-site': 'same-origin' } })
      await tcp('PUT', url('key'), secret, put)
      const rows = JSON.parse((await kernel.inject({ method: 'GET', url: '/api/told' })).body).told
      assert.equal(rows, [
        ['test.note/uds', 'daemon-control', 'uds'],
        ['test.note/cli', 'daemon-control', 'cli'],
        ['test.note/http', 'daemon-control', 'http'],
        ['test.note/web', 'daemon-control', 'web'],
        ['test.note/key', id, 'http'],
      ])
    },
    {},
    [daemon, resources, eventReader],
  ))

test('refused tokens are logged once a minute, and reported by doctor above a threshold', () =>
  withAuth(
    async ({ tcp, token, log }) => {
      const lines = () => log.filter(line => JSON.stringify(line).includes('its token is not valid'))
      const doctor = async () => (await tcp('GET', '/api/doctor', await token())).body.items
      const itemsOf = async () => (await doctor()).filter(({ code }: { code: string }) => code === 'unknown_tokens')
      for (let n = 0; n < 9; n++) await tcp('GET', '/api/who', n % 2 === 0 ? 'somebody-elses' : `svc_op_${n}`)
      await tcp('GET', '/api/who')
      assert.equal(await itemsOf(), [])
      await tcp('GET', '/api/who', 'somebody-elses')
      const [item] = await itemsOf()
      assert.match(item.message, /^10 requests over TCP within an hour .* from 127\.0\.0\.1 at /)
      assert.is(lines().length, 1)
      assert.not(JSON.stringify([log, item]).includes('somebody-elses'))
    },
    {},
    [daemon],
  ))

test.run()
