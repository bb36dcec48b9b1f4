import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { buildSync } from 'esbuild'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LogFile, type LogLimits, logFiles, logPath, logTail, openLog } from '../../cli/daemon/log-file.js'
import { redact } from '../../cli/daemon/redact.js'
import { until } from '../harness/until.js'

const test = suite<{ home: string; path: string }>('log')
test.before.each(context => {
  context.home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  context.path = logPath(context.home)
})
test.after.each(({ home }) => rmSync(home, { recursive: true, force: true }))

const limits = { maxBytes: 1000, backups: 5, maxAgeMs: 30 * 24 * 60 * 60_000 }
const rotating = (path: string, more: Partial<LogLimits> = {}, now?: () => number) => {
  const log = new LogFile(path, now)
  log.rotate({ ...limits, ...more })
  return log
}
const names = (path: string) => logFiles(path).map(file => file.slice(path.length))

test('lines are on the disk at once, in a file that only its owner reads', ({ path }) => {
  const log = new LogFile(path)
  log.write('one\n')
  assert.is(readFileSync(path, 'utf8'), 'one\n')
  assert.is(statSync(path).mode & 0o777, 0o600)
  assert.is(statSync(join(path, '..')).mode & 0o777, 0o700)
  new LogFile(path).write('two\n')
  assert.is(readFileSync(path, 'utf8'), 'one\ntwo\n')
})

test('a full log is rotated, and the limits bound the number of rotated files', ({ path }) => {
  const log = rotating(path)
  for (let i = 1; i <= 7; i++) log.write(`${i}${'x'.repeat(1000)}\n`)
  log.write('new\n')
  assert.is(readFileSync(path, 'utf8'), 'new\n')
  const first = (n: number) => readFileSync(`${path}.${n}`, 'utf8').slice(0, 1)
  assert.equal([1, 2, 3, 4, 5].map(first), ['7', '6', '5', '4', '3'])
  assert.equal(names(path), ['', '.1', '.2', '.3', '.4', '.5'])
  rotating(path, { backups: 2 })
  assert.equal(names(path), ['', '.1', '.2'])
  rotating(path, { backups: 0, maxBytes: 3 }).write('last\n')
  assert.equal(names(path), [''])
})

test('old rotated files are removed at start and while the daemon runs', ({ path }) => {
  const day = 24 * 60 * 60_000
  let now = Date.now()
  const log = rotating(path, {}, () => now)
  for (const text of ['a', 'b', 'c']) log.write(`${text.repeat(1000)}\n`)
  const aged = (n: number, days: number) => utimesSync(`${path}.${n}`, new Date(now), new Date(now - days * day))
  aged(3, 31)
  rotating(path, {}, () => now)
  assert.equal(names(path), ['', '.1', '.2'])
  now += 31 * day
  log.write('later\n')
  assert.equal(names(path), [''])
  writeFileSync(`${path}.1`, 'old')
  aged(1, 400)
  rotating(path, { maxAgeMs: 0 }, () => now)
  assert.equal(names(path), ['', '.1'])
})

test('only the daemon with the lock rotates; a start that finds the lock taken does not', ({ path }) => {
  const winner = rotating(path)
  winner.write(`${'x'.repeat(990)}\n`)
  const loser = new LogFile(path)
  loser.write('the daemon cannot start: daemon: already running with pid 1\n')
  closeSync(openLog(path))
  assert.equal(names(path), [''])
  winner.write('go on\n')
  assert.match(readFileSync(path, 'utf8'), /already running with pid 1\ngo on\n$/)
})

test('a removed log is created again, and a log cut within a line continues on the next', ({ path }) => {
  let now = 0
  const log = rotating(path, {}, () => now)
  log.write('one\n')
  renameSync(path, `${path}.by-hand`)
  now += 60_000
  log.write('two\n')
  assert.is(readFileSync(path, 'utf8'), 'two\n')
  writeFileSync(path, '{"level":"info","msg":"cut')
  new LogFile(path).write('three\n')
  assert.is(readFileSync(path, 'utf8'), '{"level":"info","msg":"cut\nthree\n')
})

test('an unwritable log blocks no caller and later reports the missing lines', ({ path }) => {
  let now = 0
  mkdirSync(path, { recursive: true })
  const log = rotating(path, {}, () => now)
  log.write('lost\n')
  log.write('lost as well\n')
  rmSync(path, { recursive: true })
  now += 60_000
  log.write('there\n')
  log.write('again\n')
  const [firstLine = '', ...rest] = readFileSync(path, 'utf8').split('\n')
  assert.match(JSON.parse(firstLine).msg, /; lines lost: 2$/)
  assert.equal(rest, ['there', 'again', ''])
})

test('a daemon killed during writes and rotation leaves every line once and in order', async ({ path }) => {
  const program = join(path, '..', '..', 'writer.mjs')
  const entryPoints = [fileURLToPath(new URL('../../cli/daemon/log-file.ts', import.meta.url))]
  const [source] = buildSync({ entryPoints, bundle: true, platform: 'node', format: 'esm', write: false }).outputFiles
  const write = `
    const log = new LogFile(process.argv[2])
    log.rotate({ maxBytes: 300, backups: 9999, maxAgeMs: 0 })
    for (let n = Number(process.argv[3]); ; n++) log.write(n + ' '.repeat(20) + n + '\\n')`
  writeFileSync(program, `${source?.text}${write}`)
  let next = 0
  for (let kills = 1; kills <= 6; kills++) {
    const child = spawn(process.execPath, [program, path, String(next)], { stdio: 'inherit' })
    const ended = once(child, 'exit')
    const grown = () => logFiles(path).length > 20 * kills
    await until(() => grown(), 'lines of the log')
    await sleep(kills)
    child.kill('SIGKILL')
    assert.equal(await ended, [null, 'SIGKILL'])
    const lines = logFiles(path)
      .reverse()
      .flatMap(file => readFileSync(file, 'utf8').split('\n').filter(Boolean))
    for (const [at, line] of lines.entries()) assert.is(line, `${at}${' '.repeat(20)}${at}`)
    next = lines.length
  }
})

test('the tail has whole lines after a position', ({ path }) => {
  assert.equal(logTail(path, 0, 5), [])
  const log = new LogFile(path)
  log.write('{"level":"info","msg":"before"}\n')
  const from = statSync(path).size
  log.write('{"level":"error","msg":"no","plugin":"things","error":"why","next":"do"}\nplain text\n')
  assert.equal(logTail(path, from, 5), ['error things: no (why) next: do', 'plain text'])
  assert.equal(logTail(path, 0, 1), ['plain text'])
  assert.equal(logTail(path, 1_000_000, 1), ['plain text'])
})

test('secrets are redacted by the name of their key at any depth', () => {
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
