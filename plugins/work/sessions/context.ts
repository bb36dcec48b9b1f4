import type { Gate, Notify, Pipeline } from '../../../kernel/plugin.js'
import type { SecretOwner } from '../../access/vault/api.js'
import type { ProcessWatch } from '../acp/api.js'
import type { BriefingTable } from './agent/launch.js'
import {
  type NewSession,
  type Participations,
  SessionErrors,
  type SessionInfo,
  type SessionLaunch,
  type SessionStart,
} from './api.js'
import type { SessionArchive } from './archive/session-archive.js'
import type { Presence } from './attach/presence.js'
import type { Attachments } from './attachments/store.js'
import type { CatalogFeed } from './attention/catalog-feed.js'
import type { Logs } from './journal/logs.js'
import type { UsageDays } from './journal/usage-days.js'
import type { HealthNews } from './lifecycle/health-news.js'
import type { IdleProcesses } from './lifecycle/idle-processes.js'
import type { K } from './needs.js'
import type { PermissionAsked, SessionHooks } from './points.js'
import type { SessionLimits } from './settings.js'
import type { SessionTable } from './table.js'
import type { PromptFiles } from './turn/prompt-files.js'
import type { PromptTable } from './turn/prompts.js'

/** The secrets of a session, `vault:sessions/<id>/…`, are deleted with it. */
export const sessionSecrets: SecretOwner = { what: 'session', paths: id => [`sessions/${id}`] }

/** State and services shared by the parts of this plugin. */
export interface SessionsContext {
  readonly kernel: K
  readonly table: SessionTable
  readonly archive: SessionArchive
  readonly prompts: PromptTable
  readonly promptFiles: PromptFiles
  readonly briefings: BriefingTable
  readonly logs: Logs
  readonly limits: SessionLimits
  readonly slots: Slots
  readonly health: HealthNews
  readonly watch: ProcessWatch
  readonly presence: Presence
  readonly catalog: CatalogFeed
  readonly attachments: Attachments
  readonly usageDays: UsageDays
  /** The hooks of sessions for other plugins. */
  readonly points: SessionHooks
  readonly prepare: Pipeline<SessionStart, [SessionInfo]>
  readonly creating: Gate<[NewSession]>
  readonly launching: Gate<[SessionLaunch]>
  readonly permission: Gate<[PermissionAsked]>
  /** Decides about participation in the network; undefined while no plugin provides it. */
  readonly participations: () => Participations | undefined
  readonly stopped: Notify<[SessionInfo]>
  /** Notifications of stops that have not ended, by session. */
  readonly stopsTold: Map<string, Promise<void>>
}

/** Slots for agent processes, held by sessions that have a process or are about to start one. */
export class Slots {
  readonly #holders = new Set<object>()
  /** Ends the processes of idle sessions. */
  others: Pick<IdleProcesses, 'canFree' | 'free'> | undefined

  constructor(private readonly max: number) {}

  get used(): number {
    return this.#holders.size
  }

  /** Throws `session_limit` (409) when no slot is free and no idle session can free one. */
  check(): void {
    if (this.#holders.size >= this.max && !this.others?.canFree) this.#refuse()
  }

  /** Takes a slot; without a free one, that of an idle session. Throws `session_limit` (409). */
  async take(holder: object): Promise<void> {
    while (!this.#holders.has(holder)) {
      if (this.#holders.size < this.max) this.#holders.add(holder)
      else if (!(await this.others?.free())) this.#refuse()
    }
  }

  #refuse(): never {
    throw SessionErrors.session_limit(
      `${this.#holders.size} agent processes are running, none of them idle, and limits.max_concurrent_agents is ${this.max}`,
    )
  }

  give(holder: object): void {
    this.#holders.delete(holder)
  }
}
