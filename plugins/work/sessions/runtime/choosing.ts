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

/** An agent that can be given a runtime. */
export interface Choosable {
  /** As they are after everything that was asked so far, and as the agent began. */
  readonly choices: { readonly options: AgentOptions; readonly began: AgentOptions }
  /** Throws what the agent says against it. */
  choose(choice: Choice): Promise<void>
}

/** What an agent really works with; a member that it does not tell is absent. */
export interface EffectiveRuntime {
  /** The one that was started; absent in rows of earlier versions. */
  readonly provider?: string
  readonly model?: string
  readonly reasoning_effort?: string
  readonly speed?: 'normal' | 'fast'
  readonly speed_resolution?: SpeedResolution
  /** What was wanted and is not so, in words for a person. */
  readonly unmet: readonly string[]
}

/** Gives an agent what is wanted of it, as far as it lets one choose. Never throws for what an agent refuses. */
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
  // The efforts that there are may be those of the model.
  const effort = wish.effort ?? currentEffort(agent.choices.began)
  const way = effort === undefined ? undefined : wayToEffort(agent.choices.options, effort)
  // The effort that the agent began with was nobody's choice, so a model without it is no conflict.
  if (way && (wish.effort !== undefined || way.way !== 'none')) await go(`effort ${effort}`, way)
  const resolution = wish.speed && (await chooseSpeed(agent, wish.speed))
  const told = currentModel(agent.choices.options)
  const toldEffort = currentEffort(agent.choices.options)
  return {
    ...(told !== undefined && { model: told }),
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

/** Without a choice an agent works at its normal speed. */
export function speedWithout(
  requested: 'normal' | 'fast',
  reason: NonNullable<SpeedResolution['reason']> = 'capability_absent',
): SpeedResolution {
  return { requested, status: requested === 'normal' ? 'applied' : 'unsupported', reason }
}
