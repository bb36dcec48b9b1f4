import { command } from '../../../kernel/kit/commands/command-line.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { type DeclaredHook, GUARD } from './declared.js'
import type { HooksService } from './service.js'
import { UnmatchedValues } from './unmatched.js'

/** Sessions named per warning. */
const SESSIONS_NAMED = 5

/** Warnings about one hook, by kind. */
export interface HookWarnings {
  readonly unmatched: readonly string[]
  readonly pending: readonly string[]
}

/** Warnings about valid hooks: a matcher without any match, a guard that does not hold in all sessions yet. */
export class Warnings {
  constructor(private readonly service: HooksService) {}

  /** Warnings of several hooks; existing names are read once for all of them. */
  about(hooks: readonly DeclaredHook[]): Promise<HookWarnings[]> {
    const values = new UnmatchedValues(this.service.kernel)
    const pending = this.#pending(hooks)
    return Promise.all(hooks.map(async hook => ({ unmatched: await values.of(hook), pending: pending(hook) })))
  }

  /** The doctor items of all hooks. */
  async findings(): Promise<DiagnosticItem[]> {
    const hooks = await this.service.declared()
    const items = (await this.about(hooks)).flatMap(({ unmatched, pending }, n) => {
      const { name } = hooks[n] as DeclaredHook
      const about = {
        id: `hook:${name}`,
        category: 'hooks',
        severity: 'warning',
        suggested_command: command('hooks info', name),
      }
      return [
        ...unmatched.map(message => ({
          ...about,
          ...{ code: 'hook_matcher_unmatched', title: `hook ${name} matches nothing known`, message },
        })),
        ...pending.map(message => ({
          ...about,
          ...{ code: 'hook_guard_pending', title: `hook ${name} does not apply in every session yet`, message },
        })),
      ]
    })
    const once = new Map(items.map(item => [`${item.id} ${item.message}`, item]))
    return [...once.values()].map(finding)
  }

  #pending(hooks: readonly DeclaredHook[]): (hook: DeclaredHook) => string[] {
    const guards = hooks.filter(({ event, required, enabled }) => event === 'permission.request' && required && enabled)
    const unguarded = guards.length > 0 ? this.service.kernel.needs.sessions.unguarded(GUARD) : []
    return hook => {
      if (!guards.includes(hook)) return []
      const { workspaceId } = hook
      const here = unguarded.filter(({ session }) => (workspaceId ?? session.workspaceId) === session.workspaceId)
      const more = here.length - SESSIONS_NAMED
      return [
        ...here
          .slice(0, SESSIONS_NAMED)
          .map(
            ({ session: { id }, why }) =>
              `applies in session ${id} after its agent restarts: ${why}. Stop the agent: ${command('session stop', id)}`,
          ),
        ...(more > 0 ? [`the same applies to ${more} more sessions`] : []),
      ]
    }
  }
}
