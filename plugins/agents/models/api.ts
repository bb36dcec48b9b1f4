import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, token } from '../../../kernel/plugin.js'
import type { Model } from '../../../schemas/providers.js'

/** The models of providers. */
export interface ModelsApi {
  /**
   * All known models of a provider, or of all providers, with hidden ones, curated ones first. Reads no source.
   */
  list(provider?: string): readonly Model[]
  /** The default model in a provider's configuration entry. */
  defaultOf(provider: string): string | undefined
}

export const Models = token<ModelsApi>('models@1')

export const ModelErrors = defineErrors({
  model_not_found: {
    status: 422,
    message: 'no such model of this provider',
    next: command('provider models list'),
  },
  model_source_not_found: { status: 400, message: 'no such source of models', next: command('provider models status') },
  model_source_failed: {
    status: 503,
    message: 'no model source could be read',
    next: command('provider models status'),
  },
})
