import type { Hook } from './hook.js'
import type { Setting } from './surface.js'

/** What can be said of the configuration file beside its values. */
export interface ConfigState {
  /** Paths that no plugin here owns; they are kept. */
  readonly unowned: readonly string[]
  /** Paths whose value in the file takes effect with the next start. */
  readonly pending: readonly string[]
  /** Why the file as it stands changes nothing, naming line and key. */
  readonly problem?: string
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
