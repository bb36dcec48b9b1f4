import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Serial, SerialBy } from '../../../kernel/kit/serial.js'

/** A work that ends when it is told to, and notes when it began. */
function work(started: string[], name: string) {
  let end: (fail?: Error) => void = () => {}
  const done = new Promise<string>((resolve, reject) => {
    end = fail => (fail ? reject(fail) : resolve(name))
  })
  const run = () => {
    started.push(name)
    return done
  }
  return { run, end }
}
const settled = () => new Promise(resolve => setImmediate(resolve))

test('works run one after the other in the order of arrival', async () => {
  const started: string[] = []
  const queue = new Serial()
  const [a, b] = [work(started, 'a'), work(started, 'b')]
  const results = [queue.run(a.run), queue.run(b.run)]
  b.end()
  await settled()
  assert.equal(started, ['a'])
  a.end()
  assert.equal(await Promise.all(results), ['a', 'b'])
  assert.equal(started, ['a', 'b'])
})

test('a work that rejects or throws fails only its caller', async () => {
  const queue = new Serial()
  const failed = queue.run(async () => {
    throw new Error('no')
  })
  const thrown = queue.run(() => {
    throw new Error('at once')
  })
  const next = queue.run(async () => 'next')
  assert.is(await failed.catch(error => error.message), 'no')
  assert.is(await thrown.catch(error => error.message), 'at once')
  assert.is(await next, 'next')
})

test('idle resolves when all current works have ended, with success or failure', async () => {
  const started: string[] = []
  const queue = new Serial()
  const a = work(started, 'a')
  const failing = queue.run(a.run).catch(() => 'failed')
  let idle = false
  const waiting = queue.idle().then(() => {
    idle = true
  })
  await settled()
  assert.not.ok(idle)
  a.end(new Error('no'))
  await waiting
  assert.is(await failing, 'failed')
})

test('keys are independent, and an idle key is forgotten', async () => {
  const started: string[] = []
  const queue = new SerialBy()
  const [a1, a2, b] = [work(started, 'a1'), work(started, 'a2'), work(started, 'b')]
  const results = [queue.run('a', a1.run), queue.run('a', a2.run), queue.run('b', b.run)]
  await settled()
  assert.equal(started, ['a1', 'b'])
  assert.is(queue.size, 2)
  b.end()
  a1.end(new Error('no'))
  assert.is(await results[0]?.catch(error => error.message), 'no')
  await settled()
  assert.equal(started, ['a1', 'b', 'a2'])
  assert.is(queue.size, 1)
  const idle = queue.idle()
  a2.end()
  await idle
  await settled()
  assert.is(queue.size, 0)
})

test.run()
