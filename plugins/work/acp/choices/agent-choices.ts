import * as v from 'valibot'
import { ConfigOptions, type SessionResult } from '../protocol/schemas.js'
import type { AgentOptions, Choice } from './options.js'

/** The choices that one agent process offers. */
export class AgentChoices {
  /** The current values. */
  options: AgentOptions = { models: undefined, config: [] }
  /** The values when the session was opened. */
  began: AgentOptions = this.options

  opened({ models, configOptions }: Partial<v.InferOutput<typeof SessionResult>>): void {
    this.options = { models, config: configOptions ?? [] }
    this.began = this.options
  }

  /** Records a successful choice; options in the response replace all options. */
  took({ params }: Choice, answer: unknown): void {
    const { models } = this.options
    if ('modelId' in params && models)
      this.options = { ...this.options, models: { ...models, current: params.modelId } }
    this.note({ update: answer })
  }

  /** Processes a `session/update` that may contain options. */
  note(params: unknown): void {
    const { update } = Object(params) as { update?: { configOptions?: unknown } }
    if (!update?.configOptions) return
    const parsed = v.safeParse(ConfigOptions, update)
    if (parsed.success) this.options = { ...this.options, config: parsed.output.configOptions ?? [] }
  }
}
