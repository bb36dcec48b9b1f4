import { readdirSync, readFileSync } from 'node:fs'

/** Processes that are counted: each one that is read takes time of the event loop. */
const MOST_PROCESSES = 1000

/**
 * Bytes of memory of a process and its descendants; 0 where the system has no /proc, and when it has ended. The resident memory of each
 * is quick to read, but memory that forked processes share counts for each of them. A sum above `most` is therefore read again with
 * the shared memory divided among them, which takes longer.
 */
export function memoryOf(pid: number, most: number): number {
  const pids = [pid]
  // A child is listed for the thread that started it.
  for (const one of pids)
    for (const thread of listed(`/proc/${one}/task`)) {
      const children = textOf(`/proc/${one}/task/${thread}/children`).split(' ').filter(Boolean)
      pids.push(...children.slice(0, MOST_PROCESSES - pids.length).map(Number))
    }
  const bytesOf = (one: number, file: string, pattern: RegExp) =>
    1024 * Number(pattern.exec(textOf(`/proc/${one}/${file}`))?.[1] ?? 0)
  const sumOf = (bytes: (one: number) => number) => pids.reduce((sum, one) => sum + bytes(one), 0)
  const resident = (one: number) => bytesOf(one, 'status', /^VmRSS:\s*(\d+) kB$/m)
  const sum = sumOf(resident)
  return sum <= most ? sum : sumOf(one => bytesOf(one, 'smaps_rollup', /^Pss:\s*(\d+) kB$/m) || resident(one))
}

function listed(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // It has ended.
    return []
  }
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** A number of bytes for people. */
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
