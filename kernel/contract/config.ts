import type { Hook, Report } from './hook.js'
import type { Room } from './storage.js'
import type { Setting } from './surface.js'

/** What the source of all settings is made for: the settings of the kernel and of what comes with the program. */
export interface Configuring {
  readonly known: readonly Setting[]
  readonly room: Room
  readonly report: Report
}

/** The values of settings, which their owner reads. */
export interface Config {
  /** Value in force of a setting. */
  get<T>(entry: Setting<T>): T
  /** Told of every later value that takes effect at once, while the plugin is loaded. */
  onChange<T>(entry: Setting<T>, fn: (value: T) => void): void
}

/** Changes of settings as hooks, for taps on a surface: `tap(Settings, settings => settings.of(Size), self => size => …)`. */
export interface SettingsApi {
  of<T>(entry: Setting<T>): Hook<(value: T) => void>
}

/** Says what is configured, for as long as the kernel runs. What a tap throws is its owner's fault. */
export interface SettingSource extends SettingsApi, Pick<Config, 'get'> {
  /** Takes the settings of a plugin that starts, now or again. @throws Fault that says why their values are not valid */
  adopt(plugin: string, entries: readonly Setting[]): void
  /** A drop-in leaves: its settings are nobody's. */
  disown(plugin: string): void
}
