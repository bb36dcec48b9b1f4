import { execFileSync } from 'node:child_process'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { command, placeholder, shellWord } from '../../../kernel/kit/commands/command-line.js'

test('the words of a command are quoted for a shell', () => {
  assert.is(command('workspace list'), 'svc workspace list')
  assert.is(command('workspace add', placeholder('dir')), 'svc workspace add <dir>')
  assert.is(command('task get', 'task_1', '--limit', 3), 'svc task get task_1 --limit 3')
  assert.is(command('skill show', 'a b; rm -rf ~'), "svc skill show 'a b; rm -rf ~'")
  // @ts-expect-error there is no such command
  assert.is(command('task shwo', 'x'), 'svc task shwo x')
})

for (const word of ['', ' ', "it's", '$(id)', '`id`', '"a"', '\\', 'a\nb', '<dir>', '~', '*', '!x', '#', 'ä', '-n'])
  test(`the word ${JSON.stringify(word)} passes through a shell unchanged`, () =>
    assert.is(execFileSync('sh', ['-c', `printf %s ${shellWord(word)}`], { encoding: 'utf8' }), word))

test.run()
