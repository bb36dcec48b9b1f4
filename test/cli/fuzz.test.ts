import type { ServerResponse } from 'node:http'
import { test } from 'uvu'
import * as assert from 'uvu/assert'
import { exitCodes } from '../../cli/fault.js'
import { FakeDaemon, runCli } from './fake-daemon.js'
import { data, dist, entries } from './tree.js'

/** They start a real daemon where none runs. */
const starting = new Set(['daemon start', 'daemon restart', 'run', 'init'])

const runs = 300
const seed = Number(process.env.SVC_FUZZ_SEED ?? 1)

/** Mulberry32: the same seed gives the same runs. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

const random = randomOf(seed)
const chance = (share: number) => random() < share
const one = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

const values = [
  '', ' ', '-', '--', '-1', '0', '1e999', '99999999999999999999', 'NaN', 'true', 'null', '{}', '[]', '{"a":{"b":[1]}}', '{',
  '"', "'", '..', '.', '/', '../../etc/passwd', '@', '@/nowhere', '@.', '%', '%2e%2e', '%ff', '?a=b', '#', 'a b', 'a\nb',
  'a\u0000b', '\x1b[2J', '\u202e', '\ud800', '漢字', '👨‍👩‍👧', 'x'.repeat(5000), '__proto__', 'constructor', 'toString', '-o', '$(id)', '`id`',
] // biome-ignore format: a list of words

const bodies: readonly unknown[] = [
  null, 0, '', 'text', true, [], {}, [null], { a: null }, [[[]]], { error: 1, code: 2 }, { error: 'no', code: null, details: 'x' },
  { error: 'no', code: 'x', details: { next: 1 } }, { items: 'none', jobs: {}, sessions: null, page: 3 }, { page: { has_more: true } },
  { session: null, prompt: 7, workspaces: [1, null, 'x', {}], runs: [{}], jobs: [{ id: 1, schedule: 5 }], agents: [[]] },
  { events: [{ type: null }, null, 1], messages: [{}], record: { version: 'x' } },
] // biome-ignore format: a list of bodies

function answer(response: ServerResponse): void {
  const kind = random()
  if (kind < 0.05) response.destroy()
  else if (kind < 0.1) response.writeHead(one([200, 502])).end('<html>')
  else if (kind < 0.15)
    response.writeHead(200, { 'content-type': 'text/event-stream' }).end(`id: 1\ndata: ${one(values)}\n\n`)
  else {
    const status = chance(0.6) ? 200 : one([201, 202, 400, 401, 403, 404, 409, 410, 413, 415, 422, 429, 500, 503, 507])
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(one(bodies)))
  }
}

function argvOf(): string[] {
  const entry = one(entries.filter(({ path }) => !starting.has(path)))
  const words = entry.path.split(' ').slice(0, chance(0.9) ? undefined : -1)
  for (const arg of entry.args)
    if (chance(0.9)) words.push('values' in arg && chance(0.3) ? one(arg.values ?? values) : one(values))
  for (const option of entry.options) {
    const name = 'option' in option ? option.option : option.name
    if (chance(0.3)) words.push(...(chance(0.5) ? [`--${name}`, one(values)] : [`--${name}=${one(values)}`]))
  }
  if (chance(0.3)) words.push('-o', one(['human', 'json', 'jsonl', 'toon', 'xml', '']))
  if (chance(0.1)) words.push(one(['--help', '--quiet', '--follow', '--data', '--', '--nope', '-x']))
  if (chance(0.1)) words.push(one(values))
  if (chance(0.05)) words.unshift(one(['help', '--version', '--json', '-o', ...values]))
  return words
}

test(`random arguments and replies give no stack trace and a documented exit code (seed ${seed})`, async () => {
  const daemon = await FakeDaemon.start()
  daemon.otherwise = answer
  const known: ReadonlySet<number> = new Set(Object.values(exitCodes))
  const seen = new Map<number, number>()
  try {
    for (let i = 0; i < runs; i++) {
      const argv = argvOf()
      const { code, stdout, stderr } = await runCli(daemon.home, argv, {
        data,
        root: dist,
        tty: chance(0.5),
        columns: 80,
        stdin: one(values),
        signal: AbortSignal.timeout(500),
      })
      const output = `${JSON.stringify(argv)}\n${code}\n${stdout.slice(0, 400)}\n${stderr}`
      assert.ok(known.has(code), output)
      assert.not.match(
        stdout + stderr,
        /\n\s+at .*[:(]\d+|TypeError|ReferenceError|\[object Object\]|code"?: "?internal/,
        output,
      )
      if (code !== 0 && code !== exitCodes.interrupted) assert.ok(stdout !== '' || stderr !== '', output)
      seen.set(code, (seen.get(code) ?? 0) + 1)
    }
  } finally {
    await daemon.remove()
  }
  // Not all of them failed at the first look at their arguments.
  assert.ok((seen.get(exitCodes.done) ?? 0) > runs / 20, JSON.stringify([...seen]))
})

test.run()
