import { readdirSync, readFileSync, statSync } from 'node:fs'
import http from 'node:http'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { operator } from '../../../../kernel/plugin.js'
import { Sessions } from '../../../../plugins/desk/console/sessions.js'
import { console as page } from '../../../../plugins/index.js'
import { type Ask, ask } from '../../../kernel/http/doors.js'
import { type AuthScene, withAuth } from '../../access/auth/scene.js'

const during = (work: (scene: AuthScene) => Promise<void>, http = {}) => withAuth(work, http, [page])

/** A browser: it keeps the cookie and the key, and says of each request where it comes from. */
class Visitor {
  cookie = ''
  key = ''

  constructor(private readonly scene: AuthScene) {}

  static async signedIn(scene: AuthScene): Promise<Visitor> {
    const visitor = new Visitor(scene)
    const { body } = await ask(scene.where.socket, '/api/console/links', { method: 'POST' })
    const reply = await visitor.open(body.link.code)
    assert.is(reply.status, 201)
    return visitor
  }

  async open(code: string) {
    const reply = await ask(this.scene.where.tcp, '/api/console/sessions', { method: 'POST', body: { code } })
    this.cookie = `${reply.headers['set-cookie']}`.split(';')[0] ?? ''
    this.key = reply.body.key
    return reply
  }

  headers(more: Ask['headers'] = {}): Ask['headers'] {
    return { cookie: this.cookie, 'x-svc-console': this.key, 'sec-fetch-site': 'same-origin', ...more }
  }

  get(url: string, headers: Ask['headers'] = this.headers()) {
    return ask(this.scene.where.tcp, url, { headers: { ...headers } })
  }

  post(url: string, body: unknown = {}, headers: Ask['headers'] = this.headers()) {
    return ask(this.scene.where.tcp, url, { method: 'POST', body, headers: { ...headers } })
  }
}

test('the page has a strict policy, and its files are cached and compressed', () =>
  during(async ({ where }) => {
    const { status, headers, text } = await ask(where.tcp, '/console/')
    assert.is(status, 200)
    assert.is(
      headers['content-security-policy'],
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; font-src 'self'; " +
        "manifest-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    )
    assert.is(headers['x-content-type-options'], 'nosniff')
    assert.is(headers['referrer-policy'], 'no-referrer')
    assert.is(headers['cross-origin-opener-policy'], 'same-origin')
    assert.is(headers['cross-origin-resource-policy'], 'same-origin')
    assert.is(headers['cache-control'], 'no-cache')
    assert.not.match(text, /<script>|<style|\sstyle=|\son\w+=/)
    const [script = ''] = /\/console\/assets\/main-\w+\.js/.exec(text) ?? []
    const plain = await ask(where.tcp, script)
    assert.is(plain.headers['cache-control'], 'public, max-age=31536000, immutable')
    assert.is(plain.headers['content-encoding'], undefined)
    assert.is(
      (await ask(where.tcp, script, { headers: { 'accept-encoding': 'gzip, br' } })).headers['content-encoding'],
      'br',
    )
    assert.is(
      (await ask(where.tcp, script, { headers: { 'accept-encoding': 'gzip' } })).headers['content-encoding'],
      'gzip',
    )
    assert.is((await ask(where.tcp, script, { headers: { 'if-none-match': `${plain.headers.etag}` } })).status, 304)
  }))

test('only files of the build are served', () =>
  during(async ({ where }) => {
    for (const name of [
      'files.json',
      'index.html.br',
      '..%2Fsvc.cjs',
      '%2e%2e%2fpackage.json',
      'toString',
      '__proto__',
      'nothing.js',
    ])
      assert.is((await ask(where.tcp, `/console/assets/${name}`)).status, 404, name)
  }))

test('a link is valid once, and its session needs cookie and key together', () =>
  during(async scene => {
    const { body } = await ask(scene.where.socket, '/api/console/links', { method: 'POST' })
    assert.match(body.link.url, /^http:\/\/localhost:\d+\/console\/#\/login\/[0-9a-f]{64}$/)
    const visitor = new Visitor(scene)
    const { status, headers } = await visitor.open(body.link.code)
    assert.is(status, 201)
    assert.match(`${headers['set-cookie']}`, /; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+$/)
    const again = await new Visitor(scene).open(body.link.code)
    assert.equal([again.status, again.body.code], [401, 'console_link_invalid'])
    assert.equal((await visitor.get('/api/who')).body, { id: operator.id, origin: 'web' })
    const { cookie, key } = visitor
    const wrong = 'f'.repeat(64)
    for (const headers of [
      { cookie, 'sec-fetch-site': 'same-origin' },
      { 'x-svc-console': key, 'sec-fetch-site': 'same-origin' },
      visitor.headers({ 'x-svc-console': wrong }),
      visitor.headers({ cookie: `${cookie.slice(0, -64)}${wrong}` }),
      visitor.headers({ cookie: 'svc_console_1=x' }),
    ])
      assert.is((await visitor.get('/api/who', headers)).status, 401, JSON.stringify(headers))
  }))

test('no page of another site uses a session', () =>
  during(async scene => {
    const visitor = await Visitor.signedIn(scene)
    const before = (await visitor.get('/api/console/sessions')).body.sessions.length
    const { cookie, key } = visitor
    const host = `127.0.0.1:${scene.port}`
    for (const headers of [
      visitor.headers({ 'sec-fetch-site': 'cross-site' }),
      visitor.headers({ 'sec-fetch-site': 'same-site' }),
      visitor.headers({ 'sec-fetch-site': 'none' }),
      visitor.headers({ origin: 'https://evil.example' }),
      visitor.headers({ origin: 'null' }),
      visitor.headers({ origin: `http://127.0.0.1:${scene.port + 1}` }),
      visitor.headers({ host: 'evil.example' }),
      { cookie, 'x-svc-console': key },
      { cookie, 'x-svc-console': key, origin: 'https://evil.example' },
      { cookie },
      { cookie, origin: `http://${host}`, 'sec-fetch-site': 'same-origin' },
    ]) {
      const got = await visitor.get('/api/who', headers)
      const sent = await visitor.post('/api/console/links', {}, headers)
      assert.ok([401, 403, 421].includes(got.status), `GET ${got.status} ${JSON.stringify(headers)}`)
      assert.ok([401, 403, 421].includes(sent.status), `POST ${sent.status} ${JSON.stringify(headers)}`)
    }
    const old = { cookie, 'x-svc-console': key, origin: `http://${host}` }
    assert.is((await visitor.post('/api/console/links', {}, old)).status, 201, 'a browser that only says the origin')
    assert.is((await visitor.get('/api/console/sessions')).body.sessions.length, before)
  }))

test('a navigation from another site gets only the page', () =>
  during(async ({ where }) => {
    const headers = { 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate', 'sec-fetch-dest': 'document' }
    assert.is((await ask(where.tcp, '/console', { headers })).status, 200)
    assert.is((await ask(where.tcp, '/console/assets/commands.json', { headers })).status, 403)
  }))

test('only the operator creates links, and a session opens no credential route', () =>
  during(async scene => {
    const { key } = await scene.key()
    const codeOf = async (token?: string) => (await scene.tcp('POST', '/api/console/links', token)).code
    assert.is(await codeOf(key), 'console_operator_required')
    assert.is(await codeOf(), 'identity_required')
    assert.is(await codeOf(await scene.token()), undefined)
    const visitor = await Visitor.signedIn(scene)
    assert.is((await visitor.post('/api/v0/auth/generate')).status, 401)
  }))

/** A stream of which something has arrived; `ended` resolves when it is over. */
function openStream({ where }: AuthScene, visitor: Visitor): Promise<{ readonly ended: Promise<void> }> {
  return new Promise((resolve, reject) => {
    const request = http.get({ ...where.tcp, path: '/api/ticks', headers: { ...visitor.headers() }, agent: false })
    request.once('error', reject)
    request.once('response', response => {
      const ended = new Promise<void>(over => response.once('close', over))
      response.once('error', () => {})
      response.once('data', () => resolve({ ended }))
    })
  })
}

test('an ended session is refused at once, and its open streams end', () =>
  during(async scene => {
    const [one, two] = [await Visitor.signedIn(scene), await Visitor.signedIn(scene)]
    const streams = await Promise.all([one, two].map(visitor => openStream(scene, visitor)))
    const ended = ask(scene.where.tcp, '/api/console/sessions/current', {
      method: 'DELETE',
      headers: { ...one.headers() },
    })
    assert.is((await ended).status, 204)
    await streams[0]?.ended
    assert.is((await one.get('/api/who')).body.code, 'console_session_ended')
    assert.is((await two.get('/api/who')).status, 200)
    const all = await ask(scene.where.socket, '/api/console/sessions', { method: 'DELETE' })
    assert.equal(all.body, { ended: 1 })
    await streams[1]?.ended
    assert.is((await two.get('/api/who')).status, 401)
  }))

test('neither code nor cookie nor key is stored', () =>
  during(async scene => {
    const { body } = await ask(scene.where.socket, '/api/console/links', { method: 'POST' })
    const visitor = new Visitor(scene)
    await visitor.open(body.link.code)
    const secrets = [body.link.code, visitor.key, visitor.cookie.slice(-64)]
    const files = readdirSync(scene.home, { recursive: true, encoding: 'utf8' }).map(name =>
      path.join(scene.home, name),
    )
    const stored = files.filter(file => statSync(file).isFile())
    assert.ok(stored.length > 0)
    for (const file of stored)
      for (const secret of secrets) assert.not.ok(readFileSync(file).includes(secret), `${file} has a secret`)
  }))

test('links end after five minutes, sessions a week after the last request and a month after the login', async () => {
  let now = 1_000_000_000
  let count = 0
  const db = { all: () => [], tx: async () => undefined }
  const ids = { id: () => 'con_0123456789abcdef', hex: (bytes: number) => `${++count}`.padStart(bytes * 2, '0') }
  const sessions = new Sessions(db as never, { now: () => now } as never, ids as never)
  const late = sessions.link()
  now += 5 * 60_000
  assert.is(await sessions.begin(late.code), undefined)
  const begun = await sessions.begin(sessions.link().code)
  assert.ok(begun)
  const find = () => sessions.find(begun.cookie, begun.key)
  const day = 86_400_000
  now += 7 * day - 1
  assert.is(find(), 'con_0123456789abcdef')
  for (let week = 0; week < 3; week++) {
    now += 7 * day - 1
    assert.ok(find())
  }
  now += 3 * day
  assert.is(find(), undefined, 'a month is over')
  const idle = await sessions.begin(sessions.link().code)
  now += 7 * day
  assert.is(sessions.find(idle?.cookie ?? '', idle?.key ?? ''), undefined, 'a week without a request is over')
})

test('the first load is at most 200 KB, compressed', () => {
  const folder = fileURLToPath(new URL('../../../../dist/console', import.meta.url))
  const { files } = JSON.parse(readFileSync(path.join(folder, 'files.json'), 'utf8')) as {
    files: Record<string, { encodings: string[] }>
  }
  const first = new Set(['index.html', 'icon.svg', ...Object.keys(files).filter(name => name.startsWith('style-'))])
  const follow = (name: string): void => {
    if (first.has(name)) return
    first.add(name)
    const code = readFileSync(path.join(folder, name), 'utf8')
    for (const [, other = ''] of code.matchAll(/(?:from|import)\s*"\.\/([\w-]+\.js)"/g)) follow(other)
  }
  for (const name of Object.keys(files)) if (/^main-.*\.js$/.test(name)) follow(name)
  const bytes = [...first].reduce((sum, name) => {
    const suffix = files[name]?.encodings.includes('gzip') ? '.gz' : ''
    return sum + statSync(path.join(folder, name + suffix)).size
  }, 0)
  assert.ok(first.size >= 4, [...first].join(' '))
  assert.ok(bytes <= 200_000, `${bytes} bytes`)
})

test.run()
