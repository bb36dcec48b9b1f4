import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { Interrupts } from '../../cli/interrupts.js'

/** What is told, in order; `end` is the end of the command. */
function scene() {
  const notices: string[] = []
  const say = (what: string) => () => void notices.push(what)
  return { told: notices, say, interrupts: new Interrupts(say('end')) }
}

test('Ctrl-C goes to each handler once, newest first, and then ends the command', () => {
  const { told, say, interrupts } = scene()
  interrupts.onNext(say('first'))
  const release = interrupts.onNext(say('given back'))
  interrupts.onNext(say('last'))
  release()
  for (let n = 0; n < 3; n++) interrupts.interrupt()
  assert.equal(told, ['last', 'first', 'end'])
})

test('a handler with an undo step gets other signals too and may finish it', () => {
  const { told, say, interrupts } = scene()
  interrupts.terminate(say('killed'))
  const release = interrupts.onNext(say('undo'), { anyEnd: true })
  interrupts.onNext(say('for Ctrl-C'))
  for (let n = 0; n < 3; n++) interrupts.terminate(say('killed'))
  assert.equal(told, ['killed', 'undo'])
  release()
  interrupts.terminate(say('killed'))
  assert.equal(told, ['killed', 'undo', 'killed'])
})

test('Ctrl-C starts the undo step, and a second one aborts it', () => {
  const { told, say, interrupts } = scene()
  interrupts.onNext(say('undo'), { anyEnd: true })
  interrupts.interrupt()
  interrupts.terminate(say('killed'))
  interrupts.interrupt()
  assert.equal(told, ['undo', 'end'])
})

test.run()
