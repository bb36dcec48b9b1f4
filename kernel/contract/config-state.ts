/** What can be said of the configuration file beside its values. */
export interface ConfigState {
  /** Paths that no plugin here owns; they are kept. */
  readonly unowned: readonly string[]
  /** Paths whose value in the file takes effect with the next start. */
  readonly pending: readonly string[]
  /** Why the file as it stands changes nothing, naming line and key. */
  readonly problem?: string
}
