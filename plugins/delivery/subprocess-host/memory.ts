import { readFileSync } from 'node:fs'

/** Bytes of resident memory of a process and its descendants; 0 where the system has no /proc, and when it has ended. */
export function residentBytes(pid: number): number {
  try {
    const [, kilobytes = 0] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean)
    return children.reduce((sum, child) => sum + residentBytes(Number(child)), Number(kilobytes) * 1024)
  } catch {
    return 0
  }
}

/** A number of bytes for people. */
export const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`
