import { messageOf } from '../../../../kernel/plugin.js'
import type { ProcessHandle } from '../../../platform/processes/api.js'
import {
  type NewSession,
  type SessionCommand,
  type SessionConfinement,
  SessionErrors,
  type SessionInfo,
  type SessionLaunch,
} from '../api.js'
import type { SessionsContext } from '../context.js'
import type { Sight } from '../requests/paths.js'
import type { SessionRow } from '../table.js'

/**
 * Decides how a new session is confined. Throws the refusal, and `sandbox_unavailable` (422) when no plugin provides the sandbox
 * asked for.
 */
export async function confine(
  { creating }: Pick<SessionsContext, 'creating'>,
  session: SessionInfo,
  about: Pick<NewSession, 'permissions' | 'sandbox' | 'unattended' | 'parent' | 'broughtBy'>,
): Promise<SessionConfinement | undefined> {
  let chosen: SessionConfinement | undefined
  const refused = await creating.ask({
    ...about,
    session,
    confine(how) {
      chosen = how
    },
  })
  if (refused) throw refused
  const isAsked = about.sandbox !== undefined && about.sandbox !== 'none'
  if (isAsked && chosen?.kind !== 'sandbox') throw SessionErrors.sandbox_unavailable()
  return chosen
}

/** The confinement that was decided when the session was made. */
export function confinementOf({ sandbox }: Pick<SessionRow, 'sandbox'>): SessionConfinement | undefined {
  return sandbox === null ? undefined : (JSON.parse(sandbox) as SessionConfinement)
}

/** Changes to the commands of a session, and the cleanup after them. */
export interface Surroundings {
  change(command: SessionCommand): SessionCommand
  /** Paths that the daemon does not write on behalf of the agent. */
  readonly protected: readonly string[]
  /** Visibility of an absolute path in the sandbox; undefined without a sandbox. */
  readonly seen: ((file: string) => Sight) | undefined
  /** Resolves when the agent's process and its group have ended and what they left is cleaned up; never rejects. */
  watch(handle: ProcessHandle): Promise<void>
}

/**
 * Collects the changes to the commands of a session. Throws the refusal; a session that was made with a sandbox is refused when no
 * plugin applies it.
 */
export async function surroundingsOf(
  { kernel, launching }: Pick<SessionsContext, 'kernel' | 'launching'>,
  launch: Omit<SessionLaunch, 'around' | 'protect' | 'sees' | 'afterwards'>,
): Promise<Surroundings> {
  const changes: ((command: SessionCommand) => SessionCommand)[] = []
  const guarded: string[] = []
  let seen: Surroundings['seen']
  const endings: (() => Promise<void>)[] = []
  const refused = await launching.ask({
    ...launch,
    around: change => void changes.push(change),
    protect: paths => void guarded.push(...paths),
    sees: how => {
      seen = how
    },
    afterwards: work => void endings.push(work),
  })
  if (refused) throw refused
  if (launch.confinement?.kind === 'sandbox' && changes.length === 0) {
    throw SessionErrors.sandbox_unavailable('this session was made with a sandbox, and nothing here starts it in one')
  }
  const cleanUp = async (handle: ProcessHandle) => {
    await handle.exited
    await handle.stop({ graceMs: 0, termMs: 0 })
    for (const work of endings) await work()
  }
  return {
    protected: guarded,
    seen,
    change: command => changes.reduce((changed, change) => change(changed), command),
    watch: async handle => {
      if (endings.length === 0) return
      await cleanUp(handle).catch(error =>
        kernel.log.error('what a process left was not cleaned up', {
          session: launch.session.id,
          error: messageOf(error),
        }),
      )
    },
  }
}
