// proof, timeout: 120s: the built program, its tokens and keys as people use them
import { once } from 'node:events'
import { chmodSync, readFileSync, rmSync, statSync } from 'node:fs'
import http from 'node:http'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { WebSocket } from 'ws'
import { Installed } from './installed.js'

const at = new Installed()
const test = suite('auth')
test.after(() => at.remove())

const status = (token: string | undefined, method = 'GET', path = '/api/sessions') =>
  new Promise<number>((resolve, reject) => {
    const headers = token === undefined ? {} : { authorization: `Bearer ${token}` }
    http
      .request({ host: '127.0.0.1', port: at.discovery.port, method, path, headers, agent: false }, response => {
        response.resume().on('end', () => resolve(response.statusCode ?? 0))
      })
      .on('error', reject)
      .end()
  })

test('svc auth token prints the header of a program, and gives the next step without a token', async () => {
  const before = await at.run(['auth', 'token'])
  assert.is(before.code, 1)
  assert.match(before.stderr, 'svc daemon start')
  await at.svc('daemon', 'start')
  const token = (await at.svc('auth', 'token')).trim()
  assert.is(token, at.token)
  assert.is(statSync(join(at.home, 'operator.token')).mode & 0o777, 0o600)
  assert.equal([await status(token), await status(undefined), await status(`${token}x`)], [200, 401, 401])
  assert.is(await status(undefined, 'GET', '/api/status/identity'), 200)
})

test('an API key is printed once, works over TCP, and its open channel ends when the key is deleted', async () => {
  const key = (await at.svc('auth', 'key', 'create')).trim()
  assert.match(key, /^svc_key_[0-9a-f]{16}_[0-9a-f]{64}$/)
  assert.is(await status(key), 200)
  const { keys } = await at.json<{ keys: { id: string; last_used?: string }[] }>('auth', 'key', 'list')
  assert.is(keys.length, 1)
  assert.type(keys[0]?.last_used, 'string')
  const id = keys[0]?.id ?? ''
  assert.not((await at.svc('auth', 'key', 'list')).includes(key))

  const root = at.makeRepository('work')
  const { text } = await at.request('socket', 'POST', '/api/workspaces/resolve', { path: root })
  const url = `/api/workspaces/${JSON.parse(text).workspace.id}/window-manager/stream`
  const headers = { authorization: `Bearer ${key}` }
  const channel = new WebSocket(`ws://127.0.0.1:${at.discovery.port}${url}`, { headers })
  await once(channel, 'message')
  const closed = once(channel, 'close')
  assert.match(await at.svc('auth', 'key', 'delete', id), `deleted ${id}`)
  const [code, why] = await closed
  assert.equal([code, String(why)], [1008, 'the token that opened this channel is no longer valid'])
  assert.is(await status(key), 401)
  assert.is((await at.run(['auth', 'key', 'delete', id])).code, 4)
})

test('a rotated token takes effect at once and after a restart', async () => {
  const old = at.token
  const token = (await at.svc('auth', 'token', '--rotate')).trim()
  assert.is.not(token, old)
  assert.equal([await status(old), await status(token)], [401, 200])
  await at.svc('daemon', 'stop')
  await at.svc('daemon', 'start')
  assert.equal([at.token, await status(token)], [token, 200])
})

test('a token that is missing or readable by others is replaced at start; the log contains none', async () => {
  const file = join(at.home, 'operator.token')
  const seen = [at.token]
  for (const harm of [() => chmodSync(file, 0o644), () => rmSync(file)]) {
    await at.svc('daemon', 'stop')
    harm()
    await at.svc('daemon', 'start')
    assert.not(seen.includes(at.token))
    assert.is(await status(seen.at(-1)), 401)
    seen.push(at.token)
  }
  const log = readFileSync(join(at.home, 'logs', 'svc.log'), 'utf8')
  for (const token of seen) assert.not(log.includes(token))
})

test('svc auth matrix lists every route and marks those that run code', async () => {
  const { routes } = await at.json<{ routes: { path: string; runs_code: boolean }[] }>('auth', 'matrix')
  assert.ok(routes.length > 100)
  assert.ok(routes.some(({ path, runs_code }) => path.endsWith('/prompt') && runs_code))
  const table = await at.svc('auth', 'matrix')
  assert.match(table, /PATH +METHOD +CLASS +AGENT +CODE/)
})

test.run()
