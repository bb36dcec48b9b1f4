import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { readRegularFileSync } from '../../kernel/kit/read-file.js'
import { RestartOperation, type RestartStatus } from '../../schemas/daemon/restart.js'
import { isOpen, wayTo } from './states.js'

/** An operation as it is stored: with the process that carries it out between the two daemons. */
export const StoredOperation = v.object({ ...RestartOperation.entries, helper_pid: v.optional(v.number()) })
export type StoredOperation = v.InferOutput<typeof StoredOperation>

/** Operations that are kept when they have ended, and for how many milliseconds. */
const KEPT = 20
const KEPT_MS = 30 * 24 * 3_600_000
const MAX_BYTES = 64 * 1024
const ID = /^rst_[0-9a-f]{16}$/

/**
 * Restarts of a home, one file each, written durably and atomically: three processes take part in a restart, and each of them
 * reads how far it is. Only one of them writes at a time: the daemon that ends up to `stopping`, then the helper, then the daemon
 * that holds the lock.
 */
export class Operations {
  readonly folder: string

  /** @param home absolute */
  constructor(home: string) {
    this.folder = join(home, 'restarts')
  }

  /** Undefined where there is none of that id, or none that can have been written here. */
  read(id: string): StoredOperation | undefined {
    if (!ID.test(id)) return undefined
    try {
      const bytes = readRegularFileSync(this.#path(id), { maxBytes: MAX_BYTES, links: 'refuse' })
      const read = v.safeParse(StoredOperation, JSON.parse(String(bytes)))
      return read.success && read.output.operation_id === id ? read.output : undefined
    } catch {
      return undefined
    }
  }

  /** The newest first. */
  list(): StoredOperation[] {
    return this.#ids()
      .flatMap(id => this.read(id) ?? [])
      .sort((a, b) => (a.started_at < b.started_at ? 1 : -1))
  }

  /** The newest that has not ended. */
  open(): StoredOperation | undefined {
    return this.list().find(({ status }) => isOpen(status))
  }

  /** On the disk when it returns. @throws what the system says */
  write(operation: StoredOperation): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    const path = this.#path(operation.operation_id)
    const temporary = `${path}.tmp`
    // Whatever lies there goes: opening a pipe would wait for its reader.
    rmSync(temporary, { recursive: true, force: true })
    const file = openSync(temporary, 'wx', 0o600)
    try {
      writeSync(file, `${JSON.stringify(operation)}\n`)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    const folder = openSync(this.folder, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  }

  /**
   * Takes an operation to a status, over those on the way there. Returns it as it is then; where no way leads there, it has ended
   * and stays as it is.
   * @param at RFC 3339
   */
  advance(id: string, to: RestartStatus, at: string, more: Partial<StoredOperation> = {}): StoredOperation | undefined {
    let operation = this.read(id)
    for (const status of operation ? (wayTo(operation.status, to) ?? []) : []) {
      const ended = isOpen(status) ? {} : { completed_at: at }
      operation = { ...(operation as StoredOperation), ...more, ...ended, status, updated_at: at }
      this.write(operation)
    }
    return operation
  }

  /** Removes what need not be kept: of those that have ended all but the newest, and the old. @param now epoch milliseconds */
  prune(now: number): void {
    const ended = this.list().filter(({ status }) => !isOpen(status))
    const kept = new Set(
      ended
        .filter(({ started_at }, n) => n < KEPT && now - Date.parse(started_at) < KEPT_MS)
        .map(one => one.operation_id),
    )
    for (const { operation_id: id } of ended) if (!kept.has(id)) rmSync(this.#path(id), { force: true })
  }

  #ids(): string[] {
    try {
      return readdirSync(this.folder).flatMap(name => {
        const id = name.replace(/\.json$/, '')
        return name !== id && ID.test(id) ? [id] : []
      })
    } catch {
      return []
    }
  }

  #path(id: string): string {
    return join(this.folder, `${id}.json`)
  }
}
