import type { Db } from '../../../../kernel/plugin.js'
import { TaskCore, type TaskKernel } from '../core.js'
import { TaskDetails } from '../views/detail.js'
import { TaskHistory } from '../views/timeline.js'

/** What shows tasks of one database: the catalog, or a segment of the archive. */
export interface TaskReading {
  readonly core: TaskCore
  readonly details: TaskDetails
  readonly history: TaskHistory
}

const known = new WeakMap<Db, TaskReading>()

/** Views of a segment: the same code as for the catalog, on another database. Nothing of it writes. */
export function readingOf(kernel: TaskKernel, db: Db): TaskReading {
  const found = known.get(db)
  if (found) return found
  const own: TaskKernel = Object.create(kernel, { db: { value: db } })
  const core = new TaskCore(own, { wantsOf: () => ({}), profiled: () => undefined, guided: () => false })
  const details = new TaskDetails(core)
  const reading = { core, details, history: new TaskHistory(core, details) }
  known.set(db, reading)
  return reading
}
