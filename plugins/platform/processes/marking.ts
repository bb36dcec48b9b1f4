import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { statFields } from './inspect.js'
import { markFor, markOfLimit } from './mark.js'

/** 36 bits that distinguish a home from others on its machine. */
export function homeNumber(homeId: string): number {
  return createHash('sha256').update(homeId).digest().readUIntBE(0, 6) % 2 ** 36
}

/** The words before a command and its arguments that run it with a mark. */
export type Marking = (mark: number) => readonly string[]

/** prlimit keeps the environment; a shell drops names that are not valid variables and adds PWD. */
const markings: readonly Marking[] = [
  mark => ['/usr/bin/prlimit', `--rss=${BigInt(mark) * 1024n}:`, '--'],
  mark => ['/bin/sh', '-c', 'ulimit -S -m "$1" 2>/dev/null; shift; exec "$@"', 'sh', String(mark)],
]

/** The way to mark processes on this machine, found by trial; undefined where there is none (not Linux). */
export async function findMarking(platform: NodeJS.Platform): Promise<Marking | undefined> {
  if (platform !== 'linux') return undefined
  const trial = markFor(0, 1)
  for (const marking of markings) {
    const [command = '', ...args] = [...marking(trial), '/bin/cat', '/proc/self/stat']
    const stat = await new Promise<string>(resolve => execFile(command, args, (_, stdout) => resolve(stdout)))
    if (markOfLimit(statFields(stat)[22]) === trial) return marking
  }
  return undefined
}
