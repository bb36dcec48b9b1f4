import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { mcp } from '../../../../plugins/index.js'
import { invocationOf } from '../../../cli/invocation-of.js'

const add = mcp.surface.commands?.find(({ path }) => path === 'mcp add')
if (!add) throw new Error('there is no svc mcp add')
const entry = { kind: 'command', plugin: 'mcp', ...add, args: add.args ?? [], options: add.options ?? [] } as never

test('svc mcp add takes a command and its arguments after --', async () => {
  const given = async (...words: string[]) => {
    const { args, options } = await invocationOf(entry, words)
    return [args.name, args.command, options.arg, options.env]
  }
  assert.equal(await given('files', '--env', 'A=1', '--', 'npx', '-y', 'server', '--root', '.'), [
    'files',
    'npx',
    ['-y', 'server', '--root', '.'],
    ['A=1'],
  ])
})

test('words without a preceding -- are no arguments of the command', async () => {
  const refusal = (...words: string[]) =>
    invocationOf(entry, words).then(
      () => '',
      (error: Error) => error.message,
    )
  assert.is(await refusal('files', 'npx', 'server'), 'unexpected argument "server"')
  assert.match(await refusal('files', 'npx', 'server', '--', 'x'), 'unexpected argument')
})

test.run()
