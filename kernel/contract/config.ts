import type { Hook } from './hook.js'
import type { Setting } from './surface.js'

/** Says what is configured, of a file for one. */
export interface SettingSource {
  /** Values by path, of those settings of which it says something. @throws Fault `config_invalid` */
  read(known: readonly Setting[]): ReadonlyMap<string, unknown>
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
