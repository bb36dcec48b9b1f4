// timeout: 60s
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { type Making, type Scene, scene } from './scene.js'

let svc: Scene
test.before(async () => {
  svc = await scene()
})
test.after(() => svc.close())

interface Check {
  readonly check: string
  readonly status: string
  readonly remediation: string
}

const report = (state: object) => ['bridges/instances/report_state', state] as const
const event = {
  idempotency_key: 'k1',
  family: 'message',
  sender: { id: 'u1', authenticated: true },
  peer_id: 'u1',
  text: 'hello',
  addressed: true,
}

/** A disabled bridge of an extension whose process does so. */
async function bridgeOf(extension: string, { bridge, manifest, ...making }: Making = {}) {
  await svc.adapter(extension, {
    platform: extension,
    bridge: `${bridge ?? ''}\n[[bridge.secret_slots]]\nname = "token"\nrequired = true`,
    ...(manifest === undefined ? {} : { manifest }),
    ...making,
  })
  return create(extension)
}

/** A disabled bridge of an extension that is there. */
async function create(extension: string) {
  const created = await svc.request('POST', '/api/bridges', {
    display_name: extension,
    platform: extension,
    extension_name: extension,
    scope: 'global',
    enabled: false,
    routing_policy: { include_peer: true, include_group: false, include_thread: false },
    provider_config: {},
  })
  assert.is(created.status, 201, JSON.stringify(created.body))
  const { id } = created.body.bridge
  const bind = () =>
    svc.request('PUT', `/api/bridges/${id}/secret-bindings/token`, {
      kind: 'secret',
      secret_ref: `vault:bridges/${id}/token`,
      secret_value: 's3cret-value-of-a-bridge',
    })
  return { id: id as string, bind }
}

const verify = async (id: string): Promise<Check[]> =>
  (await svc.request('POST', `/api/bridges/${id}/verify`)).body.checks
const byName = (checks: readonly Check[]) => Object.fromEntries(checks.map(({ check, status }) => [check, status]))
const remediationOf = (checks: readonly Check[], name: string) =>
  checks.find(({ check }) => check === name)?.remediation ?? ''
const logOf = async (extension: string): Promise<string[]> =>
  (await svc.request('GET', `/api/extensions/${extension}/logs`)).body.logs.map(
    ({ message }: { message: string }) => message,
  )
const isGone = (pid: number) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

test('a disabled bridge is checked by a temporary process that accepts no events', async () => {
  const { id, bind } = await bridgeOf('tried', {
    ways: {
      begins: {
        control: [
          report({ status: 'starting' }),
          ['bridges/messages/ingest', event],
          ['sessions/list', {}],
          report({ status: 'ready' }),
        ],
      },
      more: ['bridges/verify'],
      answers: { 'bridges/verify': { checks: [{ check: 'login', status: 'pass' }] } },
    },
  })
  const unbound = await verify(id)
  assert.equal(byName(unbound), {
    configuration: 'fail',
    process: 'skipped',
    transport: 'skipped',
    inbound: 'fail',
    outbound: 'fail',
  })
  assert.equal(await logOf('tried').then(lines => lines.filter(line => /only for a check/.test(line))), [])
  await bind()
  const checks = await verify(id)
  assert.equal(byName(checks), {
    configuration: 'pass',
    process: 'pass',
    transport: 'pass',
    inbound: 'fail',
    outbound: 'fail',
    login: 'pass',
  })
  for (const name of ['process', 'inbound', 'outbound'])
    assert.match(remediationOf(checks, name), new RegExp(`svc bridge enable ${id}`))
  // It is gone, and the bridge is what it was.
  const lines = await logOf('tried')
  const [, pid = ''] = lines.map(line => /only for a check, pid (\d+)/.exec(line)).find(found => found) ?? []
  assert.ok(isGone(Number(pid)), pid)
  const { bridge, health } = (await svc.request('GET', `/api/bridges/${id}`)).body
  assert.equal([bridge.enabled, bridge.status, health.last_error ?? null], [false, 'disabled', null])
  assert.is((await svc.request('GET', '/api/extensions/tried')).body.extension.state, 'registered')
  // What it was told and answered.
  const said = (what: string) => JSON.parse(lines.find(line => line.startsWith(what))?.slice(what.length) ?? 'null')
  const refused = said('bridges/messages/ingest: ').error.data
  assert.equal([refused.code, refused.retry_after_ms], ['bridge_not_accepting', 60_000])
  assert.is(said('sessions/list: ').error.data.code, 'capability_denied')
  const told = said('began: ')
  assert.equal(
    [told.purpose, told.managed_instances.map(({ instance }: { instance: { id: string } }) => instance.id)],
    ['control', [id]],
  )
  assert.ok(told.allowed_methods.includes('bridges/instances/report_state'))
  assert.not.match(lines.join('\n'), /s3cret-value-of-a-bridge/)
})

test('a state other than ready, a refused configuration and an ended process name the next step', async () => {
  for (const [name, begins, ways, expected, words] of [
    [
      'refused',
      [report({ status: 'auth_required', reason: 'auth_failed', message: 'bad token' })],
      {},
      ['pass', 'pass', 'fail'],
      [/bad token; bind the secret anew: svc bridge secret-bindings put/],
    ],
    [
      'misled',
      [report({ status: 'error', reason: 'tenant_config_invalid', message: 'no such server' })],
      {},
      ['fail', 'pass', 'fail'],
      [/no such server: correct it in --provider-config of svc bridge update/],
    ],
    ['ends', [], { at: 'exit' }, ['pass', 'fail', 'fail'], [/code 4.*svc extension logs ends/]],
  ] as const) {
    const { id, bind } = await bridgeOf(name, { ways: { begins: { control: begins }, ...ways } })
    await bind()
    const checks = await verify(id)
    assert.equal(
      checks.slice(0, 3).map(({ status }) => status),
      expected,
      name,
    )
    for (const word of words) assert.match(checks.map(({ remediation }) => remediation).join('\n'), word)
    // What fails here is no failure of the extension.
    assert.is((await svc.request('GET', `/api/extensions/${name}`)).body.extension.state, 'registered')
  }
})

test('a check of one bridge does not affect the process of another, and ends with the extension', async () => {
  const ready = [report({ status: 'ready' })]
  const served = await bridgeOf('beside', {
    ways: { begins: { service: ready, control: ready }, more: ['bridges/verify'], hangs: true },
  })
  await served.bind()
  await svc.request('POST', `/api/bridges/${served.id}/enable`)
  const isReady = async () => (await svc.request('GET', `/api/bridges/${served.id}`)).body.bridge.status === 'ready'
  const running = await svc.until('beside', async extension => extension?.state === 'active' && (await isReady()))
  const tried = await create('beside')
  await tried.bind()
  const checking = verify(tried.id)
  await svc.until('beside', async () => (await logOf('beside')).some(line => /only for a check/.test(line)))
  await svc.until('beside', async () => (await logOf('beside')).filter(line => line.startsWith('began: ')).length === 2)
  const beside = (await svc.request('GET', '/api/extensions/beside')).body.extension
  assert.equal([beside.pid, await isReady()], [running.pid, true])
  await svc.request('POST', '/api/extensions/beside/disable')
  const checks = await checking
  assert.match(remediationOf(checks, 'process'), /the extension is ended/)
  const [, pid = ''] =
    (await logOf('beside')).map(line => /only for a check, pid (\d+)/.exec(line)).find(found => found) ?? []
  assert.ok(isGone(Number(pid)), pid)
})

test('a check is aborted for a bridge enabled meanwhile', async () => {
  const { id, bind } = await bridgeOf('hurried', {
    ways: {
      begins: { control: [report({ status: 'ready' })], service: [report({ status: 'ready' })] },
      more: ['bridges/verify'],
      hangs: true,
    },
  })
  await bind()
  const checking = verify(id)
  await svc.until('hurried', async () => (await logOf('hurried')).some(line => line.startsWith('began: ')))
  assert.is((await svc.request('POST', `/api/bridges/${id}/enable`)).status, 200)
  const checks = await checking
  assert.match(remediationOf(checks, 'process'), /enabled meanwhile/)
  await svc.until(
    'hurried',
    async () => (await svc.request('GET', `/api/bridges/${id}`)).body.bridge.status === 'ready',
  )
  const lines = await logOf('hurried')
  const [, tried = ''] = lines.map(line => /only for a check, pid (\d+)/.exec(line)).find(found => found) ?? []
  assert.ok(isGone(Number(tried)))
  // The process that serves it is another one.
  await svc.until(
    'hurried',
    async () => (await logOf('hurried')).filter(line => line.startsWith('began: ')).length === 2,
  )
  await svc.request('POST', `/api/bridges/${id}/disable`)
})

test.run()
