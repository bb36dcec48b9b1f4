/** What one attack is told when it runs. */
export interface AttackRun {
  /** Where its random choices begin; the same seed gives the same attack. */
  readonly seed: number
  /** Cases to run; each attack says in its `size` what a case is. */
  readonly cases: number
  /** Prints one line for people. */
  readonly say: (line: string) => void
}

/** One kind of attack on a running daemon, observed through its public API. */
export interface Attack {
  readonly name: string
  /** What must hold, in one sentence. */
  readonly holds: string
  /** Cases of a run in CI and of a full one, and what a case is. */
  readonly size: { readonly ci: number; readonly full: number; readonly unit: string }
  /** One line for each case that broke; none when the daemon withstood all of them. */
  run(run: AttackRun): Promise<readonly string[]>
}
