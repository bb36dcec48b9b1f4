import { messageOf } from '../../../kernel/plugin.js'
import { ProcessWatch } from '../acp/api.js'
import { BriefingTable } from './agent/launch.js'
import { SessionArchive } from './archive/session-archive.js'
import { Presence } from './attach/presence.js'
import { Attachments } from './attachments/store.js'
import { CatalogFeed } from './attention/catalog-feed.js'
import { type SessionsContext, Slots } from './context.js'
import { Cuts } from './journal/cuts.js'
import { LocalTime } from './journal/local-time.js'
import { Logs } from './journal/logs.js'
import { Telling } from './journal/telling.js'
import { UsageDays } from './journal/usage-days.js'
import type { HealthNews } from './lifecycle/health-news.js'
import type { K } from './needs.js'
import { SessionParticipation } from './participation.js'
import { type SessionLimits, SessionSettings } from './settings.js'
import { type SessionRow, SessionTable } from './table.js'
import { PromptFiles } from './turn/prompt-files.js'
import { PromptTable } from './turn/prompts.js'
import { infoOf } from './wire.js'

/** Builds the shared context from the kernel and the hooks that the service declares. */
export function contextOf(
  kernel: K,
  own: Pick<SessionsContext, 'points' | 'stopped' | 'permission' | 'prepare' | 'creating' | 'launching'> & {
    readonly health: () => HealthNews
    readonly isNeeded: (row: SessionRow) => Promise<boolean>
  },
): SessionsContext {
  const { clock, ids, redact, db } = kernel
  const limits = Object.fromEntries(
    Object.entries(SessionSettings).map(([name, entry]) => [name, kernel.config.get(entry)]),
  ) as SessionLimits
  const catalog = new CatalogFeed(ids.hex(4))
  const health = own.health()
  const table = new SessionTable(
    db,
    (...change) => catalog.tell(...change),
    row => {
      const { attentionChanged } = own.points
      if (attentionChanged.isUsed()) void attentionChanged.call(infoOf(row), row.unseen_since !== null)
    },
  )
  const briefings = new BriefingTable(db)
  const archive = new SessionArchive(kernel, table, {
    archives: () => kernel.needs.archives.current,
    days: () => limits.archiveAfterDays,
    isNeeded: own.isNeeded,
    moved: id => briefings.forget(id),
  })
  const telling = new Telling(own.points)
  return {
    kernel,
    limits,
    catalog,
    attachments: new Attachments(kernel),
    usageDays: new UsageDays(db, clock, limits.usageDays, new LocalTime(kernel.env.TZ)),
    health,
    presence: new Presence(clock, ids),
    table,
    prompts: new PromptTable(db),
    archive,
    promptFiles: new PromptFiles(kernel, table, archive),
    briefings,
    slots: new Slots(limits.maxAgents),
    watch: new ProcessWatch(clock, () => health.staleAfterMs),
    logs: new Logs({
      clock,
      ids,
      redact,
      open: id => kernel.needs.journals.open(['sessions', id]),
      cuts: id => new Cuts(table.get(id)?.cuts),
      recording: (id, event) => telling.recording(id, event),
      recorded: (id, event, sequence) => telling.recorded(id, event, sequence),
      failed: (id, error) => kernel.log.error('a journal failed', { id, error: messageOf(error) }),
    }),
    points: own.points,
    stopped: own.stopped,
    stopsTold: new Map(),
    permission: own.permission,
    participations: () => kernel.collect(SessionParticipation)[0]?.entry,
    prepare: own.prepare,
    creating: own.creating,
    launching: own.launching,
  }
}
