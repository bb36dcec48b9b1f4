import { command } from '../../../kernel/kit/commands/command-line.js'
import type { Fault } from '../../../kernel/plugin.js'
import type { NewSession } from '../../work/sessions/api.js'
import { SandboxErrors } from './api.js'

/** The refusal of a session that requires a sandbox by default, with all alternatives. */
export function refusalOf({ unattended, permissions, session }: NewSession, reason: string): Fault {
  const kind = unattended
    ? 'a session of a job'
    : session.type === 'user'
      ? `a session with ${permissions}`
      : `a ${session.type} session`
  // Commands of jobs and triggers have no --sandbox.
  const without = `to work without one${unattended ? ':' : ', use --sandbox none, or for all sessions'} ${command('config set', 'defaults.sandbox', 'none')}, then ${command('daemon restart')}`
  return SandboxErrors.sandbox_unusable(`${kind} must run in a sandbox, but none can be started: ${reason}; ${without}`)
}
