import type { Hook, Report } from './hook.js'
import type { Room } from './storage.js'
import type { Setting } from './surface.js'

/** The input of a settings source: the settings of the kernel and of the program's plugins. */
export interface Configuring {
  readonly known: readonly Setting[]
  readonly room: Room
  readonly report: Report
}

/** The values of settings, which their owner reads. */
export interface Config {
  /** The current value of a setting. */
  get<T>(entry: Setting<T>): T
  /** Called with later values of a live setting, while the plugin is loaded. */
  onChange<T>(entry: Setting<T>, fn: (value: T) => void): void
}

/** Changes of settings as hooks, for taps on a surface: `tap(Settings, settings => settings.of(Size), service => size => …)`. */
export interface SettingsApi {
  of<T>(entry: Setting<T>): Hook<(value: T) => void>
}

/** Provides the values of all settings for the lifetime of the kernel. An error of a tap is reported as its owner's fault. */
export interface SettingSource extends SettingsApi, Pick<Config, 'get'> {
  /** Adds the settings of a plugin that starts or restarts. @throws Fault with the reason when their values are not valid */
  adopt(plugin: string, entries: readonly Setting[]): void
  /** Removes the settings of a drop-in that leaves. */
  disown(plugin: string): void
}
