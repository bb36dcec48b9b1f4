import { iso } from '../../kernel/plugin.js'
import type { SessionHealth } from '../../schemas/sessions.js'
import type { Heartbeat } from '../../schemas/sidecars.js'
import type { SessionInfo } from '../sessions/api.js'

/** The text of a wake-up: what it is, the guidance of the policy, and of its context what is known here. */
export function wakePrompt({ prompt }: Heartbeat, session: SessionInfo, health: SessionHealth | undefined): string {
  const include = new Set(prompt.context.include ?? [])
  const context = [
    ...(include.has('self')
      ? [`- you are the agent ${session.agentName} in session ${session.id}, workspace ${session.workspaceId}`]
      : []),
    ...(include.has('session_health') && health
      ? [`- the session is ${health.health}, last active ${health.last_activity_at ?? iso(session.updatedAt)}`]
      : []),
  ]
  return [
    'This is a heartbeat: a wake-up by the clock and not a message of a person. It assigns no work: because of it nothing is claimed and no lease is renewed.',
    ...(prompt.summary ? [prompt.summary] : []),
    ...(prompt.guidance_markdown ? [prompt.guidance_markdown] : []),
    ...(context.length > 0 ? [context.join('\n')] : []),
  ].join('\n\n')
}
