import { mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { createKernel, type Kernel } from '../kernel/index.js'
import { maybe, type PluginKernel } from '../kernel/plugin.js'
import { Extensions, type ExtensionsApi, ProvisionOwners, readManifest } from '../plugins/delivery/extensions/api.js'
import { formerNames, inTree, replacements } from '../plugins/index.js'
import { Configuration, type ConfigurationApi } from '../plugins/platform/configuration/api.js'
import type { Extension, ExtensionReply } from '../schemas/extensions.js'
import { EventReader, type StreamOptions } from './stream.js'
import { WaitingTime } from './time.js'
import { probe } from './traces.js'

/** Milliseconds for an extension to run; far more than needed, because the machine may be busy. */
const START_MS = 60_000

export interface StartOptions {
  /** Folders of further extensions to install, such as required ones; `startExtension` resolves when they run. */
  readonly with?: readonly string[]
  /**
   * Content of `config.json`, as text or as a value. In a value `plugins.replace` defaults to the extensions that replace a plugin.
   */
  readonly config?: string | Readonly<Record<string, unknown>>
  /** Environment variables of the daemon in addition to PATH. */
  readonly env?: Readonly<Record<string, string>>
}

/** A reply; its body is parsed from JSON if possible, else text. */
export interface Reply {
  readonly status: number
  readonly headers: Readonly<Record<string, unknown>>
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of any shape
  readonly body: any
}

/** An extension in a kernel of its own with all plugins of the package, on a temporary home, under a virtual clock. */
export class StartedExtension {
  readonly time = new WaitingTime()
  readonly #probe = probe({ extensions: maybe(Extensions), configuration: maybe(Configuration) })
  readonly #streams = new Set<EventReader>()

  private constructor(
    readonly name: string,
    readonly home: string,
  ) {}

  #kernel: Kernel | undefined

  static start(folder: string, options: StartOptions = {}): Promise<StartedExtension> {
    return StartedExtension.#on([...(options.with ?? []), folder], options)
  }

  /** Only the plugins of the package, for comparisons. */
  static plain(): Promise<StartedExtension> {
    return StartedExtension.#on([], {})
  }

  static async #on(folders: readonly string[], options: StartOptions): Promise<StartedExtension> {
    const manifests = await Promise.all(folders.map(each => readManifest(each)))
    const names = manifests.map(({ name }) => name)
    const replacing = manifests.filter(({ replaces }) => replaces !== undefined).map(({ name }) => name)
    const home = await realpath(await mkdtemp(path.join(os.tmpdir(), 'svc-extension-home-')))
    const started = new StartedExtension(names.at(-1) ?? '', home)
    try {
      await mkdir(path.join(home, 'extensions'))
      for (const [at, each] of folders.entries())
        await symlink(path.resolve(each), path.join(home, 'extensions', names[at] as string), 'dir')
      await writeFile(path.join(home, 'config.json'), configText(options.config, replacing))
      // The kernel runs once without the extension, so that the replaced plugin's tables exist, as in a user's home.
      if (replacing.length > 0)
        await createKernel({ home, plugins: inTree.filter(({ name: one }) => one !== 'extensions') }).then(kernel =>
          kernel.close(),
        )
      await started.#start(options)
      for (const name of names) await started.untilRunning(name)
      return started
    } catch (error) {
      await started.close().catch(() => {})
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
        formerNames,
        replacements,
        listen: ['socket'],
        clock: time.clock,
        checkReplies: true,
        env: { PATH: process.env.PATH, HOME: home, SVC_HOME: home, ...env },
        log: () => {},
      }),
    )
  }

  get kernel(): Kernel {
    if (!this.#kernel) throw new Error(`the kernel of ${this.name} does not run`)
    return this.#kernel
  }

  /** The kernel as plugins see it. */
  get inside(): PluginKernel {
    return this.#probe.kernel()
  }

  get extensions(): ExtensionsApi {
    const { current } = this.#probe.kernel().needs.extensions
    if (!current) throw new Error('the plugin extensions does not run')
    return current
  }

  /** Explains and writes the settings of its kernel. */
  get configuration(): ConfigurationApi {
    const { current } = this.#probe.kernel().needs.configuration
    if (!current) throw new Error('the plugin configuration does not run')
    return current
  }

  /** A request as the operator on the Unix socket. Several may run concurrently. */
  readonly request = (method: string, url: string, body?: unknown): Promise<Reply> =>
    this.time.during(
      this.kernel
        .inject({ method, url, ...(body === undefined ? {} : { body }) })
        .then(({ status, headers, body: text }) => ({ status, headers, body: parsed(text) })),
    )

  /** Opens a stream of server-sent events; it is closed with the extension. @throws Error with status and body */
  readonly stream = async (url: string, options: StreamOptions = {}): Promise<EventReader> => {
    const socket = this.inside.home.socket
    const reader = await EventReader.open({ socket }, url, options, work => this.time.during(work))
    this.#streams.add(reader)
    return reader
  }

  /** The extension as `svc extension info` shows it. */
  async info(name = this.name): Promise<Extension> {
    const { status, body } = await this.request('GET', `/api/extensions/${name}`)
    if (status !== 200) throw new Error(`${name}: ${body.error}`)
    return (body as ExtensionReply).extension
  }

  /** Calls a service method of its process, such as `tools/call`. */
  call(method: string, params: object): Promise<unknown> {
    return this.time.during(this.extensions.call(this.name, method, params))
  }

  /**
   * Waits until this extension, or a companion, runs completely. A process that nothing needs yet may be absent, such as that of a
   * bridge adapter without a bridge. @throws Error with the reason when it does not run
   */
  async untilRunning(name = this.name): Promise<Extension> {
    const end = performance.now() + START_MS
    for (;;) {
      const { status, body } = await this.request('GET', `/api/extensions/${name}`)
      const found = status === 200 ? (body as ExtensionReply).extension : undefined
      if (found?.state === 'active' || (found?.state === 'registered' && this.#isIdle(name))) return found
      if (found?.state === 'error' || performance.now() > end) {
        throw new Error(`${name} does not run: ${found?.last_error ?? found?.health_message ?? 'it is not found'}`)
      }
      await this.time.during(new Promise(resolve => setTimeout(resolve, 10)))
    }
  }

  #isIdle(name: string): boolean {
    const installed = this.extensions.installed().find(one => one.name === name)
    const provides = installed?.manifest.capabilities.provides ?? []
    const owners = this.inside.collect(ProvisionOwners).map(({ entry }) => entry)
    const isIdle = (one: string) =>
      owners.some(({ provision, isNeeded }) => provision === one && installed && isNeeded?.(installed) === false)
    return installed?.state === 'registered' && provides.length > 0 && provides.every(isIdle)
  }

  async close(): Promise<void> {
    for (const stream of this.#streams) stream.close()
    const errors = this.#kernel ? await this.time.during(this.#kernel.close()) : []
    this.#kernel = undefined
    await rm(this.home, { recursive: true, force: true })
    if (errors.length > 0) throw new AggregateError(errors, errors.map(({ message }) => message).join('; '))
  }
}

function configText(config: StartOptions['config'], replacing: readonly string[]): string {
  if (typeof config === 'string') return config
  const plugins = { replace: replacing, ...(config?.plugins as object | undefined) }
  return JSON.stringify(replacing.length === 0 ? (config ?? {}) : { ...config, plugins })
}

/** Text that is not JSON stays text. */
function parsed(text: string): unknown {
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
