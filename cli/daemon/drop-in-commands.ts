import { version } from '../../kernel/index.js'
import {
  definePlugin,
  Faults,
  messageOf,
  type Plugin,
  type PluginKernel,
  type Setting,
  surfaceOf,
} from '../../kernel/plugin.js'
import { Extensions, type InstalledExtension } from '../../plugins/delivery/extensions/api.js'
import { Files } from '../../plugins/platform/files/api.js'
import type { CommandData, ModuleCommand, RouteCommand } from '../commands/command-data.js'
import { SETTINGS_CACHE } from '../schema/settings-cache.js'

const { tap } = surfaceOf<DropInCommands>()

/** Name of the plugin, which belongs to the daemon program and not to the embeddable kernel. */
const NAME = 'commands'

type Needs = { readonly report: typeof Faults; readonly file: typeof Files; readonly extensions: typeof Extensions }

/** Caches the commands of drop-ins, so that the CLI needs no daemon to know them. */
class DropInCommands {
  #written = ''
  #settings = ''
  readonly #reported = new Set<string>()

  constructor(private readonly kernel: PluginKernel<Needs>) {}

  async write(): Promise<void> {
    // While extensions load after a start, the complete commands of the last run are better than partial ones.
    if (this.kernel.needs.extensions.isLoading()) return
    await this.#writeSettings()
    const text = `${JSON.stringify(await this.#data())}\n`
    if (text === this.#written) return
    await this.kernel.needs.file('cache', 'commands.json').write(text)
    this.#written = text
  }

  /** Caches the settings for the config.json schema used by editors. */
  async #writeSettings(): Promise<void> {
    const settings = this.kernel.needs.extensions.installed().flatMap(({ code }) => code?.surface.settings ?? [])
    const file = this.kernel.needs.file('cache', SETTINGS_CACHE)
    if (settings.length === 0 && (await file.read()) === undefined) return
    const { settingSchema } = await import('../schema/config-schema.js')
    const text = `${JSON.stringify((settings as Setting[]).map(settingSchema))}\n`
    if (text === this.#settings) return
    await file.write(text)
    this.#settings = text
  }

  async #data(): Promise<CommandData> {
    const active = this.kernel.needs.extensions.installed().filter(({ state, code }) => code && state === 'active')
    const routes = (await Promise.all(active.map(extension => this.#routes(extension)))).flat()
    return { version, routes, commands: active.flatMap(moduleCommands) }
  }

  /** A route whose command is invalid gets none, but is still served; the error is reported for its extension. */
  async #routes({ name, code }: InstalledExtension): Promise<RouteCommand[]> {
    const { describeRoutes } = await import('../commands/describe-commands.js')
    return (code?.surface.routes ?? []).flatMap(route => {
      try {
        return describeRoutes([route])
      } catch (error) {
        const text = messageOf(error)
        if (!this.#reported.has(`${name} ${text}`)) this.kernel.needs.report(name, 'commands', error)
        this.#reported.add(`${name} ${text}`)
        return []
      }
    })
  }
}

function moduleCommands({ code }: InstalledExtension): ModuleCommand[] {
  return (code?.surface.commands ?? []).map(({ path, summary, args = [], options = [], local }) => {
    return { kind: 'module', path, summary, args, options, ...(local && { local }), module: code?.module ?? '' }
  })
}

export const dropInCommands: Plugin = definePlugin({
  name: NAME,
  version,
  requires: { report: Faults, file: Files, extensions: Extensions },
  service: async () => DropInCommands,
}).surface({
  taps: [
    tap(
      Extensions,
      extensions => extensions.changed,
      service => () => service.write(),
    ),
  ],
})
