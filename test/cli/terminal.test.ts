import { PassThrough } from 'node:stream'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { terminalOf } from '../../cli/show/terminal.js'

test('a second question is answered after the first', async () => {
  const input = new PassThrough()
  const terminal = terminalOf(input)
  const line = () =>
    new Promise(resolve => {
      const quiet = terminal.onLine(text => {
        quiet()
        resolve(text)
      })
    })
  const first = line()
  input.write('one\n')
  assert.is(await first, 'one')
  const second = line()
  input.write('two\n')
  assert.is(await Promise.race([second, new Promise(resolve => setTimeout(resolve, 2000, 'nothing'))]), 'two')
})

test('each question after the end of the input gets that end', async () => {
  const input = new PassThrough()
  const terminal = terminalOf(input)
  const ended = () =>
    new Promise(resolve => {
      const quiet = terminal.onLine(text => {
        quiet()
        resolve(text === undefined)
      })
    })
  const first = ended()
  input.end()
  assert.is(await first, true)
  assert.is(await Promise.race([ended(), new Promise(resolve => setTimeout(resolve, 2000, 'nothing'))]), true)
})

test.run()
