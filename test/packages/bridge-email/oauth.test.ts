import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Tokens } from '../../../packages/bridge-email/src/tokens.js'
import { InstanceProblem } from '../../../packages/bridge-kit/src/index.js'
import { Owner, startMail, Wire } from '../../harness/mail-servers.js'
import { message, startBridge, stopAll } from './mailbox.js'

/** A server of tokens as RFC 6749 and RFC 7662 have it. */
class TokenServer {
  readonly asked: URLSearchParams[] = []
  /** Tokens that are valid. */
  readonly valid = new Set<string>()
  /** What the next requests for a token are answered with, instead of one. */
  readonly refusals: { readonly status: number; readonly body: unknown }[] = []
  expiresIn = 3600
  rotates = false
  #made = 0

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async start(): Promise<TokenServer> {
    const server = createServer((request, response) => {
      let body = ''
      request.on('data', chunk => (body += chunk))
      request.on('end', () => {
        const { status, answer } = tokens.#answer(request.url ?? '', new URLSearchParams(body))
        response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(answer))
      })
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const tokens = new TokenServer(server, `http://127.0.0.1:${(server.address() as { port: number }).port}`)
    return tokens
  }

  #answer(path: string, form: URLSearchParams): { status: number; answer: unknown } {
    if (path.startsWith('/introspect')) {
      const active = this.valid.has(form.get('token') ?? '')
      return { status: 200, answer: active ? { active: true, username: 'bot' } : { active: false } }
    }
    this.asked.push(form)
    const refusal = this.refusals.shift()
    if (refusal) return { status: refusal.status, answer: refusal.body }
    const token = `good-${++this.#made}`
    this.valid.add(token)
    const next = this.rotates ? { refresh_token: `refresh-${this.#made}` } : {}
    return { status: 200, answer: { access_token: token, token_type: 'Bearer', expires_in: this.expiresIn, ...next } }
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections()
    this.server.close()
    await once(this.server, 'close')
  }
}

const secrets = { oauth_refresh_token: 'refresh-0', oauth_client_secret: 'client-s3cret' }
let tokens: TokenServer
let mail: Awaited<ReturnType<typeof startMail>>
let bot: Owner
let ann: Owner

test.before(async () => {
  tokens = await TokenServer.start()
  mail = await startMail(['bot', 'ann'], `${tokens.url}/introspect`)
  bot = await Owner.of(mail.imap.port, 'bot')
  ann = await Owner.of(mail.imap.port, 'ann')
})
test.after(async () => {
  await stopAll()
  await bot?.leave()
  await ann?.leave()
  await mail?.remove()
  await tokens?.stop()
})
test.before.each(() => {
  tokens.asked.length = 0
  tokens.refusals.length = 0
  Object.assign(tokens, { expiresIn: 3600, rotates: false })
})

const settings = () => ({
  login: 'oauth2',
  login_url: `${tokens.url}/token`,
  login_client_id: 'svc-bridge',
  login_scope: 'imap smtp',
})
const start = (more: object = {}, imap = mail.imap.port) =>
  startBridge({ imap, smtp: mail.smtp.port }, { ...settings(), ...more }, undefined, undefined, secrets)

test('one access token from the refresh token logs in to IMAP and SMTP', async () => {
  const { daemon, stop } = await start()
  await daemon.status('ready')
  await bot.put(message('by token'))
  await daemon.heard('Question\n\nby token')
  assert.is((await daemon.say('bri_1', { peer_id: 'ann@example.test' }, 'answered by token')).status, 'delivered')
  await ann.finds('answered by token')
  assert.equal(
    tokens.asked.map(form => Object.fromEntries(form)),
    [
      {
        grant_type: 'refresh_token',
        refresh_token: 'refresh-0',
        client_id: 'svc-bridge',
        client_secret: 'client-s3cret',
        scope: 'imap smtp',
      },
    ],
  )
  await stop()
})

test('a token about to expire is replaced before use; one that expired early after its refusal', async () => {
  tokens.expiresIn = 30
  const short = await start()
  await short.daemon.status('ready')
  assert.is((await short.daemon.say('bri_1', { peer_id: 'ann@example.test' }, 'one')).status, 'delivered')
  assert.is(tokens.asked.length, 2, 'the first one was within a minute of its end')
  await short.stop()

  tokens.expiresIn = 3600
  const wire = await Wire.to(mail.imap.port)
  const { daemon, stop } = await start({}, wire.port)
  await daemon.status('ready')
  tokens.valid.clear()
  const before = daemon.reports.length
  wire.cut()
  await daemon.status('ready', before)
  assert.not(daemon.reports.some(({ status }) => status === 'auth_required'))
  await stop()
  await wire.close()
})

test('a refused refresh token needs the operator, an unreachable token server does not; errors show no secret', async () => {
  tokens.refusals.push({ status: 400, body: { error: 'invalid_grant', error_description: 'refresh-0 is expired' } })
  const refused = await start()
  const { message: why = '', reason } = await refused.daemon.status('auth_required')
  assert.is(reason, 'auth_failed')
  assert.match(why, /^127\.0\.0\.1:\d+ refuses the refresh token or the client \(invalid_grant\)/)
  await refused.stop()
  tokens.refusals.push({ status: 503, body: 'refresh-0' })
  const away = await start()
  assert.is((await away.daemon.status('degraded')).reason, 'provider_timeout')
  await away.daemon.status('ready')
  tokens.valid.clear()
  for (const { daemon } of [refused, away])
    assert.not.match(JSON.stringify(daemon.reports), /refresh-0|client-s3cret|good-\d/)
  await away.stop()
})

test('a replaced refresh token is used from then on; concurrent requests share one answer', async () => {
  Object.assign(tokens, { expiresIn: 120, rotates: true })
  let now = 0
  const of = new Tokens(
    {
      tokenUrl: `${tokens.url}/token`,
      clientId: 'c',
      clientSecret: undefined,
      refreshToken: 'refresh-0',
      scope: undefined,
    },
    () => now,
  )
  const [one, same] = await Promise.all([of.get(), of.get()])
  assert.is(one, same)
  now = 59_000
  assert.is(await of.get(), one)
  now = 61_000
  assert.is.not(await of.get(), one)
  const used = tokens.asked.map(form => form.get('refresh_token'))
  assert.is(used.length, 2)
  assert.is(used[0], 'refresh-0')
  assert.match(used[1] ?? '', /^refresh-[1-9]/)
  for (const body of [{}, { access_token: 'two\r\nwords' }, 'text', { access_token: 7 }]) {
    now += 1e6
    tokens.refusals.push({ status: 200, body })
    const error = await of.get().catch(error => error)
    assert.ok(error instanceof Error && !(error instanceof InstanceProblem), JSON.stringify(body))
  }
})

test('a refresh token is sent only over TLS', async () => {
  for (const url of [
    'http://login.example.test/token',
    'ftp://127.0.0.1/',
    'https://a:b@login.example.test/',
    'x',
    7,
  ]) {
    const { daemon, stop } = await start({ login_url: url })
    assert.match((await daemon.status('error')).message ?? '', /login_url: it has to be an address with https:/)
    await stop()
  }
})

test.run()
