import path from 'node:path'
import { exchange, readText } from '../../client/exchange.js'
import type { Context } from './context.js'
import { makeHome, startDaemon } from './daemon.js'
import { ms, pairs, timed } from './measure.js'
import type { Row } from './report.js'

const rows = 1000
const nothing = [process.execPath, '-e', '0']
/** Ratio of help and completion to it. */
const mostShort = 1.3

/** What somebody waits for at a prompt: whole calls of the command line, beside a node that does nothing. */
export async function benchCli(context: Context): Promise<void> {
  const home = makeHome(context.temp, 'cli')
  const daemon = await startDaemon(context, home)
  await fill(home.socket)
  const program = path.join(context.root, 'dist/bin/svc')
  const rounds = context.quick ? 5 : 21
  const row = async (what: string, args: readonly string[], env: object = {}, most?: number): Promise<Row> => {
    const call = () => timed([process.execPath, program, ...args], { ...home.env, ...env })
    const { a, b, ratio } = await pairs(rounds, call, () => timed(nothing))
    const target = most === undefined ? {} : { value: ratio, target: { atMost: most } }
    return { what, ours: ms(a), baseline: `node -e 0: ${ms(b)}`, ratio, ...target }
  }
  const typed = { SVC_WORDS: 'resource\nget\nbench.thing\n\n' }
  const report = [
    await row('svc help', ['help'], {}, mostShort),
    await row(`completion of one of ${rows} ids`, ['completion', 'words'], typed, mostShort),
    await row(`a list of ${rows} rows`, ['resource', 'list', 'bench.thing']),
    await row('the same as JSON', ['resource', 'list', 'bench.thing', '--json']),
  ]
  await daemon.stop()
  context.report.section('Command line', report)
}

async function fill(socket: string): Promise<void> {
  const body = { scope: { kind: 'global' }, spec: { note: 'x'.repeat(60) }, expected_version: 0 }
  const put = async (i: number) => {
    const path = `/api/resources/bench.thing/thing-${i}`
    const reply = await exchange({ socket }, { method: 'PUT', path, body })
    const text = await readText(reply)
    if (reply.statusCode !== 201) throw new Error(`${reply.statusCode} ${text}`)
  }
  // A few at once: the syncs are shared.
  for (let i = 0; i < rows; i += 50) await Promise.all(Array.from({ length: 50 }, (_, j) => put(i + j)))
}
