import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { Child } from './child.js'
import type { Context } from './context.js'
import { answers, makeHome, startDaemon } from './daemon.js'
import type { KernelHandlers } from './kernel-process.js'
import { inTurn, median, ms, pairs, pause, ratioOf } from './measure.js'
import type { Row } from './report.js'

/** What the kernel costs as it grows: boot, reconcile, reads, a swap of the routes, a call of a hook. */
export async function benchKernel(context: Context): Promise<void> {
  const rows = [
    ...(await boots(context)),
    await reconciling(context),
    ...(await reads(context)),
    ...(await swaps(context)),
    ...(await hooks(context)),
    ...(await redaction(context)),
  ]
  context.report.section('Kernel', rows)
}

async function boots(context: Context): Promise<Row[]> {
  const { quick, temp } = context
  const rounds = quick ? 2 : 5
  const empty = makeHome(temp, 'boot-empty')
  const boot = async (home: typeof empty): Promise<number> => {
    const began = performance.now()
    const daemon = await startDaemon(context, home)
    const elapsed = performance.now() - began
    await daemon.stop()
    return elapsed
  }
  await boot(empty)
  const rows: Row[] = []
  for (const [what, count] of [
    ['notes', 10_000],
    ['jobs', 100_000],
  ] as const) {
    const home = makeHome(temp, `boot-${what}`)
    await filled(context, home.home, what, count, true)
    const { a, b, ratio } = await pairs(
      rounds,
      () => boot(home),
      () => boot(empty),
    )
    rows.push({
      what: `boot with ${count} ${what === 'notes' ? 'records' : 'automation jobs'}`,
      ours: ms(a),
      baseline: `empty home: ${ms(b)}`,
      ratio,
      ...(what === 'jobs' && { value: a - b, target: { atMost: 1000, unit: 'ms more' } }),
    })
  }
  return rows
}

async function reconciling(context: Context): Promise<Row> {
  const many = context.quick ? 20_000 : 100_000
  const open = async (name: string, count: number): Promise<Child<KernelHandlers>> => {
    const child = Child.start<KernelHandlers>(context.program('kernel-process'))
    await child.call('open', folder(context, name))
    await child.call('fill', 'notes', count)
    return child
  }
  const [few, lots] = [await open('few', 100), await open('lots', many)]
  const { a, b, ratio } = await pairs(
    context.quick ? 3 : 9,
    () => lots.call('reconcileOne', 100),
    () => few.call('reconcileOne', 100),
  )
  for (const child of [few, lots]) await child.kill()
  return {
    what: `one record of ${many} written and reconciled`,
    ours: ms(a),
    baseline: `of 100: ${ms(b)}`,
    ratio,
    value: ratio,
    target: { atMost: 1.3 },
  }
}

async function reads(context: Context): Promise<Row[]> {
  const { temp, program, quick } = context
  const home = makeHome(temp, 'reads')
  await filled(context, home.home, 'notes', 10_000, false)
  const daemon = await startDaemon(context, home)
  const echoSocket = path.join(temp, 'echo-get.sock')
  const echo = spawn(process.execPath, [program('echo'), echoSocket], { stdio: ['ignore', 'ignore', 'inherit'] })
  while (!(await answers(echoSocket, '/'))) await pause(20)
  const rows: Row[] = []
  for (const [what, url] of [
    ['GET of a record among 10000', '/api/resources/bench.note/notes-7'],
    ['GET of a list of 50 among 10000', '/api/resources?kind=bench.note&limit=50'],
  ] as const) {
    const get = (socket: string, at: string) => () => load(program('load'), socket, at, quick ? 0.6 : 1.2)
    const results = await inTurn((quick ? 1 : 5) + 1, [get(home.socket, url), get(echoSocket, '/')])
    // The first round warms up.
    const [ours = [], bare = []] = results.map(all => all.slice(1))
    const ratio = ratioOf(
      ours.map(one => one.p99),
      bare.map(one => one.p99),
    )
    const textOf = (all: typeof ours) =>
      `p50 ${ms(median(all.map(one => one.p50)))} p99 ${ms(median(all.map(one => one.p99)))}`
    const target = { atMost: 3 }
    rows.push({ what, ours: textOf(ours), baseline: `bare fastify: ${textOf(bare)}`, ratio, value: ratio, target })
  }
  echo.kill()
  await daemon.stop()
  return rows
}

async function swaps(context: Context): Promise<Row[]> {
  const open = async (routes: number): Promise<Child<KernelHandlers>> => {
    const child = Child.start<KernelHandlers>(context.program('kernel-process'))
    await child.call('open', folder(context, `swap-${routes}`), { routes })
    await child.call('swap', 3)
    return child
  }
  const [many, few] = [await open(500), await open(10)]
  const gaps: number[] = []
  const { a, b, ratio } = await pairs(
    context.quick ? 3 : 7,
    async () => {
      const { took, gap } = await many.call('swap', 3)
      gaps.push(gap)
      return took
    },
    async () => (await few.call('swap', 3)).took,
  )
  for (const child of [many, few]) await child.kill()
  const gap = median(gaps)
  return [
    { what: 'a plugin loaded beside 500 routes', ours: ms(a), baseline: `beside 10: ${ms(b)}`, ratio },
    { what: 'longest gap of the loop meanwhile', ours: ms(gap), value: gap, target: { atMost: 50, unit: 'ms' } },
  ]
}

async function hooks(context: Context): Promise<Row[]> {
  const child = Child.start<KernelHandlers>(context.program('kernel-process'))
  await child.call('open', folder(context, 'hooks'))
  const rows: Row[] = []
  for (const taps of [0, 1, 20]) {
    const { ours, bare } = await child.call('hook', taps, context.quick ? 20_000 : 100_000)
    const us = (ns: number) => `${(ns / 1000).toFixed(2)} us`
    rows.push({
      what: `hook call, ${taps} tap${taps === 1 ? '' : 's'}`,
      ours: us(ours),
      baseline: `bare tapable: ${us(bare)}`,
      ratio: ours / bare,
    })
  }
  await child.kill()
  return rows
}

/** A turn without anything that searches it is what the others are compared with; a turn of a daemon has more to do. */
async function redaction(context: Context): Promise<Row[]> {
  const [rounds, chunks] = context.quick ? [5, 5000] : [15, 20_000]
  const open = async (name: string): Promise<Child<KernelHandlers>> => {
    const child = Child.start<KernelHandlers>(context.program('kernel-process'))
    await child.call('open', folder(context, `redaction-${name}`))
    await child.call('turn', chunks)
    return child
  }
  const [ours, bare] = [await open('ours'), await open('bare')]
  const rows: Row[] = []
  for (const values of [0, 100, 10_000]) {
    const registered = await ours.call('hide', values)
    await ours.call('turn', chunks, true)
    const { a, b, ratio } = await pairs(
      rounds,
      () => ours.call('turn', chunks, true),
      () => bare.call('turn', chunks),
    )
    const what = `a turn of ${chunks} chunks, ${values} values hidden`
    rows.push({ what, ours: ms(a), baseline: `none: ${ms(b)}`, ratio, value: ratio, target: { atMost: 1.1 } })
    if (values > 100) rows.push({ what: `${values} values registered`, ours: ms(registered) })
  }
  for (const child of [ours, bare]) await child.kill()
  return rows
}

/** A home with that many records, closed again. */
export async function filled(
  context: Context,
  home: string,
  what: 'notes' | 'jobs',
  count: number,
  all: boolean,
): Promise<void> {
  const child = Child.start<KernelHandlers>(context.program('kernel-process'))
  await child.call('open', home, { all })
  await child.call('fill', what, count)
  await child.call('close')
  await child.kill()
}

function folder({ temp }: Context, name: string): string {
  const made = path.join(temp, name)
  mkdirSync(made, { mode: 0o700 })
  return made
}

async function load(program: string, socketPath: string, url: string, seconds: number) {
  const child = spawn(process.execPath, [program, socketPath, 'GET', url, '1', String(seconds)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', chunk => {
    text += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`the load generator ended with ${code}`)
  return JSON.parse(text) as { readonly p50: number; readonly p99: number }
}
