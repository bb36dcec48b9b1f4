// A kernel with a plugin of the bench, a process of its own: what it does is asked for by name.

import { randomBytes } from 'node:crypto'
import { AsyncSeriesHook } from 'tapable'
import * as v from 'valibot'
import { createKernel, type Kernel } from '../../kernel/index.js'
import { describe } from '../../kernel/kit/annotations/index.js'
import { SecretSet } from '../../kernel/kit/index.js'
import {
  definePlugin,
  kind,
  ok,
  operator,
  type Plugin,
  type PluginKernel,
  type Redact,
  routeOf,
  surfaceOf,
} from '../../kernel/plugin.js'
import { base, inTree } from '../../plugins/index.js'
import { Reconcile } from '../../plugins/platform/reconcile/api.js'
import { answer } from './child.js'
import { watchLoop } from './loop-gap.js'
import { pause } from './measure.js'
import { streamedTurn } from './streamed-turn.js'

const Note = kind({ name: 'bench.note', spec: v.object({ text: v.string() }), maxBytes: 4096 })
const note = { kind: Note.name, spec: { text: 'x'.repeat(200) } }
const hour = { mode: 'every', interval: '1h' }
const job = (n: number) => ({
  kind: 'automation.job',
  spec: { name: `job ${n}`, agent_name: 'report', prompt: 'Write the report.', schedule: hour },
})
const BATCH = 1000
const hidden = new SecretSet()
const forget: (() => void)[] = []
const unsearched: Redact = {
  text: text => text,
  value: value => value,
  stream: () => ({ push: piece => piece, end: () => '', held: 0 }),
}

let kernel: Kernel
const needs = { reconcile: Reconcile }
let inside: PluginKernel<typeof needs>

const route = routeOf<object>(describe('Bench'))
const { reconciler } = surfaceOf<object>()

function plugin(name: string, routes = 0): Plugin {
  return definePlugin({
    name,
    version: '1.0.0',
    requires: needs,
    service: async () =>
      class {
        constructor(own: PluginKernel<typeof needs>) {
          if (name === 'bench') inside = own
        }
      },
  }).surface({
    ...(name === 'bench' && {
      secrets: [() => hidden],
      kinds: [Note],
      reconcilers: [reconciler({ kind: Note, run: async () => {} })],
    }),
    routes: Array.from({ length: routes }, (_, n) =>
      route({
        method: 'GET',
        path: `/api/${name}/${n}/{id}` as const,
        summary: 'Nothing',
        replies: { 200: v.object({}) },
        handle: async () => ok({}),
      }),
    ),
  })
}

const middle = (values: number[]) => values.sort((a, b) => a - b)[values.length >> 1] as number

const handlers = {
  async open(home: string, { all = false, routes = 0 } = {}): Promise<void> {
    const plugins = [...(all ? inTree : base), plugin('bench', routes)]
    kernel = await createKernel({ home, plugins, env: { HOME: home, SVC_HOME: home } })
  },

  close: async (): Promise<unknown> => (await kernel.close()).map(String),

  async fill(what: 'notes' | 'jobs', count: number): Promise<void> {
    for (let n = 0; n < count; n += BATCH) {
      await inside.db.tx(t => {
        for (let i = n; i < Math.min(n + BATCH, count); i++) {
          const one = what === 'notes' ? note : job(i)
          inside.records.put(t, operator, { ...one, id: `${what}-${i}`, scope: { kind: 'global' } })
        }
      })
    }
    const last = { kind: what === 'notes' ? note.kind : 'automation.job', id: `${what}-${count - 1}` }
    if (!(await inside.needs.reconcile.settled([last], { timeoutMs: 120_000 })))
      throw new Error('the records did not settle')
  },

  /** Milliseconds from the write of one record until its reconciler has run, p50. */
  async reconcileOne(times: number): Promise<number> {
    const took: number[] = []
    for (let i = 0; i < times; i++) {
      const began = performance.now()
      await inside.db.tx(t => inside.records.put(t, operator, { ...note, id: 'notes-7', scope: { kind: 'global' } }))
      await inside.needs.reconcile.settled([{ kind: Note.name, id: 'notes-7' }])
      took.push(performance.now() - began)
    }
    return middle(took)
  },

  /** Milliseconds until a generation with one plugin more is in place, and the longest gap of the loop meanwhile. */
  async swap(times: number): Promise<{ took: number; gap: number }> {
    const longest = watchLoop()
    const took: number[] = []
    for (let i = 0; i < times; i++) {
      const began = performance.now()
      await kernel.host.load(plugin('guest', 1))
      took.push(performance.now() - began)
      await kernel.host.unload('guest')
    }
    // A swap may take a single turn of the loop, which is measured when the next one begins.
    await pause(20)
    return { took: middle(took), gap: longest() }
  },

  /** Hides that many values in the place of those before; milliseconds until a text was searched for them. */
  async hide(count: number): Promise<number> {
    for (const stop of forget.splice(0)) stop()
    const values = Array.from({ length: count }, () => `sk-proj-${randomBytes(24).toString('base64url')}`)
    const began = performance.now()
    for (const value of values) forget.push(hidden.hide(value, { name: 'bench' }))
    const stream = inside.redact.stream()
    stream.push('nothing')
    stream.end()
    return performance.now() - began
  },

  /** Milliseconds of a turn of so many chunks, which nothing searches unless it is told so. */
  turn: (chunks: number, searched = false): Promise<number> =>
    streamedTurn(searched ? inside : { ...inside, redact: unsearched }, chunks),

  /** Nanoseconds of a call of a hook with so many taps, and of the same hook of tapable without owner, deadline and mute. */
  async hook(taps: number, calls: number): Promise<{ ours: number; bare: number }> {
    const hook = inside.hooks.notify<[number]>(`bench${taps}`)
    let called = 0
    const functions = Array.from({ length: taps }, () => async (n: number) => {
      called++
      return n
    })
    const bare = new AsyncSeriesHook<[readonly number[]]>(['args'])
    for (const fn of functions) {
      hook.tap({ owner: 'bench', depth: 0, scope: inside.scope }, fn)
      bare.tapPromise('bare', async args => void (await fn(args[0] as number)))
    }
    const perCall = async (call: (n: number) => Promise<unknown>): Promise<number> => {
      for (let n = 0; n < calls / 10; n++) await call(n)
      const began = performance.now()
      for (let n = 0; n < calls; n++) await call(n)
      return ((performance.now() - began) / calls) * 1e6
    }
    const ours = await perCall(n => hook.call(n))
    // A muted tap costs nothing.
    if (called < taps * calls) throw new Error(`${called} of ${taps * calls} calls of taps`)
    return { ours, bare: await perCall(n => bare.promise([n])) }
  },
}

export type KernelHandlers = typeof handlers
answer(handlers)
