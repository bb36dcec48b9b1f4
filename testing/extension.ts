import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel, maybe, type PluginKernel } from '../kernel/index.js'
import { Extensions, type ExtensionsApi, readManifest } from '../plugins/extensions/api.js'
import { inTree, replacements } from '../plugins/index.js'
import type { Extension, ExtensionReply } from '../schemas/extensions.js'
import { probe } from './look.js'
import { WaitingTime } from './time.js'

/** Milliseconds that an extension has until it runs. */
const START_MS = 10_000

export interface StartOptions {
  /** Text of `config.json`. */
  readonly config?: string
  /** Variables that the daemon is started with, beside PATH. */
  readonly env?: Readonly<Record<string, string>>
}

/** A reply as it came, its body from JSON where it is JSON, else as text. */
export interface Reply {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of any shape
  readonly body: any
}

/** An extension in a kernel of its own with all plugins of the package, on a temporary home. Time passes while one waits. */
export class StartedExtension {
  readonly time = new WaitingTime()
  readonly #probe = probe({ extensions: maybe(Extensions) })

  private constructor(
    readonly name: string,
    readonly home: string,
  ) {}

  #kernel: Kernel | undefined

  static async start(folder: string, options: StartOptions = {}): Promise<StartedExtension> {
    const { name, replaces } = await readManifest(folder)
    const home = await realpath(await mkdtemp(path.join(os.tmpdir(), 'svc-extension-home-')))
    const self = new StartedExtension(name, home)
    try {
      await mkdir(path.join(home, 'extensions'))
      await symlink(path.resolve(folder), path.join(home, 'extensions', name), 'dir')
      await writeFile(
        path.join(home, 'config.json'),
        options.config ?? JSON.stringify(replaces ? { plugins: { replace: [name] } } : {}),
      )
      // As with the homes of others: the tables of the plugin that it replaces are there already.
      if (replaces)
        await createKernel({ home, plugins: inTree.filter(({ name: one }) => one !== 'extensions') }).then(kernel =>
          kernel.close(),
        )
      await self.#start(options)
      return self
    } catch (error) {
      await self.close().catch(() => {})
      throw error
    }
  }

  async #start({ env = {} }: StartOptions): Promise<void> {
    const { home, time } = this
    const plugins = [...inTree, this.#probe.plugin]
    this.#kernel = await time.during(
      createKernel({
        home,
        plugins,
        replacements,
        clock: time.clock,
        checkReplies: true,
        env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...env },
        log: () => {},
      }),
    )
    await this.untilRunning()
  }

  get kernel(): Kernel {
    if (!this.#kernel) throw new Error(`the kernel of ${this.name} does not run`)
    return this.#kernel
  }

  /** The kernel as a plugin is handed it. */
  get inside(): PluginKernel {
    return this.#probe.kernel()
  }

  get extensions(): ExtensionsApi {
    const { current } = this.#probe.kernel().needs.extensions
    if (!current) throw new Error('the plugin extensions does not run')
    return current
  }

  /** As the operator on the Unix socket. */
  readonly request = (method: string, url: string, body?: unknown): Promise<Reply> =>
    this.time.during(
      this.kernel
        .inject({ method, url, ...(body === undefined ? {} : { body }) })
        .then(({ status, headers, body: text }) => ({
          status,
          body: text === '' ? undefined : /json/.test(String(headers['content-type'])) ? JSON.parse(text) : text,
        })),
    )

  /** The extension as `svc extension info` shows it. */
  async info(): Promise<Extension> {
    const { status, body } = await this.request('GET', `/api/extensions/${this.name}`)
    if (status !== 200) throw new Error(`${this.name}: ${body.error}`)
    return (body as ExtensionReply).extension
  }

  /** Calls a service method of its process, `tools/call` say. */
  call(method: string, params: object): Promise<unknown> {
    return this.time.during(this.extensions.call(this.name, method, params))
  }

  /** Waits until all of it runs. @throws Error, saying why it does not */
  async untilRunning(): Promise<Extension> {
    const end = performance.now() + START_MS
    for (;;) {
      const { status, body } = await this.request('GET', `/api/extensions/${this.name}`)
      const found = status === 200 ? (body as ExtensionReply).extension : undefined
      if (found?.state === 'active') return found
      if (found?.state === 'error' || performance.now() > end) {
        throw new Error(`${this.name} does not run: ${found?.last_error ?? found?.health_message ?? 'it is not found'}`)
      }
      await this.time.during(new Promise(resolve => setTimeout(resolve, 10)))
    }
  }

  async close(): Promise<void> {
    const errors = this.#kernel ? await this.time.during(this.#kernel.close()) : []
    this.#kernel = undefined
    await rm(this.home, { recursive: true, force: true })
    if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('; '))
  }
}
