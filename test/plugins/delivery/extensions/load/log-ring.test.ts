import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { LogRing } from '../../../../../plugins/delivery/extensions/load/log-ring.js'
import { VirtualClock } from '../../../../../testing/virtual-clock.js'
import { processorMs } from '../../../../harness/processor-time.js'

const MIB = 2 ** 20

function ring() {
  const clock = new VirtualClock()
  const made = new LogRing('epoch', clock)
  const messages = () => made.entries().map(({ message }) => message)
  return { clock, ring: made, said: messages }
}

/** Milliseconds per line. */
function cost(log: LogRing, lines: number): number {
  const all = () => {
    for (let n = 0; n < lines; n++) log.line('x')
  }
  return processorMs(all) / lines
}

test('a line costs the same when the ring is full', () => {
  const { ring: log } = ring()
  const short = 5000
  cost(log, 1000)
  const empty = Math.min(...Array.from({ length: 20 }, () => cost(ring().ring, short)))
  cost(log, 100_000)
  const full = Math.min(...Array.from({ length: 20 }, () => cost(log, short)))
  assert.ok(full < 10 * empty, `${full} ms a line, ${empty} ms while it is empty`)
})

test('a flood of lines is muted with one note, and ends with it', async () => {
  const { clock, ring: log, said } = ring()
  for (let n = 0; n < 20; n++)
    assert.ok(log.push(Buffer.from('err line\n'.repeat(MIB / 9))), 'a burst of 20 MiB is no reason to end it')
  const notes = () => said().filter(line => line.startsWith('[svc]'))
  assert.is(notes().length, 1, notes().join('\n'))
  assert.match(notes()[0] ?? '', 'muted')
  assert.ok((log.muted?.dropped ?? 0) > 18 * MIB, `${log.muted?.dropped} characters dropped`)
  await clock.advance(60_000)
  log.push(Buffer.from('quiet again\n'))
  assert.is(said().at(-1), 'quiet again')
  assert.match(notes().at(-1) ?? '', /logged again.*dropped/)
  assert.is(notes().length, 2)
})

test('a value is never kept in part where the output ends or resumes', async () => {
  const secret = 'correct horse/"battery" staple'
  for (const form of [secret, encodeURIComponent(secret), Buffer.from(secret).toString('base64')]) {
    const { clock, ring: log, said } = ring()
    log.hide([secret])
    log.push(Buffer.from(`before ${form.slice(0, -4)}`))
    log.end()
    assert.is(said().at(-1), 'before …', form)
    log.push(Buffer.from('whole line'))
    log.end()
    assert.is(said().at(-1), 'whole line')
    log.push(Buffer.from(`${'x\n'.repeat(MIB)}${form.slice(0, 9)}`))
    await clock.advance(60_000)
    log.push(Buffer.from(`${form.slice(9)}\nquiet again\n`))
    assert.is(said().at(-1), 'quiet again')
    assert.not.ok(said().some(line => line.includes(form.slice(9, 20))))
  }
})

test('a process that keeps flooding is not tolerated, whatever it writes', () => {
  for (const text of ['err line\n', 'x', '\n', '\u{fffd}\u0000']) {
    const { ring: log } = ring()
    const mib = Buffer.from(text.repeat(MIB)).subarray(0, MIB)
    let pushed = 0
    while (log.push(mib) && pushed < 1024) pushed++
    assert.ok(pushed > 32 && pushed < 128, `${JSON.stringify(text)}: ${pushed} MiB`)
  }
})

test('a process that writes steadily within the rate is never muted', async () => {
  const { clock, ring: log } = ring()
  for (let second = 0; second < 600; second++) {
    log.push(Buffer.from(`${'y'.repeat(99)}\n`.repeat(300)))
    await clock.advance(1000)
  }
  assert.is(log.muted, undefined)
})

test.run()
