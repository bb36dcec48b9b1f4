import { idsOf, inspectProcess } from './inspect.js'
import { numberIn } from './mark.js'
import { homeNumber } from './marking.js'
import type { ProcessRow, ProcessTable } from './process-row.js'

/** The rows of this home. A copied home brings along those of the original, whose processes say themselves whose they are. */
export async function ownRows(table: ProcessTable, homeId: string): Promise<ProcessRow[]> {
  const rows: ProcessRow[] = []
  for (const row of table.list()) {
    if (isOfAnotherHome(row, homeId)) await table.remove(row.pid, row.startTime)
    else rows.push(row)
  }
  return rows
}

function isOfAnotherHome({ pid, startTime }: ProcessRow, homeId: string): boolean {
  const seen = inspectProcess(pid, process.platform)
  if (seen === undefined || seen.ended || seen.startTime !== startTime) return false
  const named = idsOf(pid, process.platform).homeId
  return (seen.mark !== 0 && numberIn(seen.mark, homeNumber(homeId)) === 0) || (named !== '' && named !== homeId)
}
