import type { Db } from '../../../../kernel/plugin.js'
import { TaskCore } from '../core.js'
import type { K } from '../needs.js'
import { Profiles } from '../profiles/profiles.js'
import { Reviews } from '../reviews/reviews.js'
import { TaskDetails } from '../views/detail.js'
import type { TaskInspection } from '../views/inspect.js'
import { TaskHistory } from '../views/timeline.js'

/** The views of one database: the catalog, or a segment of the archive. */
export interface TaskReading {
  readonly core: TaskCore
  readonly details: TaskDetails
  readonly history: TaskHistory
  readonly inspection: TaskInspection
  readonly profiles: Pick<Profiles, 'get'>
  readonly reviews: Pick<Reviews, 'find' | 'show' | 'list'>
}

/** Without inspection, which needs the scheduler of the catalog. */
type OldReading = Omit<TaskReading, 'inspection'>

const known = new WeakMap<Db, OldReading>()

/** Read-only views of a segment: the code for the catalog, on another database. */
export function readingOf(kernel: K, db: Db): OldReading {
  const found = known.get(db)
  if (found) return found
  const own: K = Object.create(kernel, { db: { value: db } })
  const core = new TaskCore(own, { wantsOf: () => ({}), profiled: () => undefined, guided: () => false })
  const details = new TaskDetails(core)
  const reading = {
    core,
    details,
    history: new TaskHistory(core, details),
    profiles: new Profiles(core),
    reviews: new Reviews(
      core,
      () => 0,
      () => false,
    ),
  }
  known.set(db, reading)
  return reading
}
