import * as v from 'valibot'
import { ReasoningEffort } from '../../../schemas/agents.js'
import { RuntimeSelection } from '../../../schemas/sessions.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext, SessionsKernel } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { SessionRow } from '../table.js'
import type { EffectiveRuntime } from './choosing.js'
import { offeredModels, type RuntimeWish } from './options.js'

const MAX_MODEL = 200

/** The runtime that was chosen for later prompts; undefined for none. */
export function selectionOf({ selection }: Pick<SessionRow, 'selection'>): RuntimeSelection | undefined {
  return selection === null ? undefined : v.parse(RuntimeSelection, JSON.parse(selection))
}

/** What the agent said that it works with; undefined before it was started once. */
export function effectiveOf({ effective }: Pick<SessionRow, 'effective'>): EffectiveRuntime | undefined {
  return effective === null ? undefined : (JSON.parse(effective) as EffectiveRuntime)
}

/** An effort under its name on the wire; agents have names of their own, which the contract does not. */
export function effortToWire(effort: string | undefined): { readonly reasoning_effort?: ReasoningEffort } {
  return v.is(ReasoningEffort, effort) ? { reasoning_effort: effort } : {}
}

/** What a session wants of its agent: of the turn, else what was chosen, else what it began with. */
export function wishOf(row: SessionRow, ofTurn?: RuntimeSelection | null): RuntimeWish {
  const chosen = ofTurn ?? selectionOf(row)
  const model = chosen?.model ?? row.model
  return {
    ...(model && { model }),
    effort: chosen?.reasoning_effort ?? row.reasoning_effort ?? undefined,
    speed: chosen?.speed ?? row.speed ?? undefined,
  }
}

/**
 * Refuses a model that the operator hid: none is started with it, whoever names it.
 * @throws Fault `model_hidden` (422), or what `fault` makes
 */
export function checkNotHidden(
  { needs }: Pick<SessionsKernel, 'needs'>,
  provider: string,
  model: string,
  fault: typeof SessionErrors.model_hidden | typeof SessionErrors.runtime_invalid = SessionErrors.model_hidden,
): void {
  const found = needs.providers.get(provider)?.curated?.find(({ id }) => id === model)
  if (!found?.hidden) return
  const next = `svc provider models set ${provider} ${model} --no-hidden`
  throw fault(`the model ${model} of ${provider} is hidden`, { next })
}

/**
 * Refuses what an agent that runs does not offer; of one that does not run, that shows when it starts.
 * @throws Fault `provider_fixed`, `runtime_invalid` (400)
 */
export function checkSelection(
  { kernel }: Pick<SessionsContext, 'kernel'>,
  row: SessionRow,
  runtime: RuntimeSelection,
  live: LiveSession | undefined,
): void {
  if (runtime.provider !== row.provider) {
    throw SessionErrors.provider_fixed(`the agent ${row.agent_name} runs with ${row.provider}`)
  }
  const { model } = runtime
  if (model === undefined) return
  if (model.trim() === '' || model.length > MAX_MODEL) {
    throw SessionErrors.runtime_invalid(`model is 1 to ${MAX_MODEL} characters`)
  }
  checkNotHidden(kernel, row.provider, model, SessionErrors.runtime_invalid)
  const options = live?.binding.running?.agent.choices.options
  if (!options) return
  const offered = offeredModels(options)
  if (offered === undefined)
    throw SessionErrors.runtime_invalid(`the agent ${row.agent_name} offers no choice of models`)
  const names = new Set([...offered, ...(options.models?.available ?? []).map(({ name }) => name ?? '')].map(lower))
  const isOffered = names.has(lower(model)) || offered.some(id => lower(id).startsWith(`${lower(model)}/`))
  const labels = options.config.flatMap(({ values }) => values.map(({ label }) => lower(label ?? '')))
  if (!isOffered && !labels.includes(lower(model))) {
    throw SessionErrors.runtime_invalid(`the agent offers no model ${model}, only: ${offered.slice(0, 20).join(', ')}`)
  }
}

const lower = (text: string) => text.toLowerCase()

/**
 * Stores the runtime of later prompts, none for undefined.
 * @param expected the revision that the caller knows; null: whatever it is
 * @throws Fault `runtime_changed` (409)
 */
export async function storeSelection(
  { kernel, table }: SessionsContext,
  id: string,
  runtime: RuntimeSelection | undefined,
  expected: number | null,
): Promise<void> {
  await kernel.db.tx(t => {
    const row = table.get(id)
    if (!row) throw SessionErrors.session_not_found(`no session ${id}`)
    if (expected !== null && expected !== row.selection_revision) {
      throw SessionErrors.runtime_changed(`the revision is ${row.selection_revision}, not ${expected}`)
    }
    table.update(t, id, {
      selection: runtime ? JSON.stringify(runtime) : null,
      selection_revision: row.selection_revision + 1,
      updated_at: kernel.clock.now(),
    })
  })
}
