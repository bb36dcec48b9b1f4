import type { Scope } from './scope.js'

/** Who taps. Taps run by depth, then by owner, then in order of registration, whatever was loaded when. */
export interface Tapper {
  readonly owner: string
  /** Longest chain of plugins that the owner requires: 0 for one that requires none. */
  readonly depth: number
  readonly scope: Scope
}

/** The side of a hook that others see: it can be tapped, not called. */
export interface Hook<F> {
  readonly name: string
  tap(tapper: Tapper, fn: F): void
}

/** Told of every tap that failed: whose, on which hook, how. */
export type Report = (fault: { owner: string; hook: string; error: unknown }) => void

/** One entry of a registry with the plugin that contributed it. */
export interface Contribution<T> {
  readonly owner: string
  readonly entry: T
}
