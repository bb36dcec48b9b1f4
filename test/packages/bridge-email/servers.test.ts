import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { RpcError } from '../../../packages/bridge-kit/src/index.js'
import { Owner, startMail, Wire } from '../../harness/mail-servers.js'
import { until } from '../../harness/until.js'
import { managed, ScriptedDaemon } from '../bridge-kit/scripted-daemon.js'
import { message, startBridge, stopAll } from './mailbox.js'

let mail: Awaited<ReturnType<typeof startMail>>
let bot: Owner
let ann: Owner
const ports = () => ({ imap: mail.imap.port, smtp: mail.smtp.port })

test.before(async () => {
  mail = await startMail(['bot', 'ann'])
  bot = await Owner.of(mail.imap.port, 'bot')
  ann = await Owner.of(mail.imap.port, 'ann')
})
test.after(async () => {
  await stopAll()
  await bot.leave()
  await ann.leave()
  await mail.remove()
})

test('mail arrives by IDLE, and the answer joins its thread', async () => {
  await bot.put(message('old mail'))
  const { daemon, stop } = await startBridge(ports(), { sent_folder: 'Sent' })
  await daemon.status('ready')
  await bot.put(message('How many files?', { 'Message-ID': '<one@example.test>', Subject: 'Files' }))
  const question = await daemon.heard('Files\n\nHow many files?')
  assert.is(question.peer_id, 'ann@example.test')
  assert.is(question.thread_id, 'one@example.test')
  assert.is(question.message_id, 'one@example.test')
  assert.ok(question.addressed)
  assert.is(question.automatic, undefined)
  assert.not(question.sender.authenticated)
  const { peer_id = '', thread_id = '' } = question
  const delivery = daemon.delivery('bri_1', { peer_id, thread_id }, 'seven', {
    reply_to_message_id: 'one@example.test',
  })
  const since = Date.now()
  const id = `svc.${delivery.nonce}@example.test`
  assert.equal(await daemon.deliver(delivery), { status: 'delivered', remote_message_id: id })
  const answer = await ann.finds('seven')
  assert.match(answer, /^Subject: Re: Files\r?$/m)
  assert.match(answer, /^In-Reply-To: <one@example.test>\r?$/m)
  assert.match(answer, /^Auto-Submitted: auto-replied\r?$/m)
  assert.match(answer, new RegExp(`^Message-ID: <${id.replaceAll('.', '\\.')}>\\r?$`, 'm'))
  await bot.finds('seven', 'Sent')
  assert.equal(await daemon.settle(delivery, since), { outcome: 'delivered', remote_message_id: id })
  assert.equal(await daemon.settle({ ...delivery, nonce: 'never-sent' }, since), { outcome: 'unknown' })
  const reply = message('> seven\n\nThanks', { References: `<one@example.test> <${id}>`, 'In-Reply-To': `<${id}>` })
  await bot.put(reply)
  const thanks = await daemon.until(() => daemon.events[1], 'the reply')
  assert.is(thanks.thread_id, 'one@example.test')
  assert.is(thanks.reply_to_message_id, id)
  assert.is(daemon.events.length, 2, 'mail of before is not read')
  await stop()
})

test('a silently dead IDLE is noticed, and its mail arrives', async () => {
  const wire = await Wire.to(mail.imap.port)
  const { daemon, stop } = await startBridge({ ...ports(), imap: wire.port }, { idle_seconds: 20 })
  await daemon.status('ready')
  const before = daemon.reports.length
  wire.silent = true
  await bot.put(message('while deaf'))
  await daemon.status('degraded', before)
  wire.silent = false
  await daemon.heard('Question\n\nwhile deaf')
  assert.is((await daemon.status('ready', before)).message, undefined)
  assert.is(daemon.events.length, 1)
  await stop()
  await wire.close()
})

test('unannounced mail is found when IDLE is renewed', async () => {
  const wire = await Wire.to(mail.imap.port)
  const { daemon, stop } = await startBridge({ ...ports(), imap: wire.port }, { idle_seconds: 20 })
  await daemon.status('ready')
  wire.altered = chunk => Buffer.from(chunk.toString('latin1').replace(/\* \d+ EXISTS\r\n/g, ''), 'latin1')
  await bot.put(message('not announced'))
  await daemon.heard('Question\n\nnot announced')
  assert.is(wire.connections, 1)
  await stop()
  await wire.close()
})

test('a cut connection is reopened, and no mail is read twice', async () => {
  const wire = await Wire.to(mail.imap.port)
  const { daemon, stop } = await startBridge({ ...ports(), imap: wire.port })
  await daemon.status('ready')
  await bot.put(message('first'))
  await daemon.heard('Question\n\nfirst')
  const before = daemon.reports.length
  wire.cut()
  await daemon.status('ready', before)
  await bot.put(message('second'))
  await daemon.heard('Question\n\nsecond')
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['Question\n\nfirst', 'Question\n\nsecond'],
  )
  await stop()
  await wire.close()
})

test('an empty FETCH does not advance the position', async () => {
  const wire = await Wire.to(mail.imap.port)
  const first = await startBridge({ ...ports(), imap: wire.port })
  await first.daemon.status('ready')
  let requestCount = 0
  let empty = true
  wire.asked = chunk => {
    const text = chunk.toString('latin1')
    if (!empty || !/UID FETCH \d+ \(/.test(text)) return chunk
    requestCount++
    return Buffer.from(text.replace(/UID FETCH \d+ \(/, 'UID FETCH 4000000 ('), 'latin1')
  }
  await bot.put(message('comes late'))
  await until(() => requestCount >= 2, 'a second request')
  empty = false
  await first.daemon.heard('Question\n\ncomes late')
  assert.is(first.daemon.events.length, 1)
  await first.stop()
  await wire.close()
})

test('mail is marked as read when the daemon has it; refused mail stays unread, across a restart', async () => {
  const refuse = (daemon: ScriptedDaemon) => {
    daemon.ingest = () => {
      throw new RpcError(-32000, 'draining', { code: 'bridge_not_accepting', retry_after_ms: 100 })
    }
  }
  const first = await startBridge(ports(), {}, undefined, refuse)
  await first.daemon.status('ready')
  await bot.put(message('kept for later'))
  await first.daemon.until(() => first.daemon.refused[1], 'two refusals')
  await first.stop(true)
  assert.not(await bot.hasSeen('kept for later'))
  const second = await startBridge(ports(), {}, first.dataDir)
  await second.daemon.heard('Question\n\nkept for later')
  await until(() => bot.hasSeen('kept for later'), 'the mark of the mail')
  await second.stop(true)
  const third = await startBridge(ports(), {}, first.dataDir)
  await third.daemon.status('ready')
  await bot.put(message('last one'))
  await third.daemon.heard('Question\n\nlast one')
  assert.is(third.daemon.events.length, 1)
  await third.stop()
})

test('a change of UIDVALIDITY rereads and loses nothing', async () => {
  const first = await startBridge(ports())
  await first.daemon.status('ready')
  await bot.put(message('before the backup'))
  await first.daemon.heard('Question\n\nbefore the backup')
  // The flag comes after the position: a bridge that ends before it tells the same message again, and the daemon knows it.
  await until(() => bot.hasSeen('before the backup'), 'the mark of the mail')
  await first.stop(true)
  await bot.put(message('while the bridge was down'))
  // With fewer messages before it, this one gets a UID that was read before.
  await bot.client.mailboxOpen('INBOX')
  await bot.client.messageDelete('1:3')
  await bot.leave()
  await mail.imap.renumber('bot')
  bot = await Owner.of(mail.imap.port, 'bot')
  const second = await startBridge(ports(), {}, first.dataDir)
  await second.daemon.heard('Question\n\nwhile the bridge was down')
  await bot.put(message('after the backup'))
  await second.daemon.heard('Question\n\nafter the backup')
  // An earlier message whose flag was not set when its bridge ended is told again; the daemon knows it.
  const told = second.daemon.events.map(({ text }) => text)
  assert.equal(
    told.filter(text => /(?:down|backup)$/.test(String(text))),
    ['Question\n\nwhile the bridge was down', 'Question\n\nafter the backup'],
  )
  await second.stop()
})

test('a wrong password needs the operator; an unreachable server does not', async () => {
  const wrong = await startBridge(ports(), {}, undefined, undefined, { password: 'wrong' })
  const report = await wrong.daemon.status('auth_required')
  assert.is(report.reason, 'auth_failed')
  assert.not.match(report.message ?? '', /wrong/)
  await wrong.stop()
  const wire = await Wire.to(mail.imap.port)
  const { port } = wire
  await wire.close()
  const away = await startBridge({ ...ports(), imap: port })
  assert.is((await away.daemon.status('degraded')).reason, 'provider_timeout')
  await away.stop()
})

test('the SMTP reply decides: permanent, retry, or unknown', async () => {
  const wire = await Wire.to(mail.smtp.port)
  const { daemon, stop } = await startBridge({ ...ports(), smtp: wire.port })
  await daemon.status('ready')
  const say = (peer: string, text = 'hello') => daemon.say('bri_1', { peer_id: peer }, text)
  const nobody = await say('nobody@example.test')
  assert.ok(nobody.status === 'not_sent' && nobody.permanent && nobody.kind === 'unknown_destination')
  const later = await say('later@example.test')
  assert.ok(later.status === 'not_sent' && !later.permanent && (later.retry_after_ms ?? 0) > 0)
  const content = await say('ann@example.test', 'refuse this content')
  assert.ok(content.status === 'not_sent' && content.permanent && content.kind === 'permission_denied')
  let isAsked = false
  wire.altered = chunk => {
    if (isAsked) wire.cut()
    isAsked ||= chunk.toString('latin1').includes('354 ')
    return chunk
  }
  assert.is((await say('ann@example.test', 'did it arrive')).status, 'unknown')
  await ann.finds('did it arrive')
  wire.altered = chunk => chunk
  await wire.close()
  const away = await say('ann@example.test')
  assert.ok(away.status === 'not_sent' && !away.permanent && away.kind === 'transient_delivery_failure')
  await stop()
})

test('a bounce fails its delivery with the reason of the server and starts no turn', async () => {
  const { daemon, stop, dataDir } = await startBridge(ports())
  await daemon.status('ready')
  let refusals = 1
  daemon.reportDelivery = () => {
    if (refusals-- > 0) throw new RpcError(-32000, 'busy', { code: 'bridge_not_accepting', retry_after_ms: 10 })
    return 'recorded'
  }
  const sent = await daemon.say('bri_1', { peer_id: 'gone@example.test' }, 'are you there?')
  assert.is(sent.status, 'delivered', 'the server has taken it')
  const report = await daemon.until(() => daemon.deliveryReports[0], 'a report')
  assert.is(report.remote_message_id, sent.status === 'delivered' && sent.remote_message_id)
  assert.is(report.status, 'failed')
  assert.match(report.reason, /^gone@example\.test: 5\.\d\.\d .*550/)
  await bot.put(message('after it'))
  await daemon.heard('Question\n\nafter it')
  assert.equal(
    daemon.events.map(({ text }) => text),
    ['Question\n\nafter it'],
  )
  await stop(true)
  const again = await startBridge(ports(), {}, dataDir)
  await again.daemon.status('ready')
  await bot.put(message('later'))
  await again.daemon.heard('Question\n\nlater')
  assert.equal(again.daemon.deliveryReports, [], 'it was read before')
  await again.stop()
})

test('a password refused by SMTP degrades the instance, and verify names it', async () => {
  const secrets = { password: 'secret', smtp_password: 'other' }
  const { daemon, stop } = await startBridge(ports(), {}, undefined, undefined, secrets)
  await daemon.status('ready')
  const refused = await daemon.say('bri_1', { peer_id: 'ann@example.test' }, 'hello')
  assert.ok(refused.status === 'not_sent' && refused.permanent && refused.kind === 'missing_token')
  assert.is((await daemon.status('degraded')).reason, 'auth_failed')
  assert.equal(
    (await daemon.verify('bri_1')).map(({ check, status }) => `${check} ${status}`),
    [
      'email.imap pass',
      'email.smtp fail',
      'email.position pass',
      'email.authentication warn',
      'email.sent_folder warn',
    ],
  )
  await stop()
})

test('the built program answers a mail', async () => {
  const daemon = ScriptedDaemon.ofProgram([process.execPath, 'dist/extensions/bridge-email/main.cjs'])
  await daemon.initialize([managed('bri_1', { address: 'bot@example.test' }, { password: 'secret' })])
  const report = await daemon.status('error')
  assert.match(report.message ?? '', /provider_config\.imap_host/)
  await daemon.shutdown()
})

test.run()
