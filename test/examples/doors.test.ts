// alone: it measures the memory of its process
import { createHash, createHmac } from 'node:crypto'
import { once } from 'node:events'
import { cp, readdir, rm } from 'node:fs/promises'
import http from 'node:http'
import path from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { temporaryFolder } from '../harness/kernel.js'
import { until } from '../harness/until.js'
import { ask } from '../kernel/http/doors.js'
import { isActive, isGone, scene } from '../plugins/delivery/extensions/scene.js'

const examples = fileURLToPath(new URL('../../examples/extensions', import.meta.url))
const MB = 1024 * 1024

/** A kernel on both doors with these examples dropped in. */
async function during(
  names: readonly string[],
  work: (at: {
    readonly svc: Awaited<ReturnType<typeof scene>>
    readonly tcp: { readonly host: string; readonly port: number }
    readonly socket: { readonly socketPath: string }
    drop(name: string): Promise<void>
  }) => Promise<void>,
  { http = {}, env = {} }: { http?: object; env?: Record<string, string> } = {},
): Promise<void> {
  const home = await temporaryFolder('doors')
  const drop = (name: string) => cp(path.join(examples, name), path.join(home, 'extensions', name), { recursive: true })
  for (const name of names) await drop(name)
  const config = JSON.stringify({ http: { port: 0, ...http } })
  const svc = await scene(
    {},
    { home, config, listen: ['socket', 'tcp'], env: { PATH: process.env.PATH, HOME: home, ...env } },
  )
  try {
    for (const name of names) await svc.until(name, isActive)
    const listener = svc.kernel.host.listeners().find(({ door }) => door === 'tcp')
    const port = listener?.door === 'tcp' ? listener.port : 0
    await work({
      svc,
      tcp: { host: '127.0.0.1', port },
      socket: { socketPath: path.join(home, 'daemon.sock') },
      drop: async name => {
        await drop(name)
        await svc.until(name, isActive)
      },
    })
  } finally {
    await svc.close()
    await rm(home, { recursive: true, force: true })
  }
}

const answer = async (where: object, url: string, headers: Record<string, string> = {}) => {
  const { status, body } = await ask(where, url, { headers })
  return status < 300 ? status : `${status} ${body.code}`
}

test('acme.api-keys: a key admits its bearer within its scope until it is revoked', () =>
  during(['acme.api-keys'], async ({ svc, tcp, socket }) => {
    const key = (id: string, text: string, kinds: string[] = []) =>
      svc.request('PUT', `/api/resources/acme.key/${id}`, {
        scope: { kind: 'global' },
        spec: { sha256: createHash('sha256').update(text).digest('hex'), kinds },
        expected_version: 0,
      })
    await key('ci', 'k-ci')
    await key('narrow', 'k-narrow', ['acme.other'])
    const keys = '/api/resources/acme.key'
    const bearer = (text: string) => ({ authorization: `Bearer ${text}` })
    assert.is(await answer(tcp, keys, bearer('k-ci')), 200)
    assert.is(await answer(tcp, `${keys}/ci`, bearer('k-narrow')), '404 record_not_found')
    assert.is(await answer(tcp, keys, bearer('k-wrong')), '401 acme_key_unknown')
    assert.is(await answer(tcp, keys), '401 identity_required')
    assert.is(await answer(socket, keys), 200)
    await svc.request('DELETE', `${keys}/ci`, { expected_version: 1 })
    let last: unknown = 200
    while (last === 200) last = await answer(tcp, keys, bearer('k-ci'))
    assert.is(last, '401 acme_key_unknown')
    await svc.remove('acme.api-keys')
    await svc.until('acme.api-keys', isGone)
    assert.is(await answer(tcp, '/api/status', bearer('k-narrow')), '401 identity_required')
  }))

test('acme.api-keys: TCP admits no caller while the configured plugin is not running', () =>
  during(
    [],
    async ({ tcp, socket, drop }) => {
      const waiting = answer(tcp, '/api/status')
      assert.is(await answer(socket, '/api/status'), 200)
      await drop('acme.api-keys')
      assert.is(await waiting, '401 identity_required')
    },
    { http: { authenticator: 'acme.api-keys', host: '0.0.0.0', allowed_hosts: ['127.0.0.1'], plaintext: true } },
  ))

test('acme.webhook: a signed request is accepted from outside unchanged, and no other', () =>
  during(
    ['acme.webhook', 'acme.api-keys'],
    async ({ svc, tcp }) => {
      const url = '/api/ext/acme.webhook/deliveries'
      const sign = (text: string, secret = 's3cret') =>
        `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`
      const post = async (body: string, signature: string, type = 'application/json') => {
        const headers = { host: 'hooks.example', 'content-type': type, 'x-acme-signature': signature }
        const reply = await ask(tcp, url, { method: 'POST', headers, body })
        return reply.status === 202 ? reply.body.delivery : `${reply.status} ${reply.body.code}`
      }
      // Written as no program of ours would write it: the signature is over these bytes.
      const text = '{"delivery":\t"d1",\r\n "action": "p\\u0075sh" }'
      assert.is(await post(text, sign(text)), 'd1')
      assert.is(await post(JSON.stringify(JSON.parse(text)), sign(text)), '401 acme_not_signed')
      assert.is(await post(text, sign(text, 'guessed')), '401 acme_not_signed')
      assert.is(await post(text, ''), '401 acme_not_signed')
      assert.is(await post('[]', sign('[]')), '422 acme_not_understood')
      assert.is(await post(text, sign(text), 'text/plain'), '415 unsupported_media_type')
      const large = ' '.repeat(64 * 1024) + text
      assert.is(await post(large, sign(large)), '413 payload_too_large')
      assert.is(await answer(tcp, '/api/status', { host: 'hooks.example' }), '401 identity_required')
      assert.equal(svc.kernel.host.faults(), [])
    },
    { http: { allowed_hosts: ['hooks.example'] }, env: { ACME_WEBHOOK_SECRET: 's3cret' } },
  ))

/** The most memory that this process takes, beyond what it had, while the work is done. */
async function growthDuring(work: () => Promise<void>): Promise<number> {
  const before = process.memoryUsage().rss
  let most = before
  const timer = setInterval(() => {
    most = Math.max(most, process.memoryUsage().rss)
  }, 10)
  await work()
  clearInterval(timer)
  return Math.max(most, process.memoryUsage().rss) - before
}

/** Megabytes of the file that is sent. */
const SIZE = 300

test('acme.files: 300 MB are uploaded and downloaded in the memory of a few buffers', () =>
  during(['acme.files'], async ({ svc, socket }) => {
    const url = (name: string) => `/api/ext/acme.files/files/${name}`
    const block = Buffer.alloc(MB, 'x')
    const send = async (name: string, megabytes: number) => {
      const headers = { 'content-type': 'application/zip' }
      const request = http.request({ ...socket, method: 'PUT', path: url(name), headers, agent: false })
      const answered = once(request, 'response') as Promise<[http.IncomingMessage]>
      await pipeline(
        Readable.from(
          (function* () {
            for (let n = 0; n < megabytes; n++) yield block
          })(),
        ),
        request,
      )
      const [response] = await answered
      assert.is(response.statusCode, 201)
      await response.resume().toArray()
    }
    const fetched = async (name: string) => {
      const [response] = (await once(http.get({ ...socket, path: url(name), agent: false }), 'response')) as [
        http.IncomingMessage,
      ]
      const hash = createHash('sha256')
      await pipeline(response, hash)
      assert.is(response.headers['content-disposition'], `attachment; filename="${name}"`)
      return hash.digest('hex')
    }
    const hashed = createHash('sha256')
    for (let n = 0; n < SIZE; n++) hashed.update(block)
    const wanted = hashed.digest('hex')
    // What code and buffers take once is not the size's.
    await send('small', 5)
    await fetched('small')
    const growth = await growthDuring(async () => {
      await send('big.zip', SIZE)
      assert.is(await fetched('big.zip'), wanted)
    })
    // Who held it whole would need all of it; how late garbage is collected differs between releases of Node, and with the load.
    assert.ok(growth < (SIZE * MB) / 2, `${Math.round(growth / MB)} MB more for ${SIZE} MB each way`)

    const cut = http.request({
      ...socket,
      method: 'PUT',
      path: url('cut'),
      headers: { 'content-type': 'a/b' },
      agent: false,
    })
    cut.on('error', () => {}).write(block)
    const stored = () => readdir(path.join(svc.home, 'files/acme.files'))
    await until(async () => (await stored()).some(name => name.startsWith('.part')), 'a part of the file')
    cut.destroy()
    await until(async () => !(await stored()).some(name => name.startsWith('.part')), 'the removal of the part')
    assert.is(await answer(socket, url('cut')), '404 acme_file_not_found')
    assert.is(await answer(socket, url('..%2f..%2fconfig.json')), '422 acme_file_name')
    assert.equal(svc.kernel.host.faults(), [])
  }))

test('acme.sign-in: a redirect back from another site is accepted only for the browser that started it', () =>
  during(['acme.sign-in'], async ({ svc, tcp }) => {
    const { state } = (await svc.request('POST', '/api/ext/acme.sign-in/begun')).body
    const arrive = (query: string, more = {}) =>
      ask(tcp, `/api/ext/acme.sign-in/callback?${query}`, {
        headers: {
          'sec-fetch-site': 'cross-site',
          'sec-fetch-mode': 'navigate',
          'sec-fetch-dest': 'document',
          ...more,
        },
      })
    const forged = await arrive('state=0000&code=<b>')
    assert.equal([forged.status, forged.headers['content-type']], [400, 'text/html; charset=utf-8'])
    assert.match(forged.text, 'was not started here')
    assert.is((await arrive(`state=${state}&code=1`, { 'sec-fetch-dest': 'image' })).status, 403)
    const done = await arrive(`state=${state}&code=<b>`)
    assert.equal([done.status, done.headers['content-type']], [200, 'text/html; charset=utf-8'])
    assert.match(done.text, 'You are signed in with &#60;b&#62;')
    assert.is((await arrive(`state=${state}&code=1`)).status, 400)
  }))

test.run()
