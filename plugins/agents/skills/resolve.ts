import type { ActivationReason, SkillDiagnostic } from '../../../schemas/skills.js'
import { TIERS } from './api.js'
import { hookWarnings } from './brought/hook-list.js'
import type { Candidate, Warning } from './candidate.js'
import { alikeWarning, lookAlikes, mixedScripts } from './look-alikes.js'
import type { When } from './skill-kind.js'

/** Facts for the gates of skills; undefined: unknown. */
export interface GateFacts {
  readonly platforms: readonly string[]
  readonly environments: readonly string[] | undefined
  readonly tools: ReadonlySet<string> | undefined
  readonly capabilities: ReadonlySet<string> | undefined
}

/** Further facts that decide whether a skill is used. */
export interface ResolveFacts extends GateFacts {
  readonly disabled: ReadonlySet<string>
  /** Whether files of the workspace are trusted. */
  readonly trusted: boolean
}

/** A skill for a viewer, with the skills it shadows. */
export interface Resolved {
  readonly winner: Candidate
  /** The strongest first. */
  readonly shadowed: readonly Candidate[]
  readonly enabled: boolean
  /** Whether agents can use it. */
  readonly active: boolean
  readonly reasons: readonly ActivationReason[]
  /** Whether it is in an untrusted workspace. */
  readonly untrusted: boolean
  /** Remarks on its name. */
  readonly oddities: readonly Warning[]
}

const rank = ({ tier }: Candidate) => TIERS.indexOf(tier)

/**
 * Chooses between skills of one name. A refused or untrusted skill never shadows a usable one.
 * @param candidates within a tier, the first of a name wins
 */
export function resolve(candidates: readonly Candidate[], facts: ResolveFacts): Resolved[] {
  const byName = new Map<string, Candidate[]>()
  for (const candidate of candidates) {
    const same = byName.get(candidate.name)
    if (same) same.push(candidate)
    else byName.set(candidate.name, [candidate])
  }
  const usable = (one: Candidate) => Number(one.failure === undefined && !isUntrusted(one, facts))
  const alike = lookAlikes([...byName.keys()])
  return [...byName.keys()].sort().map(name => {
    // Sorting is stable and keeps the order within a tier.
    const sorted = (byName.get(name) ?? []).sort((a, b) => usable(b) - usable(a) || rank(b) - rank(a))
    const [winner, ...shadowed] = sorted as [Candidate, ...Candidate[]]
    const untrusted = isUntrusted(winner, facts)
    const reasons = reasonsOf(whenOf(winner), facts)
    const enabled = winner.spec.enabled && !facts.disabled.has(name)
    const active = enabled && reasons.length === 0 && !untrusted && winner.failure === undefined
    const others = alike.get(name)
    const oddities = [...mixedScripts(name), ...(others ? [alikeWarning(name, others)] : [])]
    return { winner, shadowed, enabled, active, reasons, untrusted, oddities }
  })
}

const isUntrusted = ({ ofWorkspace }: Candidate, { trusted }: ResolveFacts) => ofWorkspace && !trusted

export function whenOf({ spec }: Candidate): When {
  return (spec.metadata as { svc?: { when?: When } } | undefined)?.svc?.when ?? {}
}

/** Why a skill is inactive: each gate that is not met or unknown. */
export function reasonsOf(when: When, facts: GateFacts): ActivationReason[] {
  return [
    ...oneOf('platforms', when.platforms, facts.platforms, 'platform_mismatch', 'platform_mismatch'),
    ...oneOf(
      'environments',
      when.environments,
      facts.environments,
      'environment_mismatch',
      'environment_context_unavailable',
    ),
    ...allOf('requires_tools', when.requires_tools, facts.tools, 'missing_tool', 'tool_context_unavailable'),
    ...allOf(
      'requires_capabilities',
      when.requires_capabilities,
      facts.capabilities,
      'missing_capability',
      'capability_context_unavailable',
    ),
  ]
}

type Code = ActivationReason['code']

function oneOf(
  gate: string,
  wanted: readonly string[] = [],
  available: readonly string[] | undefined,
  missing: Code,
  unknown: Code,
): ActivationReason[] {
  if (wanted.length === 0) return []
  if (!available)
    return [{ code: unknown, gate, message: `it is for ${wanted.join(', ')}; which one applies is not known here` }]
  if (wanted.some(one => available.includes(one))) return []
  return [{ code: missing, gate, message: `it is for ${wanted.join(', ')}, but this is ${available.join(', ')}` }]
}

function allOf(
  gate: string,
  wanted: readonly string[] = [],
  available: ReadonlySet<string> | undefined,
  missing: Code,
  unknown: Code,
): ActivationReason[] {
  if (wanted.length === 0) return []
  if (!available)
    return [{ code: unknown, gate, message: `it is not known here whether ${wanted.join(', ')} is available` }]
  const absent = wanted.filter(one => !available.has(one))
  return absent.length === 0 ? [] : [{ code: missing, gate, message: `it needs ${absent.join(', ')}`, missing: absent }]
}

/** Diagnostics of a skill and of those it shadows. */
export function diagnosticsOf({ winner, shadowed, reasons, active, untrusted, oddities }: Resolved): SkillDiagnostic[] {
  const trust = untrusted
    ? [
        {
          pattern: 'workspace_untrusted',
          severity: 'warning',
          message: 'the files of this workspace are not trusted, so agents do not see the skill: svc workspace trust',
        },
      ]
    : []
  const twice = shadowed.some(({ tier, spec }) => tier === winner.tier && spec.body !== winner.spec.body)
    ? [
        {
          pattern: 'twice_in_tier',
          severity: 'warning',
          message: `several skills have this name in the tier ${winner.tier}; the first one is used`,
        },
      ]
    : []
  const describe = (one: Candidate, more: Partial<SkillDiagnostic>, extra: readonly (typeof trust)[number][] = []) => {
    const warnings = [...one.warnings, ...hookWarnings(one), ...extra].map(({ message, pattern, severity }) => ({
      message,
      pattern,
      severity: String(severity),
    }))
    const isWarned = warnings.some(({ severity }) => severity !== 'info')
    return {
      name: one.name,
      path: one.path,
      source: one.tier,
      state: one.failure ? ('verification_failed' as const) : ('valid' as const),
      verification_status: one.failure ? ('failed' as const) : isWarned ? ('warning' as const) : ('passed' as const),
      ...(one.failure && { failure: one.failure }),
      ...(warnings.length > 0 && { warnings }),
      ...more,
    }
  }
  const inactive = !active && !winner.failure ? { state: 'inactive' as const } : {}
  return [
    describe(winner, { ...inactive, ...(reasons.length > 0 && { activation_reasons: [...reasons] }) }, [
      ...trust,
      ...twice,
      ...oddities,
    ]),
    ...shadowed.map(one =>
      describe(one, {
        ...(!one.failure && { state: 'shadowed' as const }),
        winning_path: winner.path,
        winning_source: winner.tier,
      }),
    ),
  ]
}
