import { mkdtemp, rm } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import * as v from 'valibot'
import { messageOf } from '../../../../kernel/contract/errors.js'
import type { Redact } from '../../../../kernel/contract/redact.js'
import { event } from '../../../../kernel/contract/surface.js'
import { OwnedScope } from '../../../../kernel/scope.js'
import type { Disk } from '../../../../kernel/store/disk.js'
import { openStore } from '../../../../kernel/store/index.js'
import type { EmitOptions, EventsApi } from '../../../../plugins/platform/events/api.js'
import { type EventLimits, EventLog } from '../../../../plugins/platform/events/log.js'
import { eventMigrations } from '../../../../plugins/platform/events/rows.js'
import { openJournal } from '../../../../plugins/platform/journals/open.js'
import { seededIds } from '../../../../testing/seeded-ids.js'
import { VirtualClock } from '../../../../testing/virtual-clock.js'

export const DAY = 86_400_000
export const Made = event('thing.made', v.object({ n: v.number() }))
export const Lost = event('thing.lost', v.object({ n: v.number() }))

export interface LogOptions {
  readonly clock?: VirtualClock
  readonly limits?: Partial<EventLimits>
  readonly disk?: Disk
  readonly segmentBytes?: number
}

/** An event log with small limits on the database of a folder, as a kernel would have it. */
export async function openLog(folder: string, options: LogOptions = {}) {
  const clock = options.clock ?? new VirtualClock()
  const store = await openStore({ path: path.join(folder, 'svc.db'), now: () => clock.now() })
  store.migrate('kernel', eventMigrations)
  const faults: string[] = []
  const segmentBytes = options.segmentBytes ?? 2048
  const log = new EventLog(
    { db: store.db, clock, ids: seededIds(1), redact: { value: value => value } as Redact },
    ({ owner, hook, error }) => faults.push(`${owner}: ${hook}: ${messageOf(error)}`),
    {
      folder: path.join(folder, 'events'),
      segmentBytes,
      open: () =>
        openJournal({
          dir: path.join(folder, 'events'),
          segmentBytes,
          ...(options.disk ? { disk: options.disk } : {}),
        }),
    },
    { keepRows: 50, chunkRows: 20, ...options.limits },
  )
  const emit = (type: typeof Made, from: number, to: number, about: EmitOptions = {}) =>
    store.db.tx(t => {
      for (let n = from; n <= to; n++) log.emitAll(t, [[type, { n }, about]])
    })
  return {
    clock,
    store,
    log,
    faults,
    emit,
    all: () => readAll(filter => log.list(filter)),
    /** The log of a plugin, and the end of that plugin. */
    plugin(owner: string): { events: EventsApi; end: () => Promise<unknown> } {
      const scope = new OwnedScope(owner, clock)
      return { events: log.for({ name: owner, scope }), end: () => scope.release(1000) }
    },
    async close() {
      await log.close()
      await store.close()
    },
  }
}

/** The whole log, page by page. */
export async function readAll(list: EventsApi['list'], limit = 1000) {
  const found: Awaited<ReturnType<EventsApi['list']>> = []
  for (;;) {
    const page = await list({ after: found.at(-1)?.seq ?? 0, limit })
    if (page.length === 0) return found
    found.push(...page)
  }
}

/** Runs `use` with a folder that goes. */
export async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'svc-events-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Waits for what files and promises bring about; no virtual time passes. */
export async function until(what: () => boolean): Promise<void> {
  for (let i = 0; !what(); i++) {
    if (i > 60_000) throw new Error(`it did not come to pass: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 1))
  }
}

export const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
