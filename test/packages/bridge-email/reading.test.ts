import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { configOf } from '../../../packages/bridge-email/src/config.js'
import { read } from '../../../packages/bridge-email/src/message.js'
import { compose } from '../../../packages/bridge-email/src/sending.js'
import { textOfHtml, withoutQuotes } from '../../../packages/bridge-email/src/text.js'
import { type Delivery, InstanceProblem, NotSent } from '../../../packages/bridge-kit/src/index.js'
import { label } from '../../fixtures/cases.js'
import { message } from './mailbox.js'

const settings = {
  address: 'bot@example.test',
  aliases: ['agent@example.test'],
  imap_host: 'imap.example.test',
  smtp_host: 'smtp.example.test',
  trusted_authserv_id: 'mx.example.test',
}
const instance = (config: object) => ({
  id: 'bri_1',
  displayName: 'Bot',
  platform: 'email',
  dmPolicy: 'open',
  config: { ...config },
  secret: (slot: string) => (slot === 'password' ? 'secret' : undefined),
})
const config = configOf(instance(settings))

async function eventOf(text: string | Buffer, size?: number) {
  const source = Buffer.from(typeof text === 'string' ? text.replaceAll('\n', '\r\n') : text)
  const reading = await read({ source, size: size ?? source.length }, config)
  if (reading.kind !== 'event') throw new Error(JSON.stringify(reading))
  return reading.event
}
const isAutomatic = async (headers: Record<string, string | undefined>) =>
  (await eventOf(message('thanks', headers))).automatic === true

const AUTOMATIC: Record<string, string>[] = [
  { 'Auto-Submitted': 'auto-replied' },
  { 'Auto-Submitted': 'auto-generated; x=y' },
  { 'List-Id': 'Team <team.example.test>' },
  { 'List-Unsubscribe': '<mailto:x@example.test>' },
  { Precedence: 'bulk' },
  { Precedence: 'List' },
  { 'X-Auto-Response-Suppress': 'All' },
  { 'X-Autoreply': 'yes' },
  { 'Return-Path': '<>' },
  { From: 'MAILER-DAEMON@example.test' },
  { From: 'no-reply@example.test' },
  { From: 'bounces+17=x@example.test' },
  { 'Content-Type': 'multipart/report; report-type=disposition-notification; boundary=b' },
]
const PERSONAL: Record<string, string>[] = [
  {},
  { 'Auto-Submitted': 'no' },
  { Precedence: 'first-class' },
  { 'Return-Path': '<ann@example.test>' },
  { From: 'noreen@example.test' },
]

for (const headers of AUTOMATIC)
  test(`a mail is automatic: ${label(headers)}`, async () => assert.ok(await isAutomatic(headers)))

for (const headers of PERSONAL)
  test(`a mail is not automatic: ${label(headers)}`, async () => assert.not(await isAutomatic(headers)))

test('an answer of the bot is automatic to another bot', async () => {
  const delivery: Delivery = {
    bridge_instance_id: 'bri_1',
    delivery_id: 'dlv_1',
    part: 0,
    event: 'final',
    target: { peer_id: 'ann@example.test', thread_id: 'root@example.test' },
    text: 'done',
    nonce: 'n1',
    reply_to_message_id: 'last@example.test',
  }
  const other = configOf(instance({ ...settings, address: 'other@example.test' }))
  const { bytes } = await compose(delivery, other, 'Files')
  assert.ok((await eventOf(bytes)).automatic)
  assert.match(bytes.toString(), /^References: <root@example.test> <last@example.test>\r$/m)
  const own = await read({ source: (await compose(delivery, config, 'Files')).bytes, size: 1 }, config)
  assert.is(own.kind, 'unusable', 'own mail is no event')
})

test('a target with a line break, list or name is refused, and a subject is one line', async () => {
  const delivery = (peer_id: string, text = 'x'): Delivery => ({
    bridge_instance_id: 'bri_1',
    delivery_id: 'dlv_1',
    part: 0,
    event: 'final',
    target: { peer_id, thread_id: 'a@b>\r\nBcc: eve@example.test' },
    text,
    nonce: 'n1',
    reply_to_message_id: 'c@d\r\nBcc: eve@example.test',
  })
  for (const peer of [
    'ann@example.test\r\nBcc: eve@example.test',
    'ann@example.test, eve@example.test',
    'Ann <ann@example.test>',
    'ann@example.test eve@example.test',
    '"a b"@example.test',
    'group: ann@example.test;',
    'ann',
    '',
    'bot@example.test',
  ]) {
    const refused = await compose(delivery(peer), config, undefined).catch(error => error)
    assert.instance(refused, NotSent, peer)
    assert.is(refused.kind, 'unknown_destination')
  }
  const { bytes } = await compose(delivery('ann@example.test'), config, 'a\r\nBcc: eve@example.test\r\n\r\nbody')
  const head = bytes.toString().split('\r\n\r\n')[0] ?? ''
  assert.not.match(head, /^Bcc:/m)
  assert.not.match(head, /^References:/m)
  assert.match(head, /^Subject: Re: a Bcc: eve@example.test body\r$/m)
  const first = await compose(delivery('ann@example.test', `\n${'€'.repeat(300)}\nmore`), config, undefined)
  assert.ok(
    first.bytes
      .toString()
      .split('\r\n')
      .every(line => line.length < 998),
  )
})

const authenticated = async (...headers: string[]) => {
  const lines = headers.map(value => `Authentication-Results: ${value}\n`).join('')
  return (await eventOf(lines + message('hi'))).sender.authenticated
}

const UNAUTHENTICATED: string[][] = [
  [],
  ['mx.example.test; none'],
  ['evil.test; dmarc=pass header.from=example.test'],
  ['mx.example.test.evil.test; dmarc=pass header.from=example.test'],
  ['mx.example.test; dmarc=fail header.from=example.test', 'mx.example.test; dmarc=pass header.from=example.test'],
  ['mx.example.test; dmarc=pass header.from=evil.test'],
  ['mx.example.test; dkim=pass header.d=evil.test'],
  ['mx.example.test; dkim=pass header.d=ample.test'],
  ['mx.example.test; dkim=pass header.d=test'],
  ['mx.example.test; spf=pass smtp.mailfrom=example.test'],
  ['mx.example.test; spf=fail (dmarc=pass; dmarc=pass header.from=example.test)'],
  ['mx.example.test; spf=fail reason="x; dmarc=pass"'],
  ['mx.example.test; dkim=neutral header.d=example.test'],
]
for (const results of UNAUTHENTICATED)
  test(`a sender is not authenticated by: ${label(results)}`, async () => assert.not(await authenticated(...results)))

test('a sender is authenticated only by the results of the trusted server', async () => {
  assert.ok(await authenticated('mx.example.test; spf=pass; dmarc=pass header.from=example.test'))
  assert.ok(await authenticated('MX.example.test 1; dkim=pass header.d=example.test'))
  assert.ok(await authenticated('mx.example.test; dkim=fail header.d=x.test; dkim=pass header.i=@example.test'))
  const twoSenders = `From: eve@evil.test\nAuthentication-Results: mx.example.test; dmarc=pass\n${message('hi')}`
  assert.not((await eventOf(twoSenders)).sender.authenticated)
  const untrusting = configOf(instance({ ...settings, trusted_authserv_id: undefined }))
  const source = Buffer.from(`Authentication-Results: mx.example.test; dmarc=pass\r\n${message('hi')}`)
  const reading = await read({ source, size: source.length }, untrusting)
  assert.ok(reading.kind === 'event' && !reading.event.sender.authenticated)
})

const QUOTES: [string, string][] = [
  ['Yes.\n\nOn Sat, 28 Nov 2026 at 10:00, Ann wrote:\n> How many?\n> And why?\n', 'Yes.'],
  ['Yes.\n\nOn Sat, 28 Nov 2026 at 10:00,\nAnn Example <ann@example.test> wrote:\n\n> How many?\n', 'Yes.'],
  ['Ja.\n\nAm 28.11.26 um 10:00 schrieb Ann:\n> Wie viele?', 'Ja.'],
  ['Yes.\n\n-----Original Message-----\nFrom: Ann\nHow many?', 'Yes.'],
  ['Yes.\n\nFrom: Ann\nSent: today\nTo: Bot\nSubject: x\n\nHow many?', 'Yes.'],
  ['Yes.\n-- \nAnn\n+49 1', 'Yes.'],
  ['> How many?\n\nSeven.\n\n> Why?\n\nBecause.', '> How many?\n\nSeven.\n\n> Why?\n\nBecause.'],
  ['> only a quote', '> only a quote'],
  ['She wrote:\n\nread this', 'She wrote:\n\nread this'],
  ['From: here\nwe go on', 'From: here\nwe go on'],
]
for (const [text, own] of QUOTES)
  test(`the own text of a mail is cut out: ${label(text)}`, () => assert.is(withoutQuotes(text), own))

test('nested quotes and HTML take linear time', () => {
  const long = 'On Sat, 28 Nov 2026 X wrote:\n> a\n'.repeat(20_000)
  // Each of them would take minutes if its time grew with the square of its length.
  assert.ok(withoutQuotes(long).length < long.length)
  assert.is(textOfHtml('<blockquote><div><a href=x>'.repeat(50_000)), '')
  assert.is(textOfHtml('<div '.repeat(50_000)), '')
})

test('HTML becomes text with blocks, links and entities, without scripts and quotes', () => {
  const html = `<html><head><style>p{color:red}</style><title>t</title></head><body><!-- c --><p>Hello&nbsp;<b>bot</b>,</p>
    <div>see <a href="https://example.test/a?b=1&amp;c=2">this</a> &lt;now&gt; &#8364; &#x41;</div><ul><li>one<li>two</ul>
    <script>alert(1)</script><div class="gmail_quote">On Sat Ann wrote:<blockquote>old</blockquote></div></body></html>`
  assert.is(textOfHtml(html), 'Hello bot,\n\nsee this (https://example.test/a?b=1&c=2) <now> € A\n\n- one\n- two')
})

test('a message with only HTML and files gives its text and the bytes of the files', async () => {
  const boundary = (name: string, type: string, bytes: Buffer) =>
    `--b\nContent-Type: ${type}\nContent-Transfer-Encoding: base64\nContent-Disposition: attachment; filename="${name}"\n\n${bytes.toString('base64').replace(/.{76}/g, '$&\n')}\n`
  const small = Buffer.from([0, 1, 2, 255])
  const body = (...parts: string[]) =>
    message(`--b\nContent-Type: text/html; charset=utf-8\n\n<p>Look &amp; see</p>\n${parts.join('')}--b--`, {
      'Content-Type': 'multipart/mixed; boundary=b',
      Subject: '=?utf-8?Q?Gr=C3=BC=C3=9Fe?=',
    })
  const event = await eventOf(body(boundary('../../etc/x.bin', 'application/octet-stream', small)))
  assert.is(event.text, 'Grüße\n\nLook & see')
  assert.equal(event.attachments, [
    { name: '.._.._etc_x.bin', mime_type: 'application/octet-stream', data: small.toString('base64') },
  ])
  const big = Buffer.alloc(8 * 1024 * 1024, 1)
  const both = await eventOf(body(boundary('big.bin', 'image/png', big), boundary('more.bin', 'image/png', small)))
  assert.is(both.attachments?.length, 1, 'together they are 8 MiB at most')
  assert.match(both.text ?? '', /\[attachment more\.bin of 4 bytes was left out\]/)
  assert.match((await eventOf(message('cut'), 20_000_000)).text ?? '', /\[the message of 20000000 bytes was cut\]/)
})

test('a thread is the first reference, and a message without an id has a derived key', async () => {
  const { thread_id, idempotency_key, message_id } = await eventOf(message('x', { 'Message-ID': undefined }))
  assert.is(thread_id, idempotency_key)
  assert.is(message_id, undefined)
  const again = await eventOf(message('x', { 'Message-ID': undefined }))
  const other = await eventOf(message('y', { 'Message-ID': undefined }))
  assert.is(again.idempotency_key, idempotency_key)
  assert.is.not(other.idempotency_key, idempotency_key)
  const reply = await eventOf(message('x', { References: '<a@b> <c@d>', 'In-Reply-To': '<c@d>' }))
  assert.is(reply.thread_id, 'a@b')
  assert.is(reply.text, 'x', 'the subject is said once')
  const same = (from: string) => eventOf(message('x', { From: from, 'Message-ID': '<same@b>' }))
  assert.is.not((await same('ann@example.test')).idempotency_key, (await same('eve@evil.test')).idempotency_key)
  assert.not((await eventOf(message('x', { To: 'team@example.test' }))).addressed)
  assert.ok((await eventOf(message('x', { To: 'team@example.test', Cc: 'Agent <AGENT@example.test>' }))).addressed)
})

test('hostile messages are unusable or bounded, never an exception', async () => {
  const nested = (depth: number) => 'Content-Type: multipart/mixed; boundary=b\n\n--b\n'.repeat(depth)
  for (const source of [
    '',
    'no header at all',
    'From: \r\n\r\nx',
    'From: a@b.test, c@d.test\r\n\r\nx',
    `From: ann@example.test\n${nested(500)}`,
    `From: ann@example.test\n${'X: y\n'.repeat(200_000)}\nx`,
    '\0'.repeat(1000),
  ]) {
    const reading = await read({ source: Buffer.from(source), size: source.length }, config)
    assert.ok(reading.kind !== 'event' || (reading.event.text ?? '').length <= 250_000)
  }
})

/** A report as RFC 3464 has it. */
function report(
  action: string,
  returned: string,
  more: { readonly type?: string; readonly returnedType?: string } = {},
) {
  const type = more.type ?? 'multipart/report; report-type="delivery-status"; boundary="b"'
  const parts = [
    ['text/plain; charset=utf-8', 'Your message was not delivered. Reply to this mail.'],
    [
      'message/delivery-status',
      [
        'Reporting-MTA: dns; mx.example.test',
        'Action: failed',
        '',
        'Final-Recipient: rfc822; ann@example.test',
        `Action: ${action}`,
        'Status: 5.1.1',
        'Diagnostic-Code: smtp; 550 5.1.1 no such',
        '  mailbox',
      ].join('\n'),
    ],
    [more.returnedType ?? 'message/rfc822', returned],
  ]
  const body = parts.map(([mime, text]) => `--b\nContent-Type: ${mime}\n\n${text}\n`).join('')
  const from = { From: 'Mail Delivery Subsystem <mailer-daemon@mx.example.test>', 'Return-Path': '<>' }
  return message(`${body}--b--`, { ...from, 'MIME-Version': '1.0', 'Content-Type': type })
}

test('a bounce names only own messages; delays, deliveries and foreign messages are ignored', async () => {
  const ours = 'From: bot@example.test\nMessage-ID: <svc.msg_1@example.test>\nSubject: x\n\nseven'
  const bounces = async (text: string) => {
    const source = Buffer.from(text.replaceAll('\n', '\r\n'))
    const reading = await read({ source, size: source.length }, config)
    return reading.kind === 'report' ? reading.bounces : reading.kind
  }
  const reason = 'ann@example.test: 5.1.1 550 5.1.1 no such mailbox'
  const failed = [{ id: 'svc.msg_1@example.test', reason }]
  assert.equal(await bounces(report('failed', ours)), failed)
  assert.equal(
    await bounces(report('Failed (gone)', ours.split('\n\n')[0] ?? '', { returnedType: 'text/rfc822-headers' })),
    failed,
  )
  for (const action of ['delayed', 'delivered', 'relayed', 'expanded', ''])
    assert.equal(await bounces(report(action, ours)), [])
  for (const id of ['<q1@example.test>', '<svc.msg_1@elsewhere.test>', 'svc.msg_1@example.test', ''])
    assert.equal(await bounces(report('failed', `From: bot@example.test\nMessage-ID: ${id}\n\nx`)), [], id)
  assert.equal(
    await bounces(report('failed', `From: bot@example.test\n\nMessage-ID: <svc.msg_1@example.test>`)),
    [],
    'in the body',
  )
  const receipt = 'multipart/report; report-type=disposition-notification; boundary=b'
  assert.is(await bounces(report('failed', ours, { type: receipt })), 'event')
  assert.is(
    await bounces(report('failed', ours, { type: 'multipart/mixed; boundary=b; x="report-type=delivery-status"' })),
    'event',
  )
  const many = report('failed', ours).replace('Diagnostic', `${'X: y\n'.repeat(50_000)}Diagnostic`)
  assert.ok(Array.isArray(await bounces(many)))
})

const problemOf = (more: object) => {
  try {
    configOf(instance({ ...settings, ...more }))
    return undefined
  } catch (error) {
    return error
  }
}

for (const more of [
  { imap_security: 'none' },
  { smtp_security: 'none' },
  { address: 'a@b\r\nBcc: x@y' },
  { address: undefined },
  { from_name: 'a\nb' },
  { aliases: ['x'] },
  { idle_seconds: 1741 },
  { imap_port: 0 },
  { sent_copies: 'both' },
])
  test(`the settings are refused: ${label(more)}`, () => assert.instance(problemOf(more), InstanceProblem))

test('a connection to this machine needs no encryption', () =>
  assert.is(problemOf({ imap_security: 'none', imap_host: '127.0.0.1' }), undefined))

test.run()
