import { execFileSync, spawnSync } from 'node:child_process'
import { chmod, rm, writeFile } from 'node:fs/promises'
import https from 'node:https'
import path from 'node:path'
import { test as always } from 'uvu'
import * as assert from 'uvu/assert'
import { WebSocket } from 'ws'
import { createKernel } from '../../../kernel/index.js'
import { auth, daemon } from '../../../plugins/index.js'
import { temporaryFolder, withBase } from '../../harness/kernel.js'
import { bearer, places, tokenOf } from '../../plugins/access/auth/scene.js'
import { ask } from './doors.js'

/** A home with a certificate of its own, started with these settings: the kernel, or the fault that stops it. */
async function start(
  http: object,
  prepare: (home: string) => Promise<unknown> = async () => {},
  plugins = withBase([auth, daemon, places]),
) {
  const home = await temporaryFolder('tls')
  const subject = ['-subj', '/CN=box.example', '-addext', 'subjectAltName=DNS:box.example,DNS:localhost']
  const made = [
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:P-256',
    '-nodes',
    '-days',
    '2',
    ...subject,
  ]
  const files = ['-keyout', path.join(home, 'box.key'), '-out', path.join(home, 'box.pem')]
  execFileSync('openssl', [...made, ...files], { stdio: 'ignore' })
  await prepare(home)
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ http: { port: 0, ...http } }))
  return createKernel({ home, plugins, listen: ['socket', 'tcp'] }).then(
    kernel => {
      const tcp = kernel.host.listeners().find(({ door }) => door === 'tcp')
      const close = async () => {
        await kernel.close()
        await rm(home, { recursive: true })
      }
      return { kernel, home, close, port: tcp?.door === 'tcp' ? tcp.port : 0 }
    },
    async error => {
      await rm(home, { recursive: true })
      return error as { code: string; message: string; next: string }
    },
  )
}

const tls = { cert: 'box.pem', key: 'box.key' }
/** Certificates are made by openssl. */
const test = spawnSync('openssl', ['version']).status === 0 ? always : always.skip

/** Status of a request over TLS, and who the daemon took the caller for. */
const get = (port: number, url: string, headers: Record<string, string> = {}) =>
  new Promise<string>((resolve, reject) => {
    const where = { host: '127.0.0.1', port, path: url, headers, rejectUnauthorized: false, agent: false as const }
    https
      .get(where, response => {
        let text = ''
        response.setEncoding('utf8').on('data', piece => {
          text += piece
        })
        response.on('end', () => {
          const { id, origin, code } = JSON.parse(text)
          resolve(response.statusCode === 200 ? `${id} ${origin}` : `${response.statusCode} ${code}`)
        })
      })
      .on('error', reject)
  })

test('with a certificate TCP serves only TLS, and a page of the daemon has the origin https', async () => {
  const started = await start({ tls })
  if (!('port' in started)) throw new Error(started.message)
  const { port, home, kernel, close } = started
  const known = bearer(await tokenOf(home))
  const host = `localhost:${port}`
  assert.is(await get(port, '/api/who', { ...known, host }), 'daemon-control http')
  assert.is(await get(port, '/api/who', { host }), '401 identity_required')
  assert.is(await get(port, '/api/who', { ...known, host, origin: `https://${host}` }), 'daemon-control http')
  assert.is(await get(port, '/api/who', { ...known, host, origin: `http://${host}` }), '403 cross_site')
  assert.is(await get(port, '/api/who', { ...known, host: 'evil.example' }), '421 misdirected')
  const plain = await ask({ host: '127.0.0.1', port }, '/api/who', { headers: known }).catch(() => 'no answer')
  assert.is(plain, 'no answer')
  // An upgrade that is not offered is served as a request, on the same connection.
  assert.is(
    await get(port, '/api/who', { ...known, host, connection: 'upgrade', upgrade: 'h2c' }),
    'daemon-control http',
  )
  const socket = new WebSocket(`wss://127.0.0.1:${port}/api/who`, { headers: known, rejectUnauthorized: false })
  const refused = await new Promise(resolve => {
    socket.on('error', () => {}).on('unexpected-response', (_, response) => resolve(response.statusCode))
  })
  assert.is(refused, 400)
  const { body } = await kernel.inject({ method: 'GET', url: '/api/status/identity' })
  assert.is(JSON.parse(body).daemon.http_tls, true)
  await close()
})

test('TCP beyond loopback needs host names, and TLS or a declared encrypting proxy', async () => {
  const host = '0.0.0.0'
  const allowed_hosts = ['box.example']
  const refused = async (http: object, says: RegExp) => {
    const { code, message, next } = (await start({ host, ...http })) as { code: string; message: string; next: string }
    assert.is(code, 'forbidden')
    assert.match(message, says)
    assert.match(next, 'config.json')
  }
  await refused({ tls }, /allowed_hosts/)
  await refused({ plaintext: true }, /allowed_hosts/)
  await refused({ allowed_hosts }, /tokens can be read in transit/)
  await refused({ allowed_hosts, require_token: false }, /tokens can be read in transit/)
  for (const more of [{ tls }, { plaintext: true }]) {
    const started = await start({ host, allowed_hosts, ...more, trust_own_user: true, require_token: false })
    if (!('port' in started)) throw new Error(started.message)
    const { port, home, close } = started
    const callerOf = async (headers: Record<string, string>) => {
      if ('tls' in more) return get(port, '/api/who', headers)
      const { status, body } = await ask({ host: '127.0.0.1', port }, '/api/who', { headers })
      return status === 200 ? `${body.id} ${body.origin}` : `${status} ${body.code}`
    }
    const known = bearer(await tokenOf(home))
    assert.is(await callerOf({ host: 'box.example', ...known }), 'daemon-control http')
    // Neither setting counts here: who is at the other end is not of this machine.
    for (const name of ['box.example', `localhost:${port}`])
      assert.is(await callerOf({ host: name }), '401 identity_required', name)
    await close()
  }
})

test('a certificate that lacks its key, has a wrong one, is missing or world-readable stops the start', async () => {
  const cases: [object, (home: string) => Promise<unknown>, RegExp][] = [
    [{ cert: 'box.pem' }, async () => {}, /must both be set/],
    [{ ...tls, cert: 'other.pem' }, async () => {}, /no file/],
    [tls, home => writeFile(path.join(home, 'box.pem'), 'no certificate'), /cannot be used/],
    [tls, home => chmod(path.join(home, 'box.key'), 0o604), /other users/],
  ]
  for (const [settings, prepare, says] of cases) {
    const { code, message } = (await start({ tls: settings }, prepare)) as { code: string; message: string }
    assert.is(code, 'http_tls_invalid')
    assert.match(message, says)
  }
})

always.run()
