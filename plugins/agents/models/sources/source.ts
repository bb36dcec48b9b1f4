import type { CuratedModel } from '../../../../schemas/settings/entries.js'

/** Sources of models by priority: the most reliable one is the highest. */
export const PRIORITIES = { config: 100, acp: 80, endpoint: 60, extension: 40 } as const
export type SourceKind = keyof typeof PRIORITIES

/** A model from a source, with its provider. */
export interface FoundModel {
  readonly provider: string
  readonly facts: CuratedModel
}

/** An available source of models. */
export interface ModelSource {
  /** `acp:codex`; stable over restarts. */
  readonly id: string
  readonly kind: SourceKind
  /** Empty for a source that names the provider of each model. */
  readonly provider: string
  /** Reads the models within its own limits of time and size. Throws an Error with the reason of a failure. */
  read(signal: AbortSignal): Promise<readonly FoundModel[]>
}
