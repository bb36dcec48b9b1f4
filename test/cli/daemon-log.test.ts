import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { type DaemonLog, openDaemonLog } from '../../cli/daemon/daemon-log.js'
import { LogFile, logPath } from '../../cli/daemon/log-file.js'
import { createKernel } from '../../kernel/index.js'
import { SecretSet } from '../../kernel/kit/secret-set.js'
import { definePlugin, type Log, type Plugin, type PluginKernel } from '../../kernel/plugin.js'
import { base } from '../../plugins/index.js'

const test = suite<{ home: string; log: DaemonLog; lines: () => Record<string, unknown>[]; text: () => string }>(
  'daemon log',
)
test.before.each(async context => {
  const home = mkdtempSync(join(tmpdir(), 'svc-cli-'))
  const text = () => readFileSync(logPath(home), 'utf8')
  const lines = () =>
    text()
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
  Object.assign(context, { home, text, lines, log: await openDaemonLog(new LogFile(logPath(home)), false) })
})
test.after.each(({ home }) => rmSync(home, { recursive: true, force: true }))

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/

test('a log line has level, time, plugin, fields and message, for plugins and for the program', ({ log, lines }) => {
  log({ level: 'info', msg: 'daemon is ready', pid: 7 })
  log.port.child({ plugin: 'things' }).warn({ n: 1, nested: { token: 'a' } }, 'careful')
  const [own, child] = lines()
  assert.equal(Object.keys(own ?? {}), ['level', 'time', 'pid', 'msg'])
  assert.equal(Object.keys(child ?? {}), ['level', 'time', 'plugin', 'n', 'nested', 'msg'])
  for (const line of [own, child]) assert.match(String(line?.time), TIME)
  assert.equal([own?.level, own?.msg], ['info', 'daemon is ready'])
  const { time: _, ...rest } = child ?? {}
  assert.equal(rest, { level: 'warn', plugin: 'things', n: 1, nested: { token: '[redacted]' }, msg: 'careful' })
})

test('an extension that floods the log is muted for a while, across reloads; other plugins are logged', async ({
  home,
}) => {
  let now = 0
  const path = join(home, 'flooded')
  const { port } = await openDaemonLog(new LogFile(path), false, { monotonic: () => now })
  const flood = () => {
    const child = port.child({ plugin: 'acme.flood' })
    for (let n = 0; n < 20_000; n++) child.info({ n }, 'x'.repeat(100))
  }
  flood()
  port.child({ plugin: 'acme.calm' }).info({}, 'calm')
  port.child({ plugin: 'things' }).info({}, 'a plugin of the package')
  // Loaded anew, it has the bucket that it emptied.
  flood()
  const lines = () =>
    readFileSync(path, 'utf8')
      .trim()
      .split('\n')
      .map(line => JSON.parse(line))
  const others = () => lines().filter(({ msg }) => !/^x+$/.test(msg))
  assert.equal(
    others().map(({ plugin, msg }) => [plugin, msg.slice(0, 30)]),
    [
      ['acme.flood', 'it logs more than 1 MiB at once'],
      ['acme.calm', 'calm'],
      ['things', 'a plugin of the package'],
    ].map(([plugin, msg]) => [plugin, msg?.slice(0, 30)]),
  )
  const heard = lines().length
  assert.ok(heard > 5000 && heard < 10_000, `${heard}`)
  now = 600_000
  port.child({ plugin: 'acme.flood' }).info({}, 'quiet again')
  const [told, said] = others().slice(-2)
  assert.equal([told.msg, told.dropped, said.msg], ['its lines are logged again', 40_003 - heard, 'quiet again'])
})

test('the level of a child logger is independent of the level of the program', ({ log, lines }) => {
  const child = log.port.child({ plugin: 'things' })
  child.level = 'error'
  child.info({}, 'too much')
  child.error({}, 'enough')
  log({ level: 'info', msg: 'the program' })
  assert.equal(
    lines().map(({ msg }) => msg),
    ['enough', 'the program'],
  )
})

test('a registered secret is redacted in messages, fields, bindings and causes, of plugins and of the program', async ({
  home,
  log,
  text,
  lines,
}) => {
  const secret = 'correct-horse-7-battery'
  const secrets = new SecretSet()
  const logs: Log[] = []
  const plugin: Plugin = definePlugin({
    name: `acme.${secret}`,
    version: '1.0.0',
    service: async () =>
      class {
        constructor({ log: mine }: PluginKernel) {
          secrets.hide(secret)
          logs.push(mine)
        }
      },
  }).surface({ secrets: [() => secrets] })
  const kernel = await createKernel({ home: join(home, 'home'), plugins: [...base, plugin], log: log.port })
  log.redactBy(kernel.redact)
  const error = new Error(`failed with ${secret}`, { cause: new Error(secret) })
  for (const level of ['info', 'error'] as const) {
    logs[0]?.[level](`message ${secret}`, { field: [secret], error, err: error })
    log({ level, msg: `message ${secret}`, field: [secret], error, err: error, [secret]: 1 })
  }
  await kernel.close()
  log({ level: 'warn', msg: `after it was closed: ${secret}` })
  assert.not.match(text(), secret)
  assert.is(lines().filter(({ msg }) => String(msg) === 'message [redacted]').length, 4)
  assert.is(lines().filter(({ plugin: name }) => name === 'acme.[redacted]').length, 2)
})

test.run()
