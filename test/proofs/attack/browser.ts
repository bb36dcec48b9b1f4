import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, chromium, type Frame } from 'playwright-core'
import { Installed } from '../../e2e/installed.js'
import type { Attack, AttackRun } from './attack.js'
import { credulous, harmful, serve } from './browser/sites.js'
import { furnish, stateOf } from './world.js'

const SIGN_IN = fileURLToPath(new URL('../../../examples/extensions/acme.sign-in', import.meta.url))

export const attack: Attack = {
  name: 'browser',
  holds: 'no page of another site, in a real browser, reads or changes anything',
  size: { ci: 1, full: 10, unit: 'rounds' },
  run,
}

/** Where on the server the tricks aim. */
interface Aims {
  readonly read: string
  readonly write: string
  readonly drain: string
  readonly remove: string
  readonly stream: string
  readonly socket: string
  /** What `write` is asked to register. */
  readonly path: string
}

/** What is attacked, on a port that another site had before. */
interface Victim {
  start(port: number): Promise<Aims>
  /** All that a request could change, as text. */
  state(): Promise<string>
  stop(): Promise<void>
}

/** One trick of one page, and what it came to. */
interface Outcome {
  readonly page: string
  readonly trick: string
  /** Requests that were served, and what the page got. */
  readonly letIn: readonly string[]
}

async function run({ cases, say }: AttackRun): Promise<readonly string[]> {
  const browser = await launch()
  const wrong: string[] = []
  try {
    const control = await strike(browser, gullible())
    const harmless = [...new Set(control.outcomes.map(({ trick }) => trick))].filter(
      trick => !control.outcomes.some(outcome => outcome.trick === trick && outcome.letIn.length > 0),
    )
    wrong.push(...harmless.map(trick => `the trick "${trick}" does no harm to a server that believes everybody`))
    const harm = control.outcomes.filter(({ letIn }) => letIn.length > 0).length
    say(`${harm} of ${control.outcomes.length} attempts do harm to a server that believes everybody`)
    for (let round = 0; round < cases; round++) {
      // Where every local user is let in, nothing but the looks of a request keeps a page out.
      for (const require_token of [true, false]) {
        const { outcomes, before, after } = await strike(browser, daemon({ require_token }))
        const how = require_token ? 'that asks for a token' : 'that asks for none'
        for (const { page, trick, letIn } of outcomes)
          wrong.push(...letIn.map(what => `${page} ${trick}, daemon ${how}: ${what}`))
        if (before !== after) wrong.push(`something changed in a daemon ${how}:\n${before}\nbecame\n${after}`)
        if (round === 0) say(`${outcomes.length} attempts on a daemon ${how}`)
      }
    }
    wrong.push(...(await signIn(browser)))
    return wrong
  } finally {
    await browser.close()
  }
}

function launch(): Promise<Browser> {
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || true'])
    .toString()
    .trim()
  if (executablePath === '') throw new Error('there is no chromium on the PATH; on Debian: apt-get install chromium')
  // The sandbox of the browser itself does not start as root.
  const args = ['--no-sandbox', '--host-resolver-rules=MAP *.example 127.0.0.1']
  return chromium.launch({ executablePath, args })
}

/** Every trick from every page against one victim. */
async function strike(
  browser: Browser,
  victim: Victim,
): Promise<{ outcomes: Outcome[]; before: string; after: string }> {
  const elsewhere = await serve(harmful)
  // The name of the page leads to another server first, and to the victim afterwards: DNS rebinding as a browser sees it.
  const first = await serve(harmful)
  const { port } = first
  const context = await browser.newContext()
  try {
    const rebound = await context.newPage()
    await rebound.goto(`http://rebound.example:${port}/`)
    await first.close()
    const aims = await victim.start(port)
    const before = await victim.state()
    const outcomes: Outcome[] = []
    const served: string[] = []
    context.on('response', response => {
      const { host } = new URL(response.url())
      const method = response.request().method()
      if (host.endsWith(`:${port}`) && method !== 'OPTIONS' && response.status() < 400)
        served.push(`${method} ${new URL(response.url()).pathname} was answered with ${response.status()}`)
    })
    const names: string[] = await rebound.evaluate('Object.keys(tricks)')
    for (const trick of names) {
      const from = [
        [
          'a page whose name was bound to it afterwards',
          `http://rebound.example:${port}`,
          async () => rebound.mainFrame(),
        ],
        [
          'a page of another site',
          `http://127.0.0.1:${port}`,
          () => opened(context, `http://foreign.example:${elsewhere.port}/`),
        ],
        [
          'a page of another port',
          `http://localhost:${port}`,
          () => opened(context, `http://localhost:${elsewhere.port}/`),
        ],
        [
          'a frame without an origin',
          `http://127.0.0.1:${port}`,
          () => framed(context, `http://foreign.example:${elsewhere.port}/framed`),
        ],
      ] as const
      for (const [page, target, open] of from) {
        const already = served.length
        const frame = await open()
        const call = `tricks[${JSON.stringify(trick)}](${JSON.stringify(target)}, ${JSON.stringify(aims)}).catch(() => '')`
        const got = await frame.evaluate<string>(call)
        // What a refusal says is no secret.
        const isRefusal = /^\{"error":"[^}]*"code":"[a-z_]+"/.test(got)
        outcomes.push({
          page,
          trick,
          letIn: [...served.slice(already), ...(got === '' || isRefusal ? [] : [`got ${got.slice(0, 80)}`])],
        })
        for (const other of context.pages()) if (other !== rebound) await other.close()
      }
    }
    return { outcomes, before, after: await victim.state() }
  } finally {
    await context.close()
    await first.close()
    await elsewhere.close()
    await victim.stop()
  }
}

async function opened(context: BrowserContext, url: string): Promise<Frame> {
  const page = await context.newPage()
  await page.goto(url)
  return page.mainFrame()
}

async function framed(context: BrowserContext, url: string): Promise<Frame> {
  const page = await context.newPage()
  await page.goto(url, { waitUntil: 'load' })
  const frame = page.frames()[1]
  if (!frame) throw new Error('the page has no frame')
  return frame
}

function gullible(): Victim {
  let stop = async () => {}
  return {
    start: async port => {
      stop = (await credulous(port)).close
      return { ...AIMS, remove: '/api/workspaces/x', stream: '/api/stream', socket: '/api/socket' }
    },
    state: async () => '',
    stop: () => stop(),
  }
}

const AIMS = { read: '/api/status', write: '/api/workspaces/resolve', drain: '/api/drain', path: '/usr' }

function daemon(http: Readonly<Record<string, unknown>>): Victim {
  let at: Installed | undefined
  let look = async () => ''
  return {
    start: async port => {
      const installed = new Installed({ http: { ...http, port } })
      at = installed
      const scene = await furnish(installed)
      look = async () =>
        `${(await installed.request('socket', 'GET', '/api/status')).text.includes('"draining":true')}\n${await stateOf(installed, scene)}`
      const below = `/api/workspaces/${scene.workspace}`
      return {
        ...AIMS,
        remove: `/api/workspaces/${scene.workspace}`,
        stream: `${below}/sessions/${scene.session}/stream`,
        socket: `${below}/window-manager/stream?cursor=0&client_id=x`,
      }
    },
    state: () => look(),
    stop: async () => at?.remove(),
  }
}

/** The one thing another site may do: lead the browser to a page that says so, as at the end of a login. */
async function signIn(browser: Browser): Promise<string[]> {
  const at = new Installed()
  const elsewhere = await serve(harmful)
  const context = await browser.newContext()
  try {
    await at.svc('daemon', 'start')
    await at.svc('extension', 'install', SIGN_IN, '--allow-unverified')
    const begin = async () =>
      JSON.parse((await at.request('socket', 'POST', '/api/ext/acme.sign-in/begun')).text).state as string
    const callback = async () =>
      `http://127.0.0.1:${at.discovery.port}/api/ext/acme.sign-in/callback?code=abc&state=${await begin()}`
    const frame = await opened(context, `http://foreign.example:${elsewhere.port}/`)
    const url = JSON.stringify(await callback())
    const read = await frame.evaluate<string>(`fetch(${url}).then(reply => reply.text(), () => '')`)
    const page = frame.page()
    await Promise.all([
      page.waitForURL('**/callback**'),
      frame.evaluate(`location = ${JSON.stringify(await callback())}`),
    ])
    const shown = await page.textContent('body')
    return [
      ...(read === '' ? [] : [`a page of another site read the answer to a login: ${read}`]),
      ...(shown?.includes('You are signed in') ? [] : [`the end of a login shows ${shown}`]),
    ]
  } finally {
    await context.close()
    await elsewhere.close()
    await at.remove()
  }
}
