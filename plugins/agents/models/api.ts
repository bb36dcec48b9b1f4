import { command } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, token } from '../../../kernel/plugin.js'
import type { Model } from '../../../schemas/providers.js'

/** The models that providers offer. */
export interface ModelsApi {
  /**
   * What is known of the models of a provider, or of all: hidden ones included, the curated first. Nothing is asked anew.
   * @param provider name of a provider
   */
  list(provider?: string): readonly Model[]
  /** The model that the entry of a provider names as its default. */
  defaultOf(provider: string): string | undefined
}

export const Models = token<ModelsApi>('models@1')

export const ModelErrors = defineErrors({
  model_not_found: {
    status: 422,
    message: 'no such model of this provider is known',
    next: command('provider models list'),
  },
  model_source_not_found: { status: 400, message: 'no such source of models', next: command('provider models status') },
  model_source_failed: {
    status: 503,
    message: 'no source of models could be read',
    next: command('provider models status'),
  },
})
