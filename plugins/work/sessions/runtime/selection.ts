import * as v from 'valibot'
import { command } from '../../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../../kernel/plugin.js'
import { ReasoningEffort } from '../../../../schemas/agents.js'
import { RuntimeSelection } from '../../../../schemas/sessions.js'
import { type EffectiveRuntime, offeredModels, type RuntimeWish } from '../../acp/api.js'
import { SessionErrors } from '../api.js'
import type { SessionsContext } from '../context.js'
import type { LiveSession } from '../lifecycle/live-session.js'
import type { K } from '../needs.js'
import type { SessionRow } from '../table.js'

const MAX_MODEL = 200

/** The runtime chosen for later prompts; undefined for none. */
export function selectionOf({ selection }: Pick<SessionRow, 'selection'>): RuntimeSelection | undefined {
  return selection === null ? undefined : v.parse(RuntimeSelection, JSON.parse(selection))
}

/** The runtime that the agent reported; undefined before its first start. */
export function effectiveOf({ effective }: Pick<SessionRow, 'effective'>): EffectiveRuntime | undefined {
  return effective === null ? undefined : (JSON.parse(effective) as EffectiveRuntime)
}

/** The provider of the last started process; a later choice may differ. */
export const providerOf = (row: Pick<SessionRow, 'provider' | 'effective'>): string =>
  effectiveOf(row)?.provider ?? row.provider

/** The chosen provider, if it differs from the original one of the session. */
export function otherProviderOf(row: Pick<SessionRow, 'provider' | 'selection'>): string | undefined {
  const chosen = selectionOf(row)?.provider
  return chosen === row.provider ? undefined : chosen
}

/** The original model of the session, which is valid only for its original provider. */
export const ownModelOf = (row: Pick<SessionRow, 'provider' | 'selection' | 'model'>): string =>
  otherProviderOf(row) === undefined ? (row.model ?? '') : ''

/** An effort on the wire; agent-specific names are not part of the contract. */
export function effortToWire(effort: string | undefined): { readonly reasoning_effort?: ReasoningEffort } {
  return v.is(ReasoningEffort, effort) ? { reasoning_effort: effort } : {}
}

/** The wanted runtime: that of the turn, else the choice, else the original values. */
export function wishOf(row: SessionRow, ofTurn?: RuntimeSelection | null): RuntimeWish {
  const chosen = ofTurn ?? selectionOf(row)
  const model = chosen?.model ?? ownModelOf(row)
  // Effort names are specific to a provider.
  const own = otherProviderOf(row) === undefined ? row.reasoning_effort : undefined
  return {
    ...(model && { model }),
    effort: chosen?.reasoning_effort ?? own ?? undefined,
    speed: chosen?.speed ?? row.speed ?? undefined,
  }
}

/**
 * Refuses a model that the operator hid, regardless of who requests it.
 * @throws Fault `model_hidden` (422), or the result of `fault`
 */
export function checkNotHidden(
  { needs }: Pick<K, 'needs'>,
  provider: string,
  model: string,
  fault: typeof SessionErrors.model_hidden | typeof SessionErrors.runtime_invalid = SessionErrors.model_hidden,
): void {
  const found = needs.providers.get(provider)?.curated?.find(({ id }) => id === model)
  if (!found?.hidden) return
  const next = command('provider models set', provider, model, '--no-hidden')
  throw fault(`the model ${model} of ${provider} is hidden`, { next })
}

/**
 * Refuses another provider for an agent definition with its own command, and a provider that cannot be started here.
 * @throws Fault `provider_fixed`, `runtime_invalid` (400)
 */
export async function checkProvider(
  { kernel }: Pick<SessionsContext, 'kernel'>,
  row: SessionRow,
  provider: string,
): Promise<void> {
  if (provider === providerOf(row)) return
  const { agents, workspaces } = kernel.needs
  const workspace = workspaces.get(row.workspace_id)
  const { command } = await agents.find(row.agent_name, workspace)
  if (command !== undefined) {
    throw SessionErrors.provider_fixed(
      `the agent ${row.agent_name} has a command of its own, which ${row.provider} runs`,
    )
  }
  await agents.plan(row.agent_name, workspace, provider).catch(error => {
    throw SessionErrors.runtime_invalid(`${provider} cannot be started: ${messageOf(error)}`)
  })
}

/**
 * Refuses values that a running agent does not offer. Without a running agent they are checked at its start.
 * @param ofTurn for one turn, for which no other provider is started
 * @throws Fault `provider_fixed`, `runtime_invalid` (400)
 */
export function checkSelection(
  { kernel }: Pick<SessionsContext, 'kernel'>,
  row: SessionRow,
  runtime: RuntimeSelection,
  live: LiveSession | undefined,
  ofTurn: boolean,
): void {
  const isOther = runtime.provider !== providerOf(row)
  if (isOther && ofTurn) {
    const next = 'choose it for later prompts: svc session runtime <id> --provider <name>'
    throw SessionErrors.provider_fixed(`session ${row.id} runs with ${providerOf(row)}`, { next })
  }
  const { model } = runtime
  if (model === undefined) return
  if (model.trim() === '' || model.length > MAX_MODEL) {
    throw SessionErrors.runtime_invalid(`model is 1 to ${MAX_MODEL} characters`)
  }
  checkNotHidden(kernel, runtime.provider, model, SessionErrors.runtime_invalid)
  if (isOther) return
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
 * Stores the runtime of later prompts; undefined removes it.
 * @param expected the revision known to the caller; null: any
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
