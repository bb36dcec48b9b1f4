import type { CuratedModel } from '../../../../schemas/settings/entries.js'

/** Where models come from: the more a source is to be believed, the higher its priority. */
export const PRIORITIES = { config: 100, acp: 80, endpoint: 60, extension: 40 } as const
export type SourceKind = keyof typeof PRIORITIES

/** A model that a source found, and of which provider. */
export interface FoundModel {
  readonly provider: string
  readonly facts: CuratedModel
}

/** One source of models that can be read now. */
export interface ModelSource {
  /** `acp:codex`; stable over restarts. */
  readonly id: string
  readonly kind: SourceKind
  /** Empty for a source that names the provider of each model itself. */
  readonly provider: string
  /** Reads it anew, within its own limits of time and size. Throws an error that says why not. */
  read(signal: AbortSignal): Promise<readonly FoundModel[]>
}
