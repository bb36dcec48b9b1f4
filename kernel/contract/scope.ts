export type Release = () => unknown

/** What must be released when its plugin goes: an abort signal and a labelled stack, released in reverse. */
export interface Scope {
  readonly owner: string
  /** Aborted as the first step of the release. */
  readonly signal: AbortSignal
  /**
   * Hangs a release on the scope; returns a function that runs it early. Throws when the scope is released already.
   * @param deadlineMs how long the release may take until the next one begins; default 5 s
   */
  defer(label: string, release: Release, deadlineMs?: number): () => Promise<void>
  /** Labels of what is held now, oldest first. */
  held(): string[]
}
