import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { LogFile, logPath } from '../../cli/daemon/log-file.js'
import { runCli } from './fake-daemon.js'

const test = suite<{ home: string; path: string }>('logs')
test.before.each(context => {
  context.home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  context.path = logPath(context.home)
})
test.after.each(({ home }) => rmSync(home, { recursive: true, force: true }))

const line = (level: string, msg: string, more: object = {}) =>
  `${JSON.stringify({ level, time: '2030-01-31T09:00:00.000Z', ...more, msg })}\n`

test('logs without a daemon reads the last lines of the file, by level, with lines in other formats', async ({
  home,
  path,
}) => {
  const log = new LogFile(path)
  log.write(line('debug', 'one'))
  log.write(line('info', 'two', { plugin: 'things', n: { a: 1 } }))
  log.write(line('warn', 'three\x1b[2J'))
  log.write('    at broken (file.js:1:1)\n')
  const all = await runCli(home, ['logs'])
  assert.is(all.code, 0, all.stderr)
  const stamp = '2030-01-31 \\d\\d:\\d\\d:\\d\\d'
  const expected = [
    `${stamp} DEBUG one`,
    `${stamp} INFO  two plugin=things n={"a":1}`,
    `${stamp} WARN  three`,
    'ERROR     at broken.*',
  ]
  assert.match(all.stdout, new RegExp(`^${expected.map(text => text.replaceAll(/[{}]/g, '\\$&')).join('\n')}\n$`))
  assert.is((await runCli(home, ['logs', '--lines', '1'])).stdout.trim().split('\n').length, 1)
  assert.is((await runCli(home, ['logs', '--level', 'warn'])).stdout.trim().split('\n').length, 2)
  assert.is((await runCli(home, ['logs', '--level', 'loud'])).code, 2)
  assert.is((await runCli(home, ['logs', '--lines', '-1'])).code, 2)
  const json = JSON.parse((await runCli(home, ['logs', '--json'])).stdout)
  assert.equal(
    json.map(({ msg }: { msg: string }) => msg),
    ['one', 'two', 'three\x1b[2J', '    at broken (file.js:1:1)'],
  )
  const rows = (await runCli(home, ['logs', '-o', 'jsonl', '--lines', '2'])).stdout.trim().split('\n')
  assert.equal(
    rows.map(row => JSON.parse(row).level),
    ['warn', 'error'],
  )
})

test('logs filters by plugin and by time; an invalid time is refused', async ({ home, path }) => {
  const log = new LogFile(path)
  log.write(line('info', 'old', { plugin: 'things' }))
  log.write(line('warn', 'new', { plugin: 'things', time: '2030-02-01T00:00:00.000Z' }))
  log.write(line('info', 'other', { plugin: 'parts', time: '2030-02-01T00:00:00.000Z' }))
  const shown = async (...words: string[]) => {
    const { stdout } = await runCli(home, ['logs', '--json', ...words])
    return JSON.parse(stdout).map(({ msg }: { msg: string }) => msg)
  }
  assert.equal(await shown('--plugin', 'things'), ['old', 'new'])
  assert.equal(await shown('--since', '2030-01-31T10:00:00Z'), ['new', 'other'])
  assert.equal(await shown('--since', '2030-01-31T10:00:00Z', '--plugin', 'things', '--level', 'warn'), ['new'])
  const none = await runCli(home, ['logs', '--plugin', 'nothing'])
  assert.match(none.stdout, /no such lines/)
  const wrong = await runCli(home, ['logs', '--since', 'yesterday'])
  assert.is(wrong.code, 2)
  assert.match(wrong.stderr, /--since takes a duration or a time/)
})

test('rotated lines are found; an empty log gives the next step', async ({ home, path }) => {
  const empty = await runCli(home, ['logs'])
  assert.equal([empty.code, empty.stderr], [0, ''])
  assert.match(empty.stdout, 'svc daemon start')
  assert.is((await runCli(home, ['logs', '--json'])).stdout, '[]\n')
  mkdirSync(dirname(path))
  writeFileSync(`${path}.2`, line('info', 'a') + line('info', 'b'))
  writeFileSync(`${path}.1`, line('info', 'c'))
  writeFileSync(path, line('info', 'd'))
  const { stdout } = await runCli(home, ['logs', '--lines', '3', '-o', 'jsonl'])
  assert.equal(
    stdout
      .trim()
      .split('\n')
      .map(row => JSON.parse(row).msg),
    ['b', 'c', 'd'],
  )
})

test('following continues over a rotation, prints whole lines and exits with 130', async ({ home, path }) => {
  mkdirSync(dirname(path))
  writeFileSync(path, line('info', 'old'))
  const controller = new AbortController()
  const seen: string[] = []
  const wanted = ['old', 'new ü', 'last', 'fresh']
  const steps: Readonly<Record<string, () => void>> = {
    old: () => {
      const bytes = Buffer.from(line('error', 'new ü') + line('debug', 'hidden'))
      appendFileSync(path, bytes.subarray(0, bytes.indexOf(0xc3) + 1))
      setTimeout(() => appendFileSync(path, bytes.subarray(bytes.indexOf(0xc3) + 1)), 300)
    },
    'new ü': () => {
      appendFileSync(path, line('info', 'last'))
      renameSync(path, `${path}.1`)
      writeFileSync(path, line('info', 'fresh'))
    },
    fresh: () => controller.abort(),
  }
  const { code } = await runCli(home, ['logs', '--follow', '--level', 'info', '-o', 'jsonl'], {
    signal: controller.signal,
    onOutput: text => {
      const { msg } = JSON.parse(text)
      seen.push(msg)
      // As another process would.
      setImmediate(() => steps[msg]?.())
    },
  })
  assert.equal([code, seen], [130, wanted])
})

test.run()
