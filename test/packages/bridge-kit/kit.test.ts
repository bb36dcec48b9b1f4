import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type Adapter,
  backoffMs,
  type Host,
  type Instance,
  InstanceProblem,
  linesOf,
  measure,
  NotSent,
  RpcError,
  retryAfterMs,
  retrying,
  runBridge,
  settingsOf,
  split,
  type Timing,
} from '../../../packages/bridge-kit/src/index.js'
import { managed, ScriptedDaemon } from './scripted-daemon.js'

/** A clock that jumps over each wait and remembers it. */
function jumping(): Timing & { readonly waits: number[]; advance(ms: number): void } {
  let now = 0
  const waits: number[] = []
  return {
    waits,
    now: () => now,
    random: () => 0.5,
    advance: ms => {
      now += ms
    },
    async sleep(ms, signal) {
      // Time limits of the library are as long as this; nothing here takes that long.
      if (ms >= 5000) return new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)))
      waits.push(ms)
      now += ms
      await new Promise(resolve => setImmediate(resolve))
      signal?.throwIfAborted()
    },
  }
}

interface Opened {
  readonly instance: Instance
  readonly host: Host
  closed: boolean
}

function probe(adapter: Partial<Adapter> = {}, timing: Timing = jumping()) {
  const opened: Opened[] = []
  const daemon = ScriptedDaemon.inProcess(
    {
      name: 'probe',
      version: '1.2.3',
      open(instance, host) {
        const one: Opened = { instance, host, closed: false }
        opened.push(one)
        return {
          deliver: async () => ({ status: 'delivered' }),
          targets: () => [],
          ...adapter,
          close: () => {
            one.closed = true
          },
        }
      },
    },
    timing,
  )
  return { daemon, opened }
}

const message = (key: string, text: string, peer = 'ann') =>
  ({
    idempotency_key: key,
    family: 'message',
    sender: { id: peer, authenticated: true },
    peer_id: peer,
    text,
    addressed: true,
  }) as const

const refused = (code: string, more: object = {}) => new RpcError(-32000, code, { code, ...more })

test('the handshake accepts the offer and lists the methods before an instance opens', async () => {
  const { daemon, opened } = probe()
  const answer = await daemon.initialize([managed('b', {}, { token: 's' }), managed('a', {})])
  assert.equal(opened, [])
  assert.equal(answer, {
    protocol_version: '1',
    extension_info: { name: 'probe', version: '1.2.3', sdk_name: 'svc/bridge-kit' },
    accepted_capabilities: { provides: ['bridge.adapter'], permissions: ['bridges/messages/ingest'] },
    implemented_methods: [
      'health_check',
      'shutdown',
      'bridges/deliver',
      'bridges/targets/snapshot',
      'bridges/instances/set',
      'bridges/settle',
      'bridges/verify',
      'bridges/webhook/register',
    ],
    supports: { health_check: true },
  })
  await daemon.status('starting')
  assert.is(opened[0]?.instance.secret('token'), 's')
  assert.is(opened[0]?.instance.secret('other'), undefined)
  await daemon.shutdown()
  assert.ok(opened.every(({ closed }) => closed))
})

test('a changed set of instances reopens only changed ones', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', { n: 1 }), managed('b', { n: 1 })])
  await daemon.set([managed('a', { n: 1 }), managed('b', { n: 2 }), managed('c', {})])
  assert.equal(
    opened.map(({ instance, closed }) => [instance.id, instance.config.n, closed]),
    [
      ['a', 1, false],
      ['b', 1, true],
      ['b', 2, false],
      ['c', undefined, false],
    ],
  )
  assert.ok(opened[1]?.host.signal.aborted)
  await daemon.set([])
  assert.ok(opened.every(({ closed }) => closed))
  await daemon.shutdown()
})

test('the end of the input is a shutdown', async () => {
  const input = new PassThrough()
  let closed = 0
  const adapter = {
    deliver: async () => ({ status: 'delivered' }) as const,
    targets: () => [],
    close: () => void closed++,
  }
  const ended = runBridge(
    { name: 'probe', version: '1.0.0', open: () => adapter },
    { input, output: new PassThrough() },
  )
  const bridge = { managed_instances: [managed('a', {})] }
  input.write(`${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params: { runtime: { bridge } } })}\n`)
  input.end()
  await ended
  assert.is(closed, 1)
})

test('an adapter that fails to open reports its error, and a later report goes through starting', async () => {
  let host: Host | undefined
  const daemon = ScriptedDaemon.inProcess({
    name: 'probe',
    version: '1.0.0',
    open(_, given) {
      host = given
      throw new InstanceProblem({ status: 'auth_required', reason: 'auth_failed', message: 'no token' })
    },
  })
  await daemon.initialize([managed('a', {})])
  const { reason, message } = await daemon.status('auth_required')
  assert.equal([reason, message], ['auth_failed', 'no token'])
  host?.report({ status: 'ready' })
  await daemon.status('ready')
  assert.equal(
    daemon.reports.map(({ status }) => status),
    ['starting', 'auth_required', 'starting', 'ready'],
  )
  const result = await daemon.say('a', { peer_id: 'ann' }, 'hello')
  assert.is(result.status, 'not_sent')
  await daemon.shutdown()
})

test('an exception during a send is unknown, unless it declares that nothing was sent', async () => {
  const errors: Error[] = [
    new Error('the line broke'),
    new NotSent('permission_denied', 'banned'),
    new NotSent('transient_delivery_failure', 'slow down', { retryAfterMs: 1500 }),
  ]
  const { daemon } = probe({
    deliver: async () => {
      throw errors.shift()
    },
  })
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  assert.equal(await daemon.say('a', {}, '1'), { status: 'unknown', message: 'the line broke' })
  assert.equal(await daemon.say('a', {}, '2'), {
    status: 'not_sent',
    permanent: true,
    kind: 'permission_denied',
    message: 'banned',
  })
  assert.equal(await daemon.say('a', {}, '3'), {
    status: 'not_sent',
    permanent: false,
    kind: 'transient_delivery_failure',
    message: 'slow down',
    retry_after_ms: 1500,
  })
  const missing = await daemon.say('nobody', {}, 'x').catch(error => error)
  assert.is(missing.reason, 'bridge_not_found')
  assert.equal(await daemon.settle(daemon.delivery('a', {}, 'x'), 0), { outcome: 'unknown' })
  await daemon.shutdown()
})

test('an unbound secret is named with the command that binds it', async () => {
  const open = (instance: Instance) => {
    settingsOf(instance).secret('bot_token', /^x$/, 'ask for one')
    return { deliver: async () => ({ status: 'delivered' }) as const, targets: () => [], close: () => {} }
  }
  const daemon = ScriptedDaemon.inProcess({ name: 'probe', version: '1.2.3', open })
  await daemon.initialize([managed('bri_7', {})])
  const { message: why } = await daemon.status('auth_required')
  assert.match(why ?? '', /bot_token.*svc bridge secret-bindings put bri_7 bot_token$/)
  await daemon.shutdown()
})

test('a health check fails while an adapter is unresponsive', async () => {
  let why: string | undefined
  const { daemon } = probe({ deaf: () => why })
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  assert.equal(await daemon.health(), { healthy: true })
  why = 'nothing was heard for 90 s'
  assert.equal(await daemon.health(), { healthy: false, message: 'a: nothing was heard for 90 s' })
  await daemon.shutdown()
})

test('an event refused for now is resent after the named time, else with back-off', async () => {
  const timing = jumping()
  const { daemon, opened } = probe({}, timing)
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const answers = [
    refused('bridge_not_accepting', { retry_after_ms: 1234 }),
    refused('bridge_not_accepting'),
    refused('internal_error'),
  ]
  daemon.ingest = ({ idempotency_key }) => {
    const error = answers.shift()
    if (error) throw error
    return { idempotency_key, outcome: 'prompted', session_id: 'ses_1' }
  }
  const result = await opened[0]?.host.ingest(message('k1', 'hello'))
  assert.equal(result, { idempotency_key: 'k1', outcome: 'prompted', session_id: 'ses_1' })
  assert.equal(timing.waits, [1234, 300, 600])
  assert.is(daemon.events.length, 1)
  await daemon.shutdown()
})

test('a report of a failed delivery is resent until the daemon accepts it', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('b', {})])
  await daemon.status('starting')
  let refusals = 2
  daemon.reportDelivery = () => {
    if (refusals-- > 0) throw new RpcError(-32000, 'busy', { code: 'bridge_not_accepting', retry_after_ms: 10 })
    return 'unknown'
  }
  const reason = 'x'.repeat(5000)
  assert.is(await opened[0]?.host.reportDelivery({ remote_message_id: 'm1', status: 'failed', reason }), 'unknown')
  const { length } = daemon.deliveryReports[0]?.reason ?? ''
  assert.equal(daemon.deliveryReports, [
    { bridge_instance_id: 'b', remote_message_id: 'm1', status: 'failed', reason: reason.slice(0, 4000) },
  ])
  assert.is(length, 4000, 'the daemon takes no more')
  daemon.reportDelivery = () => {
    throw new RpcError(-32000, 'not granted', { code: 'capability_denied' })
  }
  const refused = opened[0]?.host.reportDelivery({ remote_message_id: 'm2', status: 'failed', reason: 'gone' })
  assert.is(await refused?.catch(error => error.code), 'capability_denied')
  await daemon.shutdown()
})

test('events of one conversation keep their order and do not delay other conversations', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const { host } = opened[0]!
  let open = false
  daemon.ingest = event => {
    if (event.peer_id === 'ann' && !open) throw refused('bridge_not_accepting')
    return { idempotency_key: event.idempotency_key, outcome: 'prompted' }
  }
  const all = [host.ingest(message('1', 'one')), host.ingest(message('2', 'two')), host.ingest(message('3', 'three'))]
  await host.ingest(message('4', 'other', 'ben'))
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['other'],
  )
  open = true
  await Promise.all(all)
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['other', 'one', 'two', 'three'],
  )
  await daemon.shutdown()
})

test('a repeated event is sent once within five minutes; a permanently refused one may be sent again', async () => {
  const timing = jumping()
  const { daemon, opened } = probe({}, timing)
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const { host } = opened[0]!
  await Promise.all([host.ingest(message('k', 'hello')), host.ingest(message('k', 'hello'))])
  timing.advance(4 * 60_000)
  await host.ingest(message('k', 'hello'))
  assert.is(daemon.events.length, 1)
  timing.advance(2 * 60_000)
  await host.ingest(message('k', 'hello'))
  assert.is(daemon.events.length, 2)
  daemon.ingest = () => {
    throw refused('bridge_event_invalid')
  }
  const error = await host.ingest(message('bad', 'x')).catch(error => error)
  assert.equal([error.name, error.code], ['IngestRefused', 'bridge_event_invalid'])
  daemon.ingest = ({ idempotency_key }) => ({ idempotency_key, outcome: 'prompted' })
  await host.ingest(message('bad', 'x'))
  await daemon.shutdown()
})

test('a waiting event is dropped when its instance is closed', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  daemon.ingest = () => {
    throw refused('bridge_not_accepting')
  }
  const waiting = opened[0]?.host.ingest(message('k', 'hello')).catch(error => error.code)
  await daemon.set([])
  assert.is(await waiting, 'bridge_closed')
  await daemon.shutdown()
})

test('a stored value survives the process, belongs to one instance, and waits while the daemon is busy', async () => {
  const timing = jumping()
  const { daemon, opened } = probe({}, timing)
  await daemon.initialize([managed('a', {}), managed('b', {})])
  await daemon.until(() => (opened.length === 2 ? true : undefined), 'two instances')
  const [a, b] = opened.map(({ host }) => host.values)
  const busy = [refused('rate_limited', { retry_after_ms: 140 }), refused('rate_limited', { retry_after_ms: 70 })]
  daemon.keep = () => {
    const error = busy.shift()
    if (error) throw error
  }
  await a?.put('place', { room: 'ops' })
  assert.equal(timing.waits, [140, 70])
  assert.equal(await a?.get('place'), { room: 'ops' })
  assert.is(await b?.get('place'), undefined)
  daemon.keep = () => {
    throw refused('extension_state_too_large')
  }
  assert.is(await a?.put('place', 'x').catch(error => error.reason), 'extension_state_too_large')
  await daemon.shutdown()
  const again = probe({}, timing)
  again.daemon.values = daemon.values
  await again.daemon.initialize([managed('a', {})])
  await again.daemon.status('starting')
  assert.equal(await again.opened[0]?.host.values.get('place'), { room: 'ops' })
  await again.daemon.shutdown()
})

test('an adapter knows when its instance is open only for a check', async () => {
  for (const purpose of ['service', 'control'] as const) {
    const { daemon, opened } = probe({ verify: () => [{ check: 'login', status: 'pass', remediation: '' }] })
    daemon.purpose = purpose
    await daemon.initialize([managed('a', {})])
    await daemon.status('starting')
    assert.is(opened[0]?.host.purpose, purpose)
    await daemon.shutdown()
  }
})

test('a text or name over the limit of the daemon is cut', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const sender = { id: 'ann', authenticated: true, username: 'n'.repeat(1000), display_name: '' }
  await opened[0]?.host.ingest({ ...message('k', '😀'.repeat(600_000)), sender })
  const [event] = daemon.events
  assert.ok((event?.text?.length ?? 0) <= 1024 * 1024)
  assert.match(event?.text ?? '', /^(?:😀)+… \(cut\)$/u)
  assert.equal(event?.sender, { id: 'ann', authenticated: true, username: 'n'.repeat(512) })
  await daemon.shutdown()
})

test('files that exceed the line limit of the protocol are named in the text instead', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const file = (name: string, bytes: number) => ({
    name,
    mime_type: 'text/plain',
    data: Buffer.alloc(bytes).toString('base64'),
  })
  const attachments = [file('one', 4 * 1024 * 1024), file('two', 4 * 1024 * 1024), file('three', 100)]
  await opened[0]?.host.ingest({ ...message('k', 'look'), attachments })
  const [event] = daemon.events
  assert.ok(Buffer.byteLength(JSON.stringify(event)) < 8 * 1024 * 1024)
  assert.equal(
    event?.attachments?.map(({ name }) => name),
    ['one', 'three'],
  )
  assert.match(event?.text ?? '', /^look\n\[The file two is not attached: .*8 MiB.*\]$/)
  await opened[0]?.host.ingest({ ...message('l', ''), attachments: Array.from('abcdefghijkl', name => file(name, 1)) })
  assert.is(daemon.events[1]?.attachments?.length, 10)
  assert.match(daemon.events[1]?.text ?? '', /^\[The file k .*10 files\.\]\n\[The file l .*\]$/)
  await daemon.shutdown()
})

test('at most 1,000 events wait', async () => {
  const { daemon, opened } = probe()
  await daemon.initialize([managed('a', {})])
  await daemon.status('starting')
  const { host } = opened[0]!
  daemon.ingest = () => new Promise(() => {})
  for (let n = 0; n < 1000; n++) host.ingest(message(`k${n}`, 'x', `p${n}`)).catch(() => {})
  assert.is(await host.ingest(message('more', 'x')).catch(error => error.code), 'too_many_requests')
  await daemon.shutdown()
})

test('a call is retried with jitter, or after the time given by the platform', async () => {
  const timing = jumping()
  const attempts: number[] = []
  const value = await retrying(
    async attempt => {
      attempts.push(attempt)
      if (attempt < 4) throw new Error(attempt === 2 ? 'slow' : 'broken')
      return 'done'
    },
    { attempts: 5, timing, retryAfter: error => ((error as Error).message === 'slow' ? 4000 : undefined) },
  )
  assert.is(value, 'done')
  assert.equal(attempts, [1, 2, 3, 4])
  assert.equal(timing.waits, [375, 4000, 1500])
  const permanent = retrying(() => Promise.reject(new Error('bad token')), {
    attempts: 5,
    timing,
    transient: () => false,
  })
  assert.is(await permanent.catch(error => error.message), 'bad token')
  assert.is(timing.waits.length, 3)
  assert.equal(
    [1, 2, 30].map(failures => [backoffMs(failures, { random: () => 0 }), backoffMs(failures, { random: () => 1 })]),
    [
      [250, 500],
      [500, 1000],
      [30_000, 60_000],
    ],
  )
  assert.equal(
    ['2', '0.5', 'Thu, 01 Jan 1970 00:00:10 GMT', '', 'soon', '-1', '1e9'].map(header => retryAfterMs(header, 4000)),
    [2000, 500, 6000, undefined, undefined, 0, 3_600_000],
  )
})

test('texts are measured and split by unit without cutting a character', () => {
  assert.equal([measure('añ😀', 'bytes'), measure('añ😀', 'utf16'), measure('añ😀', 'code_points')], [7, 4, 3])
  assert.equal(split('one two\nthree', 8, 'code_points'), ['one two', 'three'])
  assert.equal(split('aaaa bbbb', 6, 'bytes'), ['aaaa', 'bbbb'])
  assert.equal(split('😀😀😀', 5, 'bytes'), ['😀', '😀', '😀'])
  assert.equal(split('e\u0301e\u0301', 3, 'code_points'), ['e\u0301', 'e\u0301'])
  const family = '\u{1f468}\u200d\u{1f469}\u200d\u{1f467}'
  assert.equal(split(`ab${family}`, 6, 'code_points'), ['ab', family])
  // A cluster that is longer than the limit is cut rather than sent whole.
  assert.equal(split(`a${'\u0301'.repeat(10)}`, 4, 'code_points').length, 3)
  for (const unit of ['bytes', 'utf16', 'code_points'] as const) {
    const text = 'Grüße an 😀 alle\nund noch viel mehr Text '.repeat(50)
    const pieces = split(text, 37, unit)
    assert.ok(pieces.every(piece => measure(piece, unit) <= 37))
    assert.is(pieces.join('').replace(/\s/g, ''), text.replace(/\s/g, ''))
  }
  assert.equal(linesOf('one\r\n\r\ntwo\0\x01\u2028three\rQUIT'), ['one', 'two', 'three', 'QUIT'])
})

test.run()
