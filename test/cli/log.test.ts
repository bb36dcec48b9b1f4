import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LogFile, logPath, logTail } from '../../cli/log-file.js'
import { redact } from '../../cli/redact.js'

const test = suite<{ home: string; path: string }>('log')
test.before.each(context => {
  context.home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  context.path = logPath(context.home)
})
test.after.each(({ home }) => rmSync(home, { recursive: true, force: true }))

const full = 10 * 1024 * 1024

test('lines are on the disk at once, closed to others', ({ path }) => {
  const log = new LogFile(path)
  log.write('one\n')
  assert.is(readFileSync(path, 'utf8'), 'one\n')
  assert.is(statSync(path).mode & 0o777, 0o600)
  assert.is(statSync(join(path, '..')).mode & 0o777, 0o700)
  new LogFile(path).write('two\n')
  assert.is(readFileSync(path, 'utf8'), 'one\ntwo\n')
})

test('a full log is rotated, and five old ones are kept', ({ path }) => {
  const log = new LogFile(path)
  for (let i = 1; i <= 7; i++) log.write(`${i}${'x'.repeat(full)}\n`)
  log.write('new\n')
  assert.is(readFileSync(path, 'utf8'), 'new\n')
  const first = (n: number) => readFileSync(`${path}.${n}`, 'utf8').slice(0, 1)
  assert.equal([1, 2, 3, 4, 5].map(first), ['7', '6', '5', '4', '3'])
  assert.not(existsSync(`${path}.6`))
  writeFileSync(path, 'x'.repeat(full))
  new LogFile(path).write('fresh\n')
  assert.is(readFileSync(path, 'utf8'), 'fresh\n')
})

test('the tail is readable, and only of what came after a position', ({ path }) => {
  assert.equal(logTail(path, 0, 5), [])
  const log = new LogFile(path)
  log.write('{"level":"info","msg":"before"}\n')
  const from = statSync(path).size
  log.write('{"level":"error","msg":"no","plugin":"things","error":"why","next":"do"}\nplain text\n')
  assert.equal(logTail(path, from, 5), ['error things: no (why) next: do', 'plain text'])
  assert.equal(logTail(path, 0, 1), ['plain text'])
  assert.equal(logTail(path, 1_000_000, 1), ['plain text'])
})

test('secrets are redacted by the name of their key, wherever they are', () => {
  const line = {
    api_key: 'a',
    apiKey: 'a',
    token: 'a',
    nested: [{ webhook_secret_value: 'a', Authorization: 'a', 'set-cookie': ['a'] }],
    password: null,
    claim_token_hash: 'stays',
    max_tokens: 5,
    idempotency_key: 'stays',
    text: 'sent Authorization: Bearer abcdefghijkl to it',
    count: 3,
  }
  const gone = '[redacted]'
  assert.equal(redact(line), {
    api_key: gone,
    apiKey: gone,
    token: gone,
    nested: [{ webhook_secret_value: gone, Authorization: gone, 'set-cookie': gone }],
    password: gone,
    claim_token_hash: 'stays',
    max_tokens: 5,
    idempotency_key: 'stays',
    text: `sent Authorization: Bearer ${gone} to it`,
    count: 3,
  })
  const loop: Record<string, unknown> = {}
  loop.again = loop
  assert.match(JSON.stringify(redact(loop)), 'too deep')
  assert.is(
    (redact({ error: new Error('Bearer abcdefghijkl') }) as { error: { message: string } }).error.message,
    `Bearer ${gone}`,
  )
})

test.run()
