import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from './api.js'
import { fine, START_AGAIN } from './checks.js'

/** Last day (UTC) of support for each major release of Node, by the schedule of the Node.js release working group. */
const END_OF_LIFE: Readonly<Record<number, string>> = {
  20: '2026-04-30',
  21: '2024-06-01',
  22: '2027-04-30',
  23: '2025-06-01',
  24: '2028-04-30',
  25: '2026-06-01',
  26: '2029-04-30',
}

/**
 * Warns if Node no longer receives security fixes. A release missing from the table is newer than this program.
 * @param version value of `process.versions.node`
 * @param now epoch milliseconds
 */
export function nodeItems(version: string, now: number): DiagnosticItem[] {
  const end = END_OF_LIFE[Number.parseInt(version, 10)]
  if (end === undefined || now < Date.parse(`${end}T23:59:59Z`)) {
    const until = end === undefined ? '' : `, which receives fixes until ${end}`
    return [fine('daemon.node', 'daemon', 'node_ok', 'Node', `the daemon runs on Node ${version}${until}`)]
  }
  return [
    finding({
      id: 'daemon.node',
      code: 'node_end_of_life',
      category: 'daemon',
      severity: 'warning',
      title: 'Node receives no more fixes',
      message: `the daemon runs on Node ${version}, which has received no security fixes since ${end}; install a long-term support release, then restart the daemon`,
      suggested_command: START_AGAIN,
    }),
  ]
}
