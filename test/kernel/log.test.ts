// timeout: 120s
import { rm } from 'node:fs/promises'
import { inspect } from 'node:util'
import { pino } from 'pino'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { createKernel, type Kernel, type KernelOptions, type LogPort } from '../../kernel/index.js'
import { SecretSet } from '../../kernel/kit/secret-set.js'
import { definePlugin, type Plugin, type PluginKernel, systemClock } from '../../kernel/plugin.js'
import { Configuration } from '../../plugins/platform/configuration/api.js'
import { temporaryFolder, withBase } from '../harness/kernel.js'

const SECRET = 'correct-horse-7-battery'
const needs = { configuration: Configuration }
type Talking = PluginKernel<typeof needs>

/** A plugin of this name that hands out what its service got. */
function talker(name: string, secrets = new SecretSet()) {
  const lives: Talking[] = []
  const plugin: Plugin = definePlugin({
    name,
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(kernel: Talking) {
          lives.push(kernel)
        }
      },
  }).surface({ secrets: [() => secrets] })
  return { plugin, secrets, lives, now: () => lives.at(-1) as Talking }
}

async function withKernel(options: Omit<KernelOptions, 'home'>, work: (kernel: Kernel) => Promise<void>) {
  const home = await temporaryFolder('log')
  const kernel = await createKernel({ home, ...options })
  try {
    await work(kernel)
  } finally {
    await kernel.close()
    await rm(home, { recursive: true, force: true })
  }
}

/** A logger of pino and what it wrote. */
function pinoLog() {
  const texts: string[] = []
  const logger = pino({ base: null, timestamp: false }, { write: (text: string) => void texts.push(text) })
  return { logger, text: () => texts.join(''), take: () => texts.splice(0).map(text => JSON.parse(text)) }
}

test('a pino logger is accepted: each plugin logs under its name, which no field overrides', async () => {
  const [one, two, log] = [talker('acme.one'), talker('acme.two'), pinoLog()]
  await withKernel({ plugins: withBase([one.plugin, two.plugin]), log: log.logger }, async () => {
    log.take()
    one.now().log.info('hello', { n: 1 })
    two.now().log.warn('there', { plugin: 'acme.one', level: 'error', msg: 'other', time: 0 })
    assert.equal(log.take(), [
      { level: 30, plugin: 'acme.one', n: 1, msg: 'hello' },
      { level: 40, plugin: 'acme.two', msg: 'there' },
    ])
  })
})

test('a changed level applies to the next line of every plugin and not to the logger of the embedder', async () => {
  const [one, two, log] = [talker('acme.one'), talker('acme.two'), pinoLog()]
  await withKernel({ plugins: withBase([one.plugin, two.plugin]), log: log.logger }, async () => {
    const both = (level: 'debug' | 'info' | 'error') => {
      log.take()
      one.now().log[level]('from one')
      two.now().log[level]('from two')
      return log.take().map(({ msg }) => msg)
    }
    const set = (value: string) => one.now().needs.configuration.write([{ path: 'log.level', value }])
    const all = ['from one', 'from two']
    assert.equal([both('debug'), both('info')], [[], all])
    await set('error')
    assert.equal([both('info'), both('error')], [[], all])
    await set('debug')
    assert.equal(both('debug'), all)
    assert.is(log.logger.level, 'info')
  })
})

test('a secret in a message, field, binding or cause is in no log output', async () => {
  for (const isPort of [true, false]) {
    const [one, log, lines] = [talker(`acme.${SECRET}`), pinoLog(), [] as unknown[]]
    const to = isPort ? log.logger : (line: object) => lines.push(line)
    const written = () => `${log.text()}${lines.map(line => inspect(line, { depth: 20, showHidden: true })).join('\n')}`
    await withKernel({ plugins: withBase([one.plugin]), log: to }, async kernel => {
      // The child is made, and bound to the name, before that is a secret.
      one.now().log.info('nothing to hide')
      assert.match(written(), SECRET)
      log.take()
      lines.length = 0
      one.secrets.hide(SECRET, { name: 'test' })
      const { log: mine } = one.now()
      mine.info(`message ${SECRET}`)
      mine.info('field', { of: [SECRET], [SECRET]: 1 })
      const cause = new Error(SECRET)
      mine.warn('cause', { err: new Error('failed', { cause }), more: new AggregateError([cause], 'all failed') })
      mine.warn('member', { error: Object.assign(new Error('failed'), { details: { got: SECRET } }) })
      kernel.host.report({ owner: one.plugin.name, hook: SECRET, error: new Error(SECRET, { cause }) })
      await kernel.host.unload(one.plugin.name)
      mine.error(`late ${SECRET}`)
    })
    assert.not.match(written(), SECRET)
    for (const text of ['message', 'field', 'cause', 'member', 'late', '[redacted:test]'])
      assert.ok(written().includes(text), text)
  }
})

test('a cyclic cause is logged', async () => {
  const [one, log] = [talker('acme.one'), pinoLog()]
  await withKernel({ plugins: withBase([one.plugin]), log: log.logger }, async () => {
    one.secrets.hide(SECRET)
    const error: Error & { cause?: unknown } = new Error('in a circle')
    error.cause = error
    one.now().log.warn('failed', { error })
    assert.is(log.take().at(-1).msg, 'failed')
  })
})

test('a reloaded plugin has one child logger, over a thousand reloads', async () => {
  let children = 0
  const port = (): LogPort => ({
    level: 'info',
    child: () => {
      children++
      return port()
    },
    debug() {},
    info() {},
    warn() {},
    error() {},
  })
  const clock = { ...systemClock(), sleep: async () => {} }
  const name = 'acme.one'
  const plugin = definePlugin({
    name,
    version: '1.0.0',
    service: async () =>
      class {
        constructor({ log }: PluginKernel) {
          log.info('here')
        }
      },
  }).surface({})
  await withKernel({ plugins: [plugin], log: port(), clock }, async kernel => {
    for (let n = 0; n < 1000; n++) await kernel.host.reload(plugin)
    assert.ok(children < 10, `${children} children`)
  })
})

test.run()
