import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core'
import { Installed } from '../../../e2e/installed.js'
import { freePort } from '../../../harness/free-port.js'

const AGENT = fileURLToPath(new URL('../../../fixtures/acp-agent.mjs', import.meta.url))

/** A browser has no service worker unless a test is about it: requests of a worker are not those of the page. */
type ContextOptions = Pick<BrowserContextOptions, 'colorScheme' | 'viewport' | 'serviceWorkers'>

/** A daemon with an agent that does what prompts say, and a browser. */
export interface Scene {
  readonly at: Installed
  readonly browser: Browser
  readonly base: string
  readonly workspace: string
  /** What pages did that they never may: dialogs, scripts of others, requests elsewhere, breaches of the policy. */
  readonly misdeeds: string[]
  /** A browser without a session. */
  context(options?: ContextOptions): Promise<BrowserContext>
  /** The URL of a new link. */
  link(): Promise<string>
  /** A page that is signed in, at a view. */
  page(context: BrowserContext, view?: string): Promise<Page>
  session(body?: object): Promise<string>
  api<T>(method: string, url: string, body?: unknown): Promise<T>
  close(): Promise<void>
}

export async function openScene(config: object = {}): Promise<Scene> {
  // A restarted daemon has the address that the browser knows.
  const port = await freePort()
  const at = new Installed({ ...config, http: { port } })
  const head = ['name: echo', 'permissions: approve-reads', `command: '${process.execPath} ${AGENT}'`]
  at.writeHome('agents/echo/AGENT.md', `---\n${head.join('\n')}\n---\nYou do what you are told.\n`)
  const root = path.join(at.folder, 'demo')
  mkdirSync(root)
  const executablePath = execFileSync('sh', ['-c', 'command -v chromium || command -v chromium-browser || true'])
  const [browser] = await Promise.all([
    chromium.launch({ executablePath: executablePath.toString().trim(), args: ['--no-sandbox'] }),
    at.svc('daemon', 'start'),
  ])
  const base = `http://localhost:${port}`
  const misdeeds: string[] = []
  const api = async <T>(method: string, url: string, body?: unknown): Promise<T> => {
    const { status, text } = await at.request('socket', method, url, body)
    if (status >= 300) throw new Error(`${method} ${url}: ${status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const { workspace } = await api<{ workspace: { id: string } }>('POST', '/api/workspaces/resolve', { path: root })
  const link = async () => (await api<{ link: { url: string } }>('POST', '/api/console/links')).link.url
  return {
    ...{ at, browser, base, misdeeds, api, link },
    workspace: workspace.id,
    async context(options = {}) {
      const context = await browser.newContext({
        ...{ viewport: { width: 1360, height: 860 }, serviceWorkers: 'block', ...options },
      })
      context.on('page', page => watch(page, base, misdeeds))
      return context
    },
    async page(context, view = 'home') {
      const page = await context.newPage()
      await page.goto(await link())
      await page.getByRole('navigation', { name: 'Views' }).waitFor()
      await page.goto(`${base}/console/#/${view}`)
      await page.getByRole('heading', { level: 1 }).waitFor()
      return page
    },
    async session(body = {}) {
      const all = { workspace: workspace.id, agent_name: 'echo', ...body }
      return (await api<{ session: { id: string } }>('POST', '/api/sessions', all)).session.id
    },
    async close() {
      await browser.close()
      await at.remove()
    },
  }
}

function watch(page: Page, base: string, misdeeds: string[]): void {
  page.on('dialog', dialog => {
    misdeeds.push(`a dialog says ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', request => {
    const url = request.url()
    if (!url.startsWith(`${base}/`) && !url.startsWith('data:')) misdeeds.push(`a request to ${url}`)
  })
  page.on('popup', popup => misdeeds.push(`a window of ${popup.url()}`))
  page.on('console', message => {
    if (/Content Security Policy/i.test(message.text())) misdeeds.push(message.text())
  })
  page.on('pageerror', error => misdeeds.push(`an error: ${error.message}`))
}
