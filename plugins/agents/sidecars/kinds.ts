import * as v from 'valibot'
import { kind } from '../../../kernel/plugin.js'
import { AGENT_NAME } from '../agents/api.js'
import { heartbeatOf } from './heartbeat.js'
import { HeartbeatSetting, MAX_SIDECAR_BYTES, SoulSetting } from './settings.js'
import { soulOf } from './soul.js'
import type { SidecarSource } from './source.js'

/** Spec of records of the kinds `agent.soul` and `agent.heartbeat`; unknown members are dropped. */
export const SidecarSpec = v.object({
  /** Id of its `agent` record, which must have the same owner and scope. */
  agent_id: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  agent_name: v.pipe(v.string(), v.regex(AGENT_NAME, 'a name of a-z, 0-9, _ and -, at most 64 characters')),
  /** The full text of the file with its frontmatter. */
  content: v.string(),
  /** Path in the package; shown, never opened: `.svc/bundles/<activation>/agents/<name>/SOUL.md`. */
  source_path: v.optional(v.pipe(v.string(), v.maxLength(1024)), ''),
})
export type SidecarSpec = v.InferOutput<typeof SidecarSpec>

/** The first problem of a text under default limits, with its line; undefined if there is none. */
export function sidecarProblem(which: 'soul' | 'heartbeat', content: string, agentName = ''): string | undefined {
  const source: SidecarSource = { agentName, sourcePath: '', text: content }
  const { diagnostics = [] } =
    which === 'soul' ? soulOf(source, SoulSetting.default) : heartbeatOf(source, HeartbeatSetting.default)
  const first = diagnostics.find(({ severity }) => severity === 'error')
  return first && `content${first.line === undefined ? '' : `, line ${first.line}`}: ${first.message} (${first.code})`
}

/** Personas that packages provide for their agents. Read on demand; nothing is projected. */
export const AgentSoulKind = kind<SidecarSpec>({
  name: 'agent.soul',
  spec: SidecarSpec,
  maxBytes: MAX_SIDECAR_BYTES,
  onDemand: true,
  check: ({ spec }) => sidecarProblem('soul', spec.content, spec.agent_name),
})

/** Heartbeat policies that packages provide for their agents. Read on demand; nothing is projected. */
export const AgentHeartbeatKind = kind<SidecarSpec>({
  name: 'agent.heartbeat',
  spec: SidecarSpec,
  maxBytes: MAX_SIDECAR_BYTES,
  onDemand: true,
  check: ({ spec }) => sidecarProblem('heartbeat', spec.content, spec.agent_name),
})
