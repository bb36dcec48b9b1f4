import { randomBytes } from 'node:crypto'
import { statSync, truncateSync } from 'node:fs'
import { open, rm, statfs } from 'node:fs/promises'
import { type DiskKeeper, isFull, type Starting } from '../../../kernel/platform.js'
import { type Fault, KernelErrors, messageOf, type Room, type Timer } from '../../../kernel/plugin.js'

const MIB = 2 ** 20

/** Limits at which writing stops and resumes; bytes of free space and milliseconds. */
export const DiskLimits = {
  /** Size of `cache/reserve`: the space that stop, cancel and status have on a full disk. */
  reserve: 16 * MIB,
  /** The part of it for the database only: work can go on without a journal, but not without the database. */
  catalog: 8 * MIB,
  /** Additional bytes freed for each write, for the file system's own use and for faster writers. */
  slack: MIB / 8,
  /** With less free space, writing stops. */
  short: 16 * MIB,
  /**
   * Writing resumes with this much free space including the reserve: 8 MiB more than both limits need, so that it does not stop
   * again at once.
   */
  enough: 40 * MIB,
  /** Age up to which the result of the last check is valid. */
  freshMs: 250,
  /** Interval between checks without writes: the first for each GiB of free space, which no program fills faster; at most the second. */
  pollMs: [1000, 60_000],
  /** Pause between two attempts of a write on a full disk. */
  againMs: 100,
} as const

/** Bytes that a file occupies; 0 if it is not a file, or cannot be accessed, such as a cycle of links. */
function keptBy(file: string): number {
  try {
    const found = statSync(file)
    // Holes of a sparse file occupy no space.
    return found.isFile() ? Math.min(found.size, found.blocks * 512) : 0
  } catch {
    return 0
  }
}

/**
 * Checks the free space of a home before writes, and keeps a reserve for work that must go on. A check may come too late: a write
 * that finds the disk full takes space from the reserve, and after that no new write is accepted.
 */
export class DiskGuard implements DiskKeeper {
  writable = true
  readonly catalog = this.#roomWith(0)
  readonly room = this.#roomWith(DiskLimits.catalog)
  #free = Number.POSITIVE_INFINITY
  /** Current bytes of the reserve. */
  #kept = 0
  readonly #reserve: string
  #seenAt = Number.NEGATIVE_INFINITY
  #looking: Promise<number> | undefined
  #reserving: Promise<boolean> | undefined
  /** Why no reserve can be made here, other than lack of space; it is tried once. */
  #without: string | undefined
  #poll: Timer | undefined
  #closed = false
  readonly #healed = new Set<() => void>()

  constructor(private readonly from: Pick<Starting, 'home' | 'clock' | 'log' | 'freeBytes'>) {
    this.#reserve = from.home.path('cache', 'reserve')
    this.#kept = keptBy(this.#reserve)
  }

  async start(): Promise<void> {
    const [least, most] = DiskLimits.pollMs
    const wait = Math.min(Math.max(((await this.look()) / MIB / 1024) * least, least), most)
    if (!this.#closed) this.#poll = this.from.clock.timeout(wait, () => void this.start(), { unref: true })
  }

  async refusal(): Promise<Fault | undefined> {
    if (this.from.clock.monotonic() - this.#seenAt >= DiskLimits.freshMs) await this.look()
    if (this.writable) return undefined
    const [free, wanted] = [this.#free, this.#wanted].map(bytes => `${(bytes / MIB).toFixed(1)} MiB`)
    const text = `the disk is almost full: ${free} are free at ${this.from.home.root}; writes resume when ${wanted} are free`
    return KernelErrors.disk_full(text, { next: 'free some space; running work can be stopped and records deleted' })
  }

  onHealed(listener: () => void): void {
    this.#healed.add(listener)
  }

  /** Space for writes on a full disk: the reserve without its last `least` bytes. */
  #roomWith(least: number): Room {
    return {
      spend: bytes => this.#spend(bytes, least),
      again: async () => {
        this.#stop()
        await this.from.clock.sleep(DiskLimits.againMs)
      },
    }
  }

  /** The reserve stays for the next start. */
  async close(): Promise<void> {
    this.#closed = true
    this.#poll?.cancel()
    await this.#looking
    await this.#reserving
  }

  look(): Promise<number> {
    this.#looking ??= this.#measure().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  /** Free bytes required to resume writing; the spent part of the reserve is restored from them. */
  get #wanted(): number {
    return DiskLimits.enough - Math.min(this.#kept, DiskLimits.reserve)
  }

  async #measure(): Promise<number> {
    const { home, clock, freeBytes = systemFreeBytes } = this.from
    // The folder is missing, or the file system does not say: if that is a problem, the store reports it.
    const free = await freeBytes(home.root).catch(() => Number.POSITIVE_INFINITY)
    this.#free = free
    this.#seenAt = clock.monotonic()
    if (free < DiskLimits.short) this.#stop()
    else if (free >= this.#wanted) {
      this.#reserving ??= this.#take().finally(() => {
        this.#reserving = undefined
      })
      if (!this.writable && (await this.#reserving)) this.#goOn()
    }
    return free
  }

  #stop(): void {
    if (this.writable) this.from.log.warn('the disk is almost full: writing stops')
    this.writable = false
  }

  #goOn(): void {
    this.from.log.info('the disk has enough free space again: writing resumes')
    this.writable = true
    for (const listener of this.#healed) listener()
  }

  #spend(bytes: number, least: number): boolean {
    this.#stop()
    if (this.#kept <= least) return false
    const left = Math.max(least, this.#kept - bytes - DiskLimits.slack)
    try {
      truncateSync(this.#reserve, left)
      this.#kept = left
      return true
    } catch (error) {
      this.from.log.warn(`the reserve file cannot be released: ${messageOf(error)}`)
      this.#kept = 0
      return false
    }
  }

  /** Restores the missing part of the reserve; false when there is no space for it. */
  async #take(): Promise<boolean> {
    if (this.#kept >= DiskLimits.reserve || this.#without !== undefined) return true
    // Random bytes, because compressing file systems would reserve no space for zeros or patterns.
    const block = randomBytes(MIB)
    try {
      if (this.#kept === 0) await rm(this.#reserve, { recursive: true, force: true })
      const file = await open(this.#reserve, this.#kept === 0 ? 'wx' : 'r+', 0o600)
      try {
        while (this.#kept < DiskLimits.reserve) {
          const at = this.#kept
          const { bytesWritten } = await file.write(block, 0, Math.min(MIB, DiskLimits.reserve - at), at)
          // The reserve was spent meanwhile, so the disk is full; or the kernel ends, and the next start makes the rest.
          if (this.#kept !== at || this.#closed) return false
          this.#kept += bytesWritten
        }
      } finally {
        await file.close()
      }
      return true
    } catch (error) {
      if (isFull(error)) {
        this.#stop()
        return false
      }
      this.#without = messageOf(error)
      this.from.log.warn(`the reserve file could not be created: ${this.#without}`)
      return true
    }
  }
}

async function systemFreeBytes(folder: string): Promise<number> {
  const { blocks, bavail, bsize } = await statfs(folder)
  return blocks === 0 ? Number.POSITIVE_INFINITY : bavail * bsize
}
