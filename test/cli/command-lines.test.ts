import { readFileSync } from 'node:fs'
import path from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { ModuleCommand, RouteCommand } from '../../cli/commands/command-data.js'
import { readCommandLines, writeCommandLines } from '../../cli/commands/command-lines.js'
import { data, dist } from './tree.js'

/** Every member that a command may have, read one by one, as the command line does. */
const members = [...new Set([...data.routes, ...data.commands].flatMap(command => Object.keys(command)))]
const whole = (command: RouteCommand | ModuleCommand) =>
  Object.fromEntries(
    members.flatMap(member => {
      const value = (command as unknown as Record<string, unknown>)[member]
      return value === undefined ? [] : [[member, value]]
    }),
  )

const test = suite('command data by lines')
test('commands read by line equal those of JSON.parse', () => {
  const read = readCommandLines(readFileSync(path.join(dist, 'commands.json'), 'utf8'))
  assert.equal(read.version, data.version)
  assert.equal(read.routes.map(whole), data.routes.map(whole))
  assert.equal(read.commands.map(whole), data.commands.map(whole))
  assert.ok(read.routes.length > 100 && read.commands.length > 50)
})

test('commands read by line keep quotes, line breaks and commas of a summary', () => {
  const summary = 'say "a","summary":"b", \\ and\nanother line'
  const [command] = data.commands
  const text = writeCommandLines({ version: '1', routes: [], commands: [{ ...command!, summary }, command!] })
  const read = readCommandLines(text)
  assert.equal(read.commands.map(whole), [{ ...command, summary }, command])
  assert.equal(JSON.parse(text), { version: '1', routes: [], commands: [{ ...command, summary }, command] })
})

test('command data in another format is refused', () => {
  for (const text of [
    '',
    '{}',
    '{"version":"1","routes":[],"commands":[]}',
    '{"version":"1","routes":[\n{"path":1}\n],"commands":[\n]}',
  ])
    assert.throws(() => readCommandLines(text))
})

test.run()
