import * as v from 'valibot'
import { ConfigOptions, type SessionResult } from '../acp/schemas.js'
import type { AgentOptions, Choice } from './options.js'

/** What one agent process lets its client choose. */
export class AgentChoices {
  /** As they are now. */
  options: AgentOptions = { models: undefined, config: [] }
  /** As they were when the session was opened. */
  began: AgentOptions = this.options

  opened({ models, configOptions }: Partial<v.InferOutput<typeof SessionResult>>): void {
    this.options = { models, config: configOptions ?? [] }
    this.began = this.options
  }

  /** The agent took a choice; options that it answers with are all of them. */
  took({ params }: Choice, answer: unknown): void {
    const { models } = this.options
    if ('modelId' in params && models)
      this.options = { ...this.options, models: { ...models, current: params.modelId } }
    this.note({ update: answer })
  }

  /** Takes the parameters of a `session/update` that may tell of options. */
  note(params: unknown): void {
    const { update } = Object(params) as { update?: { configOptions?: unknown } }
    if (!update?.configOptions) return
    const parsed = v.safeParse(ConfigOptions, update)
    if (parsed.success) this.options = { ...this.options, config: parsed.output.configOptions ?? [] }
  }
}
