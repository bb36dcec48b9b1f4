import { generateKeyPairSync } from 'node:crypto'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { JwtRefused, RemoteKeys, signJwt, verifyJwt } from '../../../packages/bridge-kit/src/index.js'
import { type Answer, HttpEndpoint } from '../../harness/http-endpoint.js'

const NOW = Date.UTC(2026, 10, 28, 12)
const SECONDS = NOW / 1000
const MINUTE = 60_000

function pair(bits = 2048) {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  return {
    jwk: publicKey.export({ format: 'jwk' }) as { n: string; e: string; kty: string },
    pem: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
    privatePem: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
  }
}
const one = pair()
const other = pair()
const weak = pair(1024)

const running = new Set<HttpEndpoint>()
test.after.each(async () => {
  for (const endpoint of running) await endpoint.close()
  running.clear()
})

async function issuer(answer: () => Answer) {
  const endpoint = await HttpEndpoint.start(answer)
  running.add(endpoint)
  return { keys: new RemoteKeys(endpoint.url), fetches: () => endpoint.received.length }
}
const jwks = (...entries: readonly unknown[]): Answer => ({ body: { keys: entries } })
const claims = { iss: 'https://issuer', aud: 'me', iat: SECONDS, exp: SECONDS + 3600 }
const token = (more: object = {}, key = one.privatePem, head: object = {}) =>
  signJwt({ ...claims, ...more }, key, { kid: 'k1', ...head })
const expected = { issuers: ['https://issuer', 'issuer'], audiences: ['me', 'https://me'], now: NOW }

async function refusal(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    caught => caught as Error,
  )
  assert.instance(error, JwtRefused)
  return error?.message ?? ''
}

test('a token is validated by a key of a set and by a PEM key', async () => {
  const { keys } = await issuer(() => jwks({ ...one.jwk, kid: 'k1', use: 'sig', endorsements: ['msteams'] }))
  const verified = await verifyJwt(token(), keys, expected)
  assert.equal(verified.claims, claims)
  assert.equal(verified.key.endorsements, ['msteams'])
  await verifyJwt(token({ iss: 'issuer', aud: ['x', 'https://me'] }), keys, expected)
  const certificates = await issuer(() => ({ body: { k1: one.pem, broken: 'x' } }))
  assert.equal((await verifyJwt(token(), certificates.keys, expected)).claims, claims)
})

test('a wrong signature, algorithm, issuer, audience or time is refused', async () => {
  const { keys, fetches } = await issuer(() =>
    jwks(
      { ...one.jwk, kid: 'k1' },
      { ...weak.jwk, kid: 'weak' },
      { ...other.jwk, kid: 'enc', use: 'enc' },
      { kty: 'EC', kid: 'ec' },
      null,
    ),
  )
  const check = (text: string, now = NOW) => verifyJwt(text, keys, { ...expected, now })
  const late = SECONDS + 3600
  for (const [text, reason] of [
    ['', /JWS/],
    ['a.b', /JWS/],
    ['a.b.c.d', /JWS/],
    [`${'a'.repeat(20_000)}.b.c`, /too long/],
    [token({}, one.privatePem, { alg: 'none' }), /"alg"/],
    [token({}, one.privatePem, { alg: 'HS256' }), /"alg"/],
    [token({}, one.privatePem, { crit: ['x'] }), /"x"/],
    [token({}, one.privatePem, { kid: 7 }), /names no key/],
    [token({ iss: 'eve' }), /"iss"/],
    [token({ iss: undefined }), /"iss"/],
    [token({ aud: 'you' }), /"aud"/],
    [token({ aud: [] }), /"aud"/],
    [token({ exp: undefined }), /"exp"/],
    [token({ exp: '9999999999' }), /"exp"/],
    [token({ exp: SECONDS - 300 }), /"exp"/],
    [token({ nbf: SECONDS + 301 }), /"nbf"/],
  ] as const)
    assert.match(await refusal(check(text)), reason)
  assert.is(fetches(), 1, 'a flood of forged tokens is no flood of requests')
  await check(token({ exp: SECONDS - 299 }))
  await check(token({ nbf: SECONDS + 300 }))
  await check(token(), (late + 299) * 1000)
  assert.match(await refusal(check(token(), (late + 300) * 1000)), /"exp"/)
  assert.match(await refusal(check(token({}, other.privatePem))), /signature/)
  assert.match(await refusal(check(token({}, weak.privatePem, { kid: 'weak' }))), /no key/)
  assert.match(await refusal(check(token({}, other.privatePem, { kid: 'enc' }))), /no key/)
  const [head, , signature] = token().split('.')
  const body = Buffer.from(JSON.stringify({ ...claims, admin: true })).toString('base64url')
  assert.match(await refusal(check(`${head}.${body}.${signature}`)), /signature/)
})

test('keys are cached for their lifetime, and fetched for an unknown id once a minute', async () => {
  let entries: readonly object[] = [{ ...one.jwk, kid: 'k1' }]
  const { keys, fetches } = await issuer(() => ({
    ...jwks(...entries),
    headers: { 'cache-control': 'public, max-age=600' },
  }))
  const far = { exp: SECONDS + 360_000 }
  const check = (now: number, text = token(far)) => verifyJwt(text, keys, { ...expected, now })
  await Promise.all([check(NOW), check(NOW), check(NOW)])
  assert.is(fetches(), 1)
  await check(NOW + 599_000)
  assert.is(fetches(), 1)
  await check(NOW + 600_000)
  assert.is(fetches(), 2)
  const rotated = token(far, other.privatePem, { kid: 'k2' })
  for (let i = 0; i < 5; i++) await refusal(check(NOW + 600_000 + i * 10_000, rotated))
  assert.is(fetches(), 2)
  entries = [{ ...other.jwk, kid: 'k2' }]
  await check(NOW + 660_000, rotated)
  assert.is(fetches(), 3)
  await refusal(check(NOW + 661_000))
  assert.is(fetches(), 3)
})

test('keys that cannot be renewed are used for a day; without keys the sender has to retry', async () => {
  let answer: Answer = { status: 500 }
  const { keys, fetches } = await issuer(() => answer)
  const text = token({ exp: SECONDS + 360_000 })
  const check = (now: number) => verifyJwt(text, keys, { ...expected, now })
  const failed = await check(NOW).catch(error => error as Error)
  assert.ok(failed instanceof Error && !(failed instanceof JwtRefused), 'an outage is no refusal')
  assert.match(failed.message, /500/)
  await check(NOW + 1000).catch(() => {})
  assert.is(fetches(), 1, 'an outage is no reason for a flood')
  answer = jwks({ ...one.jwk, kid: 'k1' })
  const fetched = NOW + 6000
  await check(fetched)
  answer = { body: [] }
  await check(fetched + 120 * MINUTE)
  assert.ok(fetches() > 2)
  await check(fetched + 23 * 60 * MINUTE)
  const old = await check(fetched + 24 * 60 * MINUTE).catch(error => error as Error)
  assert.ok(old instanceof Error && !(old instanceof JwtRefused))
})

test('the address of the keys is read from the discovery document of the issuer', async () => {
  const endpoint = await HttpEndpoint.start(() => jwks({ ...one.jwk, kid: 'k1' }))
  running.add(endpoint)
  let asked = 0
  const keys = new RemoteKeys(async () => {
    asked++
    return `${endpoint.url}/keys`
  })
  await verifyJwt(token(), keys, expected)
  await verifyJwt(token(), keys, expected)
  assert.is(asked, 1)
  assert.is(endpoint.received[0]?.path, '/keys')
})

test.run()
