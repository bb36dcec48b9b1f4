// timeout: 180s

import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import * as v from 'valibot'
import { describe } from '../../kernel/kit/annotations/index.js'
import { SecretSet } from '../../kernel/kit/secret-set.js'
import {
  defineErrors,
  definePlugin,
  event,
  type Fault,
  Faults,
  ok,
  type Plugin,
  type PluginKernel,
  routeOf,
  type SecretSource,
  streamed,
  surfaceOf,
} from '../../kernel/plugin.js'
import { Checks, finding } from '../../plugins/desk/daemon/api.js'
import daemon from '../../plugins/desk/daemon/index.js'
import { Events } from '../../plugins/platform/events/api.js'
import { boot, bootBare, type TestKernel } from '../harness/kernel.js'
import { leakOf, partsLike, writingsOf } from '../harness/secret-writings.js'
import { ask, openDoors } from './http/doors.js'

const VALUE = 'p"a\\ss/wörd_& <correct-horse> €🔑'
const Told = event(
  'leaky.told',
  v.object({
    id: v.string(),
    mode: v.picklist(['completed', 'cancelled']),
    nested: v.array(v.object({ text: v.string(), why: v.union([v.literal('completed'), v.literal('ran out')]) })),
  }),
)
const LeakyErrors = defineErrors({ leaky_failed: { status: 409, message: 'failed' } })

class Leaky {
  readonly hidden = new SecretSet()
  /** What the check of the doctor says. */
  finding = ''

  constructor(readonly kernel: PluginKernel<{ events: typeof Events; faults: typeof Faults }>) {}

  fault(text: string): Fault {
    return LeakyErrors.leaky_failed(`a ${text} b`, { details: { got: `<${text}>`, id: 'x' }, next: `svc try ${text}` })
  }

  async tell(text: string, fields: { id?: string; mode?: 'completed'; why?: 'completed' } = {}): Promise<void> {
    const { id = 'one', mode = 'completed', why = 'completed' } = fields
    await this.kernel.db.tx(t => this.kernel.needs.events.emit(t, Told, { id, mode, nested: [{ text, why }] }))
  }
}

const route = routeOf<Leaky>(describe('Test'))
const text = v.object({ text: v.string() })
const failing = async function* (self: Leaky, secret: string): AsyncGenerator<never> {
  yield* []
  throw self.fault(secret)
}

/** A plugin that says what it is told in every way there is, and whose service a test reaches. */
function leaky(): { readonly plugin: Plugin; readonly self: () => Leaky } {
  let made: Leaky | undefined
  const { contribute } = surfaceOf<Leaky>()
  const plugin = definePlugin({
    name: 'leaky',
    version: '1.0.0',
    requires: { events: Events, faults: Faults },
    service: async () =>
      class extends Leaky {
        constructor(kernel: PluginKernel<{ events: typeof Events; faults: typeof Faults }>) {
          super(kernel)
          made = this
        }
      },
  }).surface({
    secrets: [self => self.hidden],
    events: [Told],
    errors: [LeakyErrors],
    registries: [
      contribute(Checks, self => [
        {
          id: 'leaky',
          category: 'leaky',
          run: async () => [
            finding({
              id: 'leaky',
              code: 'leaky',
              category: 'leaky',
              severity: 'warning',
              title: 'It leaks',
              message: self.finding,
            }),
          ],
        },
      ]),
    ],
    routes: [
      route({
        method: 'GET',
        path: '/api/leaky/fault',
        summary: 'Fails',
        query: text,
        replies: { 200: v.object({}) },
        handle: (self, { query }) => {
          throw self.fault(query.text)
        },
      }),
      route({
        method: 'GET',
        path: '/api/leaky/own-words',
        summary: 'Fails in its own words',
        query: text,
        replies: { 200: v.object({}) },
        faults: { reply: v.object({ said: v.string() }), body: ({ message }) => ({ said: message }) },
        handle: (self, { query }) => {
          throw self.fault(query.text)
        },
      }),
      route({
        method: 'GET',
        path: '/api/leaky/throw',
        summary: 'Throws',
        query: text,
        replies: { 200: v.object({}) },
        handle: (_, { query }) => {
          throw new Error(`thrown with ${query.text}`)
        },
      }),
      route({
        method: 'GET',
        path: '/api/leaky/stream',
        summary: 'Breaks off',
        query: text,
        contentType: 'text/event-stream',
        frames: v.object({}),
        replies: { 200: v.object({}) },
        handle: (self, { query }) => streamed(failing(self, query.text)),
      }),
      route({
        method: 'GET',
        path: '/api/leaky/bytes',
        summary: 'Bytes as they are',
        query: text,
        replies: { 200: { as: 'bytes', types: ['application/octet-stream'] } },
        handle: (_, { query }) => ok(query.text),
      }),
    ],
  })
  return { plugin, self: () => made as Leaky }
}

/** Ids, paths and lines of a stack are hexadecimal too: five characters they may have in common with a value, nine they do not. */
const clean = (text: string, writing: string, where: string) => {
  assert.ok(leakOf(text, writing) <= 8, `${where}: ${text.slice(0, 500)}`)
  assert.match(text, '[redacted:test]', where)
}

async function during(
  work: (at: { kernel: TestKernel; self: Leaky; told: ReturnType<typeof leaky> }) => Promise<void>,
  options = {},
) {
  const told = leaky()
  const kernel = await boot({ plugins: [daemon, told.plugin], checkReplies: false, ...options })
  try {
    await work({ kernel, self: told.self(), told })
  } finally {
    await kernel.close()
  }
}

const filesBelow = (folder: string): string =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => readFileSync(path.join(entry.parentPath, entry.name), 'latin1'))
    .join('\n')

test('a registered value is redacted at every output, in every encoding', () =>
  during(async ({ kernel, self }) => {
    self.hidden.hide(VALUE, { name: 'test' })
    for (const [name, writing] of Object.entries(writingsOf(VALUE))) {
      const before = kernel.log.length
      const { log } = self.kernel
      log.warn(`text ${writing}`)
      log.warn('fields', { deep: [{ text: writing }] })
      log.warn('error', { error: new Error(`with ${writing}`, { cause: new Error(writing) }) })
      log.warn('json', { at: { toJSON: () => writing } })
      self.kernel.needs.faults('leaky', 'somewhere', new Error(`reported ${writing}`))
      const lines = kernel.log.slice(before)
      assert.is(lines.length, 5)
      const [, , error] = lines
      const { error: logged } = error as unknown as { error: Error }
      assert.instance(logged, Error)
      clean(
        `${logged.message}${logged.stack}${(logged.cause as Error).message}`,
        writing,
        `${name} in an error of the log`,
      )
      for (const line of lines)
        if (line !== error) clean(JSON.stringify(line), JSON.stringify(writing).slice(1, -1), `${name} in the log`)

      const query = `?text=${encodeURIComponent(writing)}`
      const replyText = async (url: string) =>
        (await kernel.kernel.inject({ method: 'GET', url: `/api/leaky/${url}${query}` })).body
      const json = JSON.stringify(writing).slice(1, -1)
      for (const url of ['fault', 'own-words', 'stream']) clean(await replyText(url), json, `${name} by ${url}`)
      await replyText('throw')
      clean(JSON.stringify(kernel.log.at(-1)), json, `${name} thrown`)
      clean(JSON.stringify(kernel.kernel.host.faults().at(-1)), json, `${name} in the faults`)

      self.finding = `found ${writing}`
      clean(JSON.stringify((await kernel.request('GET', '/api/doctor?only=leaky')).body), json, `${name} by doctor`)
      await self.tell(writing)
      const [emitted] = await self.kernel.needs.events.list({ name: Told.name, limit: 1000 }).then(all => all.slice(-1))
      clean(JSON.stringify(emitted), json, `${name} in an event`)
      assert.is(await replyText('bytes'), writing, 'bytes are exempt')
    }
    const { home } = kernel
    await kernel.kernel.host.unload('leaky')
    const writings = Object.entries(writingsOf(VALUE)).map(
      ([name, writing]) => [name, Buffer.from(writing).toString('latin1')] as const,
    )
    const files = partsLike(
      filesBelow(home),
      writings.map(([, writing]) => writing),
    )
    for (const [name, writing] of writings) assert.ok(leakOf(files, writing) <= 8, `${name} in a file of the home`)
  }))

test('a value is redacted before it is stored, until it is deleted, and until its plugin returns', () =>
  during(async ({ kernel, self, told }) => {
    const last = () => kernel.log.at(-1)?.msg
    const say = (text: string) => {
      told.self().kernel.log.warn(text)
      return last()
    }
    assert.is(say('swordfish'), 'swordfish')
    const forget = self.hidden.hide('swordfish')
    assert.is(say('a swordfish'), 'a [redacted]')
    forget()
    assert.is(say('a swordfish'), 'a swordfish')
    self.hidden.hide('swordfish', { name: 'vault:x' })
    assert.is(say('a swordfish'), 'a [redacted:vault:x]')
    await kernel.kernel.host.reload(told.plugin)
    assert.is(say('a swordfish'), 'a swordfish', 'the new one has registered nothing yet')
    told.self().hidden.hide('swordfish')
    assert.is(say('a swordfish'), 'a [redacted]')
    const { log } = told.self().kernel
    await kernel.kernel.host.unload('leaky')
    log.warn('a swordfish')
    assert.is(last(), 'a [redacted]', 'its values may be in what others tell')
    const apply: Plugin['apply'] = kernel => {
      kernel.log.warn('a swordfish')
      return told.plugin.apply(kernel)
    }
    await kernel.kernel.host.load({ ...told.plugin, apply })
    assert.is(last(), 'a [redacted]', 'it is not there yet')
    assert.is(say('a swordfish'), 'a swordfish', 'this one does not hide it')
  }))

test('a value that is an ordinary word does not alter protocol text', () =>
  during(async ({ kernel, self }) => {
    for (const word of ['completed', 'leaky.told', 'leaky_failed', 'leaky-id', 'a-plugin-name', 'messages'])
      self.hidden.hide(word, { name: 'test' })
    await self.tell('it was completed', { id: 'leaky-id', why: 'completed' })
    const [emitted] = await self.kernel.needs.events.list({ name: Told.name })
    const nested = [{ text: 'it was [redacted:test]', why: 'completed' }]
    assert.equal(emitted?.payload, { id: 'leaky-id', mode: 'completed', nested })
    const { body } = await kernel.request('GET', '/api/leaky/fault?text=completed')
    assert.is(body.code, 'leaky_failed')
    assert.equal(body.details, { got: '<[redacted:test]>', id: 'x', next: 'svc try [redacted:test]' })
    self.kernel.log.warn('completed', { messages: 'completed', status: 'completed', session_id: 'leaky-id' })
    const { time: _, ...line } = kernel.log.at(-1) as { time: number }
    const fields = { messages: '[redacted:test]', status: 'completed', session_id: 'leaky-id' }
    assert.equal(line, { ...fields, level: 'warn', msg: '[redacted:test]', plugin: 'leaky' })
    self.kernel.log.warn('a sentence', { code: 'it was completed' })
    assert.is(kernel.log.at(-1)?.code, 'it was [redacted:test]', 'a sentence is read by people, whatever it is called')
  }))

test('the failure of a plugin is reported without the values of others', () =>
  during(async ({ kernel, self }) => {
    self.hidden.hide('swordfish', { name: 'test' })
    const broken = definePlugin({
      name: 'broken',
      version: '1.0.0',
      service: async () => {
        throw new Error('no swordfish')
      },
    }).surface({})
    await kernel.kernel.host.load(broken)
    const { state } = kernel.kernel.host.plugins().find(({ name }) => name === 'broken') ?? {}
    assert.equal(state, { status: 'failed', error: 'no [redacted:test]' })
    assert.not.match(JSON.stringify(kernel.log), 'swordfish')
    assert.not.match(JSON.stringify(await self.kernel.needs.events.list({})), 'swordfish')
  }))

test('a stream redacts a value split over chunks, also one registered meanwhile', () =>
  during(async ({ self }) => {
    const stream = self.kernel.redact.stream()
    assert.is(stream.push('before sword'), 'before sword')
    self.hidden.hide('swordfish', { name: 'test' })
    assert.is(stream.push('fish, sword') + stream.push('fish'), 'fish, [redacted:test]')
    assert.is(stream.end(), '')
  }))

test('a source that fails or registers an unredactable value is reported and affects no other', () =>
  during(async ({ kernel, self }) => {
    self.hidden.hide('swordfish', { name: 'test' })
    let sink: ((value: string) => () => void) | undefined
    const bad = (follow: SecretSource['follow']) =>
      definePlugin({ name: 'bad', version: '1.0.0', service: async () => class {} }).surface({
        secrets: [() => ({ follow })],
      })
    await kernel.kernel.host.load(
      bad(given => {
        sink = given
        given('battery staple')
        given('')
        return () => {}
      }),
    )
    self.kernel.log.warn('swordfish, battery staple')
    assert.is(kernel.log.at(-1)?.msg, '[redacted:test], [redacted]')
    const faults = kernel.kernel.host.faults().filter(({ owner }) => owner === 'bad')
    assert.equal(
      faults.map(({ where }) => where),
      ['secrets'],
    )
    await kernel.kernel.host.unload('bad')
    self.kernel.log.warn('swordfish, battery staple')
    assert.is(kernel.log.at(-1)?.msg, '[redacted:test], [redacted]', 'others may tell what it had')
    sink?.('too late for this')
    self.kernel.log.warn('too late for this')
    assert.is(kernel.log.at(-1)?.msg, 'too late for this')
  }))

test('a value is redacted during the boot once its plugin has registered it', async () => {
  const hidden = new SecretSet()
  hidden.hide('swordfish')
  const holder = definePlugin({ name: 'a-holder', version: '1.0.0' }).surface({ secrets: [() => hidden] })
  const teller = definePlugin({
    name: 'b-teller',
    version: '1.0.0',
    service: async () =>
      class {
        constructor({ log }: PluginKernel) {
          log.warn('a swordfish')
        }
      },
  }).surface({})
  const kernel = await boot({ plugins: [holder, teller] })
  assert.equal(
    kernel.log.filter(({ plugin }) => plugin === 'b-teller').map(({ msg }) => msg),
    ['a [redacted]'],
  )
  await kernel.close()
})

test('a kernel without a redactor warns when a plugin has secrets', async () => {
  const holder = definePlugin({ name: 'holder', version: '1.0.0' }).surface({ secrets: [() => new SecretSet()] })
  const kernel = await bootBare({ plugins: [holder] })
  assert.ok(kernel.log.some(({ msg }) => /no plugin redacts secrets/.test(msg)))
  await kernel.close()
})

test('with redact.enabled off texts are unchanged, and the log says so', async () => {
  const told = leaky()
  const { writeFile } = await import('node:fs/promises')
  const { temporaryFolder } = await import('../harness/kernel.js')
  const home = await temporaryFolder('redact')
  await writeFile(path.join(home, 'config.json'), JSON.stringify({ redact: { enabled: false } }))
  const kernel = await boot({ plugins: [daemon, told.plugin], home })
  told.self().hidden.hide('swordfish')
  told.self().kernel.log.warn('swordfish')
  assert.is(kernel.log.at(-1)?.msg, 'swordfish')
  assert.ok(kernel.log.some(({ msg }) => /redact\.enabled is off/.test(msg)))
  await kernel.close()
})

test('failures on the other side of a socket are reported without values', async () => {
  const told = leaky()
  const doors = await openDoors([daemon, told.plugin])
  told.self().hidden.hide('swordfish', { name: 'test' })
  for (const where of [doors.where.socket, doors.where.tcp]) {
    const { body } = await ask(where, '/api/leaky/fault?text=swordfish')
    assert.is(body.error, 'a [redacted:test] b')
    assert.match((await ask(where, '/api/leaky/stream?text=swordfish')).text, 'a [redacted:test] b')
  }
  await doors.close()
})

test.run()
