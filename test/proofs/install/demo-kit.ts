import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createKernel, type Kernel } from '../../../kernel/index.js'
import type { Plugin, PluginKernel } from '../../../kernel/plugin.js'
import {
  base,
  daemon,
  extensions,
  installer,
  resources,
  skills,
  subprocessHost,
  workspaces,
} from '../../../plugins/index.js'

/** An extension with everything that can be half: code with a table and a route, a record, a process, a binding. */
export const NAME = 'demo.kit'
export type Version = '1.0.0' | '2.0.0'

/** Writes the files of a version; its process notes its pid in `pids`, a line each. */
export function writeKit(root: string, version: Version, pids: string): void {
  const texts = {
    'extension.toml': `name = "${NAME}"
version = "${version}"
apiVersion = 1
main = "main.js"
requires_env = ["DEMO_TOKEN"]
[resources]
skills = ["skills"]
[subprocess]
command = "node"
args = ["process.mjs"]
`,
    'skills/brief/SKILL.md': `---\nname: brief\ndescription: of ${version}\nversion: ${version}\n---\nSteps.\n`,
    'main.js': `const surface = {
  tables: [{ id: '001-note', sql: 'CREATE TABLE demo_kit_note (version TEXT NOT NULL) STRICT' }],
  routes: [{
    method: 'GET', path: '/api/ext/${NAME}/${version}', area: 'Demo', summary: 'Is there', replies: { 204: null },
    handle: () => ({ status: 204 }),
  }],
}
export default {
  name: '${NAME}', version: '${version}', requires: {}, surface,
  async apply(kernel) {
    await kernel.db.tx(t => t.run('INSERT INTO demo_kit_note VALUES (?)', ['${version}']))
  },
}
`,
    'process.mjs': `import { appendFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
appendFileSync(${JSON.stringify(pids)}, process.pid + '\\n')
const replies = {
  initialize: ({ extension: { name, version } }) => ({
    protocol_version: '1', extension_info: { name, version }, accepted_capabilities: { provides: [], permissions: [] },
    implemented_methods: ['health_check', 'shutdown'], supports: { health_check: true },
  }),
  health_check: () => ({ healthy: true }),
  shutdown: () => (setImmediate(() => process.exit(0)), { acknowledged: true }),
}
createInterface({ input: process.stdin }).on('line', line => {
  const { id, method, params } = JSON.parse(line)
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result: replies[method](params) }) + '\\n')
})
`,
  }
  // In one turn: a kill at what the daemon does meanwhile would leave a folder of two versions, which is nobody's fault.
  for (const [name, text] of Object.entries(texts)) {
    mkdirSync(path.dirname(path.join(root, name)), { recursive: true })
    writeFileSync(path.join(root, name), text)
  }
}

/** A daemon that has what the extension needs. */
export class Daemon {
  private constructor(
    private readonly kernel: Kernel,
    /** Of the plugin that runs extensions. */
    readonly db: PluginKernel['db'],
  ) {}

  /** @param handed what the plugins that install and run extensions get in the place of their kernels */
  static async start(home: string, handed = (kernel: PluginKernel): PluginKernel => kernel): Promise<Daemon> {
    let db: PluginKernel['db'] | undefined
    const applied =
      (plugin: Plugin): Plugin['apply'] =>
      kernel => {
        db = kernel.db
        return plugin.apply(handed(kernel))
      }
    const kernel = await createKernel({
      home,
      plugins: [
        ...base,
        daemon,
        resources,
        workspaces,
        skills,
        Object.create(subprocessHost, Object.getOwnPropertyDescriptors({ apply: applied(subprocessHost) })),
        Object.create(installer, Object.getOwnPropertyDescriptors({ apply: applied(installer) })),
        Object.create(extensions, Object.getOwnPropertyDescriptors({ apply: applied(extensions) })),
      ],
      listen: [],
      env: { PATH: process.env.PATH },
      log: () => {},
    })
    if (!db) throw new Error(JSON.stringify(kernel.host.plugins()))
    return new Daemon(kernel, db)
  }

  // biome-ignore lint/suspicious/noExplicitAny: replies of any shape
  async request(method: string, url: string, body?: unknown): Promise<{ status: number; body: any }> {
    const reply = await this.kernel.inject({ method, url, ...(body === undefined ? {} : { body }) })
    return { status: reply.status, body: reply.body === '' ? undefined : JSON.parse(reply.body) }
  }

  /** What the extension is to whoever asks: `2.0.0` says which runs, with a process. */
  async state(): Promise<'absent' | 'disabled' | Version | undefined> {
    const { status, body } = await this.request('GET', `/api/extensions/${NAME}`)
    if (status === 404) return 'absent'
    const { state, pid, version, last_error } = body.extension
    if (state === 'disabled') return 'disabled'
    return state === 'active' && pid !== undefined && last_error === undefined ? version : undefined
  }

  /** Waits until that is so, at most 20 s. */
  async until(what: string, holds: () => Promise<boolean>): Promise<void> {
    const end = performance.now() + 20_000
    while (!(await holds())) {
      if (performance.now() > end) throw new Error(`never: ${what}`)
      await new Promise(resolve => setTimeout(resolve, 5))
    }
  }

  close(): Promise<readonly Error[]> {
    return this.kernel.close()
  }
}
