import type { SpeedResolution } from '../../../../schemas/sessions.js'
import {
  type AgentOptions,
  type Choice,
  currentEffort,
  currentModel,
  type RuntimeWish,
  type Way,
  wayBack,
  wayToEffort,
  wayToModel,
  wayToSpeed,
} from './options.js'

/** An agent whose runtime can be chosen. */
export interface Choosable {
  /** The current options after all choices, and the initial ones. */
  readonly choices: { readonly options: AgentOptions; readonly began: AgentOptions }
  /** Throws the agent's refusal. */
  choose(choice: Choice): Promise<void>
}

/** The runtime that an agent reports; unreported members are absent. */
export interface EffectiveRuntime {
  /** The started provider; absent in rows of earlier versions. */
  readonly provider?: string
  readonly model?: string
  readonly reasoning_effort?: string
  readonly speed?: 'normal' | 'fast'
  readonly speed_resolution?: SpeedResolution
  /** Unfulfilled wishes, in words for a person. */
  readonly unmet: readonly string[]
}

/** Sets the wanted runtime as far as the agent offers it. Never throws for a refusal of the agent. */
export async function chooseRuntime(agent: Choosable, wish: RuntimeWish): Promise<EffectiveRuntime> {
  const unmet: string[] = []
  const go = async (what: string, way: Way) => {
    if (way.way === 'met') return
    const why = way.way === 'none' ? way.why : await agent.choose(way.choice).then(() => undefined, String)
    if (why !== undefined) unmet.push(`${what}: ${why}`)
  }
  const began = currentModel(agent.choices.began)
  const { options } = agent.choices
  if (wish.model !== undefined) await go(`model ${wish.model}`, wayToModel(options, wish.model, wish.effort))
  else if (began !== undefined) await go(`model ${began}`, wayBack(options, began))
  // The available efforts may depend on the model.
  const effort = wish.effort ?? currentEffort(agent.choices.began)
  const way = effort === undefined ? undefined : wayToEffort(agent.choices.options, effort)
  // The initial effort was not chosen by a person, so a model without it is no conflict.
  if (way && (wish.effort !== undefined || way.way !== 'none')) await go(`effort ${effort}`, way)
  const resolution = wish.speed && (await chooseSpeed(agent, wish.speed))
  const model = currentModel(agent.choices.options)
  const toldEffort = currentEffort(agent.choices.options)
  return {
    ...(model !== undefined && { model }),
    ...(toldEffort !== undefined && { reasoning_effort: toldEffort }),
    ...(wish.speed && resolution && { speed: wish.speed, speed_resolution: resolution }),
    unmet,
  }
}

async function chooseSpeed(agent: Choosable, requested: 'normal' | 'fast'): Promise<SpeedResolution> {
  const way = wayToSpeed(agent.choices.options, requested)
  switch (way.way) {
    case 'met':
      return { requested, status: 'applied' }
    case 'ask':
      return agent.choose(way.choice).then(
        () => ({ requested, status: 'applied' as const }),
        () => ({ requested, status: 'rejected' as const, reason: 'provider_rejected' as const }),
      )
    case 'reason':
      return speedWithout(requested, way.reason)
    case 'none':
      return speedWithout(requested, 'capability_absent')
  }
}

/** The resolution without a speed choice: the agent works at normal speed. */
export function speedWithout(
  requested: 'normal' | 'fast',
  reason: NonNullable<SpeedResolution['reason']> = 'capability_absent',
): SpeedResolution {
  return { requested, status: requested === 'normal' ? 'applied' : 'unsupported', reason }
}
