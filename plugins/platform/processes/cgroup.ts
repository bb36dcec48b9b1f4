import { mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { ifPossible } from '../../../kernel/kit/system-calls.js'
import type { Db } from '../../../kernel/plugin.js'
import { meta } from './tables.js'

const prefix = 'svc-'
/** The path is in the database: the next daemon may run in another cgroup, and must find the leftovers of a crash. */
const STORED = { key: 'cgroup' }

/**
 * A cgroup (v2) of the home below the daemon's own, if it may create one: as root, or in a unit of systemd with `Delegate=yes`. The
 * daemon itself moves into it, so that all its children are born in it and no descendant can leave it without write access there.
 * The daemon moves out before it ends the processes in it.
 */
export class Cgroup {
  constructor(
    private readonly homeId: string,
    private readonly self: number,
    private readonly db: Db,
  ) {}

  /** Creates the cgroup and moves this process into it; false where that is not possible. */
  async enter(): Promise<boolean> {
    const own = ownCgroup()
    if (own === undefined || this.#isInside(own)) return own !== undefined
    const dir = join(own, `${prefix}${this.homeId}`)
    try {
      removeEmpty(own)
      mkdirSync(dir, { recursive: true })
      // Before it is used: a daemon that is killed in between leaves an empty one.
      if (this.#stored() !== dir) await this.db.tx(t => meta.replace(t, { ...STORED, value: dir }))
      // Another daemon may have removed the empty one meanwhile.
      mkdirSync(dir, { recursive: true })
      // The system call may take 20 ms, so it runs in another thread.
      await writeFile(join(dir, 'cgroup.procs'), String(this.self))
      return true
    } catch {
      return false
    }
  }

  /** Moves this process out of it, if it is in it and the parent accepts it. */
  async leave(): Promise<void> {
    const dir = this.#kept()
    if (dir === undefined || !this.#isInside(ownCgroup())) return
    await writeFile(join(dirname(dir), 'cgroup.procs'), String(this.self)).catch(() => {})
  }

  /** Whether a process is in it or below it. */
  has(pid: number): boolean {
    return this.#isInside(cgroupOf(String(pid)))
  }

  /** Every process in it and below it. */
  members(): Set<number> {
    const dir = this.#kept()
    return new Set(dir === undefined ? [] : pidsBelow(dir))
  }

  /** Kills all of its processes at once, however fast they fork, unless some of them are to be spared. */
  kill(spared: ReadonlySet<number>): void {
    const dir = this.#kept()
    if (dir === undefined || pidsBelow(dir).some(pid => spared.has(pid))) return
    // Before Linux 5.14 there is no `cgroup.kill`.
    ifPossible(() => writeFileSync(join(dir, 'cgroup.kill'), '1'))
  }

  /** Removes it when it is empty. */
  remove(): void {
    const dir = this.#kept()
    if (dir !== undefined) removeTree(dir)
  }

  /** The stored path, unless it belongs to the home that this one was copied from. */
  #kept(): string | undefined {
    const dir = this.#stored()
    return dir !== undefined && basename(dir) === `${prefix}${this.homeId}` ? dir : undefined
  }

  #stored(): string | undefined {
    return meta.get(this.db, STORED)?.value
  }

  #isInside(own: string | undefined): boolean {
    const dir = this.#kept()
    return dir !== undefined && own !== undefined && `${own}/`.startsWith(`${dir}/`)
  }
}

/** Moves a process of the daemon's program out of the home's cgroup, so that it outlives the daemon that started it. */
export function leaveHomeCgroup(self: number): void {
  const own = ownCgroup()
  if (own === undefined || !basename(own).startsWith(prefix)) return
  // Without the move, the process ends with the daemon's other processes, and its supervisor starts another.
  ifPossible(() => writeFileSync(join(dirname(own), 'cgroup.procs'), String(self)))
}

/** The folder of this process's cgroup (v2), also where v1 is mounted beside it. */
function ownCgroup(): string | undefined {
  return cgroupOf('self')
}

function cgroupOf(pid: string): string | undefined {
  const textOf = (file: string) => ifPossible(() => readFileSync(file, 'utf8')) ?? ''
  const path = /^0::(\/.*)$/m.exec(textOf(`/proc/${pid}/cgroup`))?.[1]
  const mount = /^\S+ \S+ \S+ (\/\S*) (\/\S*) .* - cgroup2 /m.exec(textOf('/proc/self/mountinfo'))
  const [, root = '', point = ''] = mount ?? []
  const shown = root === '/' ? '' : root
  if (!mount || path === undefined || !`${path}/`.startsWith(`${shown}/`)) return undefined
  return join(point, path.slice(shown.length))
}

function foldersIn(dir: string): string[] {
  return readdirSync(dir, { withFileTypes: true }).flatMap(entry => (entry.isDirectory() ? join(dir, entry.name) : []))
}

function pidsBelow(dir: string): number[] {
  const found = ifPossible(() => {
    const own = readFileSync(join(dir, 'cgroup.procs'), 'utf8').split('\n')
    // 0 is a process that cannot be seen from here.
    return [...own.map(Number).filter(pid => pid > 0), ...foldersIn(dir).flatMap(pidsBelow)]
  })
  return found ?? []
}

/** Removes empty cgroups; the system refuses to remove others. */
function removeTree(dir: string): void {
  ifPossible(() => {
    for (const below of foldersIn(dir)) removeTree(below)
    rmdirSync(dir)
  })
}

/** Removes empty cgroups of daemons whose homes are gone. */
function removeEmpty(parent: string): void {
  for (const dir of foldersIn(parent)) if (dir.startsWith(join(parent, prefix))) removeTree(dir)
}
