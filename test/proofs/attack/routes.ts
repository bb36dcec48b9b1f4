import { existsSync, rmSync } from 'node:fs'
import path from 'node:path'
import { Installed } from '../../e2e/installed.js'
import { chance } from '../library/chance.js'
import type { Attack, AttackRun } from './attack.js'
import { type Came, exchange } from './routes/exchange.js'
import { Routes } from './routes/sample.js'
import { type Door, type Target, type Variant, variants } from './routes/variants.js'
import { type Furnished, furnish, stateOf } from './world.js'

const ATTACKED = '/tmp/svc-attacked'
/** Requests that are under way at once, and those between two looks at what changed. */
const CLIENTS = 8
const BATCH = 64
/** It does what it says, and then another daemon is asked; its own proof kills all that take part. */
const RESTART = '/api/settings/actions/restart'
/** Refusals that a state of the daemon explains; each has a code that says so. */
const DOCUMENTED = new Set([503, 507])

export const attack: Attack = {
  name: 'routes',
  holds: 'no request makes a route fail, hang or change anything that it refuses',
  size: { ci: 1500, full: 30_000, unit: 'requests' },
  run,
}

async function run({ seed, cases, say }: AttackRun): Promise<readonly string[]> {
  const at = new Installed()
  const wrong: string[] = []
  rmSync(ATTACKED, { force: true })
  try {
    const world = await begin(at)
    const chosen = plan(world, seed, cases)
    const statuses = new Map<string, number>()
    let state = await stateOf(at, world)
    for (let from = 0; from < chosen.length; from += BATCH) {
      const batch = chosen.slice(from, from + BATCH)
      let accepted = false
      const strikes = batch.entries()
      await Promise.all(
        Array.from({ length: CLIENTS }, async () => {
          for (const [, { variant, target }] of strikes) {
            const came = await exchange(world.where[target.door], variant.make(target))
            const what = came.kind === 'reply' ? String(came.status) : came.kind
            statuses.set(what, (statuses.get(what) ?? 0) + 1)
            if (came.kind === 'reply' && came.status < 300 && target.operation.method !== 'GET') accepted = true
            const fault = faultOf(came, variant, target)
            const { method, path: route } = target.operation
            if (fault) wrong.push(`${target.door} ${method} ${route}, ${variant.name}: ${fault}`)
          }
        }),
      )
      // A drain that was let in would make every later refusal mean nothing.
      await at.request('socket', 'POST', '/api/undrain')
      const { pid } = await identityOf(at)
      if (pid !== world.pid) return [...wrong, `the daemon ${world.pid} is gone, now it is ${pid}`]
      const now = await stateOf(at, world)
      if (!accepted && now !== state) {
        const names = new Set(batch.map(({ target }) => `${target.operation.method} ${target.operation.path}`))
        wrong.push(`requests that were refused changed something; one of ${[...names].join(', ')}`)
      }
      state = now
    }
    if (existsSync(ATTACKED)) wrong.push(`a shell ran what a request carried: ${ATTACKED} is there`)
    say(
      [...statuses]
        .sort()
        .map(([what, count]) => `${what}: ${count}`)
        .join(', '),
    )
    return wrong
  } finally {
    await at.remove()
  }
}

/** The route that a browser is led to at the end of a login. */
const LOGIN = '/api/mcp/oauth/callback'

interface World extends Furnished {
  readonly where: Readonly<Record<Door, { path: string } | { host: string; port: number }>>
  readonly routes: Routes
  readonly known: Readonly<Record<string, string>>
}

async function begin(at: Installed): Promise<World> {
  const scene = await furnish(at)
  const { workspace, session, port } = scene
  const { text } = await at.request('socket', 'GET', '/api/openapi.json')
  return {
    ...scene,
    where: { socket: { path: path.join(at.home, 'daemon.sock') }, tcp: { host: '127.0.0.1', port } },
    routes: new Routes(JSON.parse(text)),
    known: { workspace_id: workspace, id: workspace, session_id: session, name: 'scripted', kind: 'agent' },
  }
}

/** Every route by every variant through both doors, in an order of chance, as often as is needed. */
function plan(
  { routes, known, port, token }: World,
  seed: number,
  cases: number,
): { variant: Variant; target: Target }[] {
  const pairs = routes.operations
    .filter(({ path }) => path !== RESTART)
    .flatMap(operation => variants.map(variant => ({ operation, variant })))
  const order = chance(seed, 'order')
  for (let at = pairs.length - 1; at > 0; at--) {
    const other = order.int(at + 1)
    ;[pairs[at], pairs[other]] = [pairs[other] as (typeof pairs)[0], pairs[at] as (typeof pairs)[0]]
  }
  return Array.from({ length: cases }, (_, n) => {
    const { operation, variant } = pairs[n % pairs.length] as (typeof pairs)[0]
    const door: Door = order.int(2) === 0 ? 'socket' : 'tcp'
    return { variant, target: { door, port, token, operation, routes, known, chance: chance(seed, n) } }
  })
}

/** What is wrong with what came, if anything. */
function faultOf(came: Came, { refused, bodied, name }: Variant, { door, operation }: Target): string | undefined {
  if (came.kind === 'hangs') return 'no answer'
  // A client that hangs up gets no answer. One that sends a body which is not read may lose the answer to the reset of the
  // connection: routes without a body reply before it has arrived.
  if (came.kind === 'closed') {
    const isLost = /body|member|chunks/.test(name) && /EPIPE|ECONNRESET/.test(came.why)
    return isLost || /cut off|slowly|over every limit/.test(name) ? undefined : `closed without an answer: ${came.why}`
  }
  const { status, json, text } = came
  if (status >= 500 && !DOCUMENTED.has(status)) return `${status} ${text}`
  if (refused?.includes(door) && status < 400 && !(bodied && operation.method === 'GET')) return `let in with ${status}`
  if (status < 400) return undefined
  // A person looks at the answer to a login, in a browser.
  if (operation.path === LOGIN && text.startsWith('<!doctype html>')) return undefined
  const body = (json ?? {}) as { error?: unknown; code?: unknown; validation_status?: unknown; diagnostics?: unknown }
  // What checks a file answers 422 with its findings.
  if (status === 422 && body.validation_status === 'invalid' && /\/(?:soul|heartbeat)(?:\/|$)/.test(operation.path))
    return Array.isArray(body.diagnostics) ? undefined : `422 without findings: ${text}`
  // A wake that is not sent is answered with why.
  if (status === 409 && operation.path.endsWith('/heartbeat/wake') && 'decision' in body) return undefined
  // Clients of OpenAI look for both in one object, as those of tools do; before the route is known there is no other form.
  const inObject = /^\/api\/(?:openai\/v1\/models$|tool)|\/tool(?:s|-artifacts)(?:\/|$)/.test(operation.path)
  const said = inObject && typeof body.error === 'object' ? Object(body.error) : undefined
  const [error, code] = said ? [said.message, said.code] : [body.error, body.code]
  if (typeof error !== 'string' || typeof code !== 'string' || !/^(?:[a-z][a-z0-9_]*|AUTONOMY(?:_[A-Z]+)+)$/.test(code))
    return `${status} without error and code: ${text}`
  return undefined
}

async function identityOf(at: Installed): Promise<{ pid: number }> {
  return JSON.parse((await at.request('socket', 'GET', '/api/status/identity')).text).daemon
}
