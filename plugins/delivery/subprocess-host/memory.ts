import { readFileSync } from 'node:fs'

/** Processes that are counted: each one that is read takes time of the event loop. */
const MOST_PROCESSES = 1000

/** Bytes of resident memory of a process and its descendants; 0 where the system has no /proc, and when it has ended. */
export function residentBytes(pid: number): number {
  const pids = [pid]
  let kilobytes = 0
  for (const one of pids) {
    try {
      const [, own = 0] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${one}/status`, 'utf8')) ?? []
      kilobytes += Number(own)
      const children = readFileSync(`/proc/${one}/task/${one}/children`, 'utf8').split(' ').filter(Boolean)
      pids.push(...children.slice(0, MOST_PROCESSES - pids.length).map(Number))
    } catch {
      // It has ended.
    }
  }
  return kilobytes * 1024
}

/** A number of bytes for people. */
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
