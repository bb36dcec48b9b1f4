import { mkdirSync, readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { jsonFileSync } from '../../../kernel/kit/json-file.js'
import { RestartOperation, type RestartStatus } from '../../../schemas/daemon/restart.js'
import { isOpen, wayTo } from './states.js'

/** A stored operation, with the process that carries it out between the two daemons, or a flag for a service manager. */
export const StoredOperation = v.object({
  ...RestartOperation.entries,
  helper_pid: v.optional(v.number()),
  external: v.optional(v.literal(true)),
})
export type StoredOperation = v.InferOutput<typeof StoredOperation>

/** Number of ended operations that are kept, and for how many milliseconds. */
const KEPT = 20
const KEPT_MS = 30 * 24 * 3_600_000
const ID = /^rst_[0-9a-f]{16}$/

/**
 * The restarts of a home, one file each, written durably and atomically. Three processes take part in a restart and read its
 * progress. Only one writes at a time: the old daemon up to `stopping`, then the helper, then the daemon that holds the lock.
 */
export class Operations {
  readonly folder: string

  /** @param home absolute */
  constructor(home: string) {
    this.folder = join(home, 'restarts')
  }

  /** Undefined for a missing operation, and for a file that was not written here. */
  read(id: string): StoredOperation | undefined {
    if (!ID.test(id)) return undefined
    try {
      const read = this.#file(id).read()
      return read?.operation_id === id ? read : undefined
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

  /** The newest operation that has not ended. */
  open(): StoredOperation | undefined {
    return this.list().find(({ status }) => isOpen(status))
  }

  /** Writes an operation durably. @throws the system's error */
  write(operation: StoredOperation): void {
    mkdirSync(this.folder, { recursive: true, mode: 0o700 })
    this.#file(operation.operation_id).write(operation)
  }

  /**
   * Advances an operation to a status, through those in between, and returns it. Without a path to the status the operation has
   * ended and is returned unchanged.
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

  /** Removes ended operations that are old or exceed the number to keep. @param now epoch milliseconds */
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

  #file(id: string) {
    return jsonFileSync(this.#path(id), StoredOperation, null)
  }

  #path(id: string): string {
    return join(this.folder, `${id}.json`)
  }
}
