import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { parseCommand } from '../../../cli/commands/parse-command.js'
import { mcp } from '../../../plugins/index.js'

const add = mcp.surface.commands?.find(({ path }) => path === 'mcp add')
if (!add) throw new Error('there is no svc mcp add')
const entry = { kind: 'command', plugin: 'mcp', ...add, args: add.args ?? [], options: add.options ?? [] } as never

test('svc mcp add takes a command and its arguments behind --', () => {
  const given = (...words: string[]) => {
    const { args, options } = parseCommand(entry, words)
    return [args.name, args.command, options.arg, options.env]
  }
  assert.equal(given('files', '--env', 'A=1', '--', 'npx', '-y', 'server', '--root', '.'), [
    'files',
    'npx',
    ['-y', 'server', '--root', '.'],
    ['A=1'],
  ])
})

test('words that no -- stands before are no arguments of the command', () => {
  assert.throws(() => parseCommand(entry, ['files', 'npx', 'server']), 'unexpected argument "server"')
  assert.throws(() => parseCommand(entry, ['files', 'npx', 'server', '--', 'x']), 'unexpected argument')
})

test.run()
