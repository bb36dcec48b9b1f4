import { randomBytes } from 'node:crypto'
import { lstat, open, rm, statfs } from 'node:fs/promises'
import type { Clock, Timer } from './clock.js'
import { type Fault, KernelErrors, messageOf } from './errors.js'
import type { Home } from './plugin-kernel.js'

const MIB = 2 ** 20

/** When writing stops and goes on again; bytes of free space and milliseconds. */
export const DiskLimits = {
  /** Size of `cache/reserve`: the room that stop, cancel and status have once it is released. */
  reserve: 16 * MIB,
  /** With less free, writing stops and the reserve is released. */
  short: 16 * MIB,
  /** Writing goes on when so much is free: the reserve is taken from it, and 8 MiB lie between that and `short`. */
  enough: 40 * MIB,
  /** What was seen so long ago still holds. */
  freshMs: 250,
  /** How often somebody looks when nobody writes: with less than `plenty` free, else. */
  pollMs: [1000, 10_000],
  plenty: 1024 * MIB,
} as const

/** Free bytes on the file system of a folder. */
export type FreeBytes = (folder: string) => Promise<number>

/** Room for writing (Storage, "Disk full is foreseen"). */
export interface DiskRoom {
  /** False while space is short, as it was seen last. */
  readonly writable: boolean
  /** Bytes that are free now; Infinity where the system does not tell. */
  look(): Promise<number>
  /** 507 `disk_full` while space is short. To be asked before new work or a new write; what frees or stops goes on. */
  refusal(): Promise<Fault | undefined>
}

/** Looks at the free space of a home before it is written to, and keeps a reserve for what has to go on. */
export class DiskGuard implements DiskRoom {
  writable = true
  #free = Number.POSITIVE_INFINITY
  readonly #reserve: string
  #seenAt = Number.NEGATIVE_INFINITY
  #looking: Promise<number> | undefined
  /** Since space was short last; it is tried once. */
  #reserving: Promise<void> | undefined
  #poll: Timer | undefined
  #closed = false

  constructor(
    private readonly home: Home,
    private readonly clock: Clock,
    private readonly log: (level: 'info' | 'warn', text: string) => void,
    private readonly freeBytes: FreeBytes = systemFreeBytes,
  ) {
    this.#reserve = home.path('cache', 'reserve')
  }

  /** Looks for the first time, before the store needs room, and from then on. */
  async start(): Promise<void> {
    const wait = DiskLimits.pollMs[(await this.look()) < DiskLimits.plenty ? 0 : 1]
    if (!this.#closed) this.#poll = this.clock.timeout(wait, () => void this.start(), { unref: true })
  }

  async refusal(): Promise<Fault | undefined> {
    if (this.clock.monotonic() - this.#seenAt >= DiskLimits.freshMs) await this.look()
    if (this.writable) return undefined
    const [free, wanted] = [this.#free, DiskLimits.enough].map(bytes => `${(bytes / MIB).toFixed(1)} MiB`)
    const text = `the disk is almost full: ${free} are free at ${this.home.root}, writing goes on when ${wanted} are`
    return KernelErrors.disk_full(text, { next: 'free some space; what runs can be stopped and records deleted' })
  }

  /** The reserve stays for the next start. */
  async close(): Promise<void> {
    this.#closed = true
    this.#poll?.cancel()
    await this.#looking
    await this.#reserving
  }

  look(): Promise<number> {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #look(): Promise<number> {
    // A folder that is gone, or a file system that does not tell: the store says what is wrong, if anything is.
    const free = await this.freeBytes(this.home.root).catch(() => Number.POSITIVE_INFINITY)
    this.#free = free
    this.#seenAt = this.clock.monotonic()
    if (free < DiskLimits.short) {
      if (this.writable) this.log('warn', `the disk is almost full (${free} bytes free): writing stops`)
      this.writable = false
      await this.#reserving
      this.#reserving = undefined
      await rm(this.#reserve, { force: true }).catch(error => this.log('warn', messageOf(error)))
    } else if (free >= DiskLimits.enough) {
      if (!this.writable) this.log('info', 'there is room on the disk again: writing goes on')
      this.writable = true
      this.#reserving ??= this.#take()
    }
    return free
  }

  /** Makes the reserve unless it is there. */
  async #take(): Promise<void> {
    const found = await lstat(this.#reserve).catch(() => undefined)
    if (found?.isFile() && Math.min(found.size, found.blocks * 512) >= DiskLimits.reserve) return
    // Neither zeros nor short patterns: file systems that compress would keep no room for them.
    const block = randomBytes(MIB)
    try {
      // Whatever else is in its place goes: to open a pipe would be to wait for its reader.
      await rm(this.#reserve, { force: true })
      const file = await open(this.#reserve, 'wx', 0o600)
      try {
        for (let at = 0; at < DiskLimits.reserve; at += MIB) await file.write(block, 0, MIB, at)
      } finally {
        await file.close()
      }
    } catch (error) {
      await rm(this.#reserve, { force: true }).catch(() => {})
      this.log('warn', `no reserve could be made: ${messageOf(error)}`)
    }
  }
}

async function systemFreeBytes(folder: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(folder)
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize
}
