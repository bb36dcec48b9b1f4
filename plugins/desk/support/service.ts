import { lstat, mkdir, readdir, rm } from 'node:fs/promises'
import { aborted } from '../../../kernel/kit/backoff.js'
import { replaceDurably } from '../../../kernel/kit/durable-file.js'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { Serial } from '../../../kernel/kit/serial.js'
import { clip } from '../../../kernel/kit/text.js'
import { iso, messageOf } from '../../../kernel/plugin.js'
import type {
  CreateSupportBundleBody,
  SupportManifest,
  SupportOperation,
  SupportStatus,
} from '../../../schemas/daemon/support.js'
import { SupportErrors } from './api.js'
import { FOLDER, Limits, MOST_WAITING, RETENTION_MS } from './limits.js'
import type { K } from './needs.js'
import { hasEnded, transitions } from './states.js'

/** Archive names. No other file in the folder is ever removed. */
const ARCHIVE = /^svc-support-\d{8}T\d{6}Z-sup_[0-9a-f]{16}\.tar\.gz$/
const PART = /^\.svc-support-[\w.-]+\.tmp$/
/** Longest wait in milliseconds of a request for an operation. */
const WAIT_MS = 25_000

interface Operation {
  readonly id: string
  readonly createdAt: number
  readonly includeStatus: boolean
  status: SupportStatus
  updatedAt: number
  completedAt?: number
  fileName?: string
  sizeBytes?: number
  failureReason?: string
  manifest?: SupportManifest
  readonly ended: Promise<void>
  readonly end: () => void
}

/** Makes support bundles one at a time, and removes them after a day. */
export class SupportService {
  readonly #operations = new Map<string, Operation>()
  readonly #worker = new Serial()
  #wake: () => void = () => {}

  constructor(private readonly kernel: K) {}

  /** Starts a bundle. @throws Fault `bundle_consent_required`, `support_queue_full` */
  create({ yes, include_status: includeStatus }: CreateSupportBundleBody): SupportOperation {
    if (!yes) throw SupportErrors.bundle_consent_required()
    const { clock, ids } = this.kernel
    this.#forget()
    const waiting = [...this.#operations.values()].filter(({ status }) => !hasEnded(status))
    if (waiting.length > MOST_WAITING) throw SupportErrors.support_queue_full(undefined, { retryAfter: 10 })
    const at = clock.now()
    let end = () => {}
    const ended = new Promise<void>(resolve => {
      end = resolve
    })
    const operation: Operation = {
      id: ids.id('sup'),
      createdAt: at,
      updatedAt: at,
      includeStatus: includeStatus !== false,
      status: 'pending',
      ended,
      end,
    }
    this.#operations.set(operation.id, operation)
    void this.#worker.run(() => this.#make(operation))
    return toWire(operation)
  }

  /** @param wait whether to wait a limited time for the operation to end. @throws Fault `support_bundle_not_found` */
  async show(id: string, wait: boolean, signal: AbortSignal): Promise<SupportOperation> {
    const operation = this.#find(id)
    if (wait && !hasEnded(operation.status)) {
      const over = new AbortController()
      const { clock } = this.kernel
      const late = clock.sleep(WAIT_MS, AbortSignal.any([signal, over.signal])).catch(() => {})
      await Promise.race([operation.ended, late])
      over.abort()
    }
    return toWire(operation)
  }

  /** The archive. @throws Fault `support_bundle_not_found`, `support_bundle_not_ready` */
  async download(id: string): Promise<{ readonly name: string; readonly bytes: Buffer }> {
    const { status, fileName, failureReason } = this.#find(id)
    if (status !== 'completed' || fileName === undefined) {
      const why = failureReason === undefined ? `it is ${status}` : `it failed: ${failureReason}`
      throw SupportErrors.support_bundle_not_ready(`the support bundle ${id} cannot be downloaded: ${why}`)
    }
    const bytes = await readRegularFile(this.#path(fileName), { maxBytes: 2 * Limits.bundle, links: 'refuse' })
    if (bytes) return { name: fileName, bytes }
    throw SupportErrors.support_bundle_not_found(`${this.#path(fileName)} was removed`)
  }

  /** Removes expired archives of this and of earlier daemons. Waits while there are none. */
  async retain(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.kernel
    while (!signal.aborted) {
      const woken = new Promise<void>(resolve => {
        this.#wake = resolve
      })
      this.#forget()
      const next = await this.#sweep().catch(error => {
        log.warn(`archives of support bundles cannot be removed: ${messageOf(error)}`)
        return clock.now() + RETENTION_MS
      })
      if (signal.aborted) return
      // The clock may have moved during the sweep, so the wait is counted from now.
      const wait = next === undefined ? undefined : next - clock.now()
      if (wait !== undefined && wait <= 0) continue
      const over = new AbortController()
      const both = AbortSignal.any([signal, over.signal])
      const due = wait === undefined ? aborted(both) : clock.sleep(wait, both).catch(() => {})
      await Promise.race([woken, due])
      over.abort()
    }
  }

  async #make(operation: Operation): Promise<void> {
    const { clock, home, scope } = this.kernel
    try {
      scope.signal.throwIfAborted()
      this.#advance(operation, 'running')
      const { makeBundle } = await import('./bundle/make.js')
      const { archive, manifest } = await makeBundle(this.kernel, operation)
      scope.signal.throwIfAborted()
      const name = `svc-support-${iso(operation.createdAt).replace(/[-:]|\.\d+/g, '')}-${operation.id}.tar.gz`
      await mkdir(home.path(FOLDER), { recursive: true, mode: 0o700 })
      await replaceDurably(this.#path(name), archive)
      Object.assign(operation, { fileName: name, sizeBytes: archive.length, manifest, completedAt: clock.now() })
      this.#advance(operation, 'completed')
    } catch (error) {
      operation.failureReason = scope.signal.aborted
        ? 'the daemon stopped'
        : this.kernel.redact.text(messageOf(error), 500)
      operation.completedAt = clock.now()
      this.#advance(operation, 'failed')
    }
    operation.end()
    this.#wake()
  }

  #advance(operation: Operation, to: SupportStatus): void {
    if (!transitions[operation.status].includes(to))
      throw new TypeError(`the status cannot change from ${operation.status} to ${to}`)
    operation.status = to
    operation.updatedAt = this.kernel.clock.now()
  }

  #find(id: string): Operation {
    this.#forget()
    const operation = this.#operations.get(id)
    if (!operation) throw SupportErrors.support_bundle_not_found(`there is no support bundle ${clip(id, 80)}`)
    return operation
  }

  /** Operations expire together with their archives. */
  #forget(): void {
    const now = this.kernel.clock.now()
    for (const [id, { completedAt }] of this.#operations)
      if (completedAt !== undefined && now - completedAt >= RETENTION_MS) this.#operations.delete(id)
  }

  /** @returns epoch milliseconds when the next archive expires; undefined if there are none */
  async #sweep(): Promise<number | undefined> {
    const now = this.kernel.clock.now()
    const names = await readdir(this.kernel.home.path(FOLDER)).catch(() => [])
    let next: number | undefined
    for (const name of names) {
      if (!ARCHIVE.test(name) && !PART.test(name)) continue
      const about = await lstat(this.#path(name)).catch(() => undefined)
      if (!about?.isFile()) continue
      // After the clock was set back, modification times lie in the future: count from now.
      const due = Math.min(now, about.mtimeMs) + RETENTION_MS
      if (due <= now) await rm(this.#path(name), { force: true })
      else next = Math.min(next ?? due, due)
    }
    return next === undefined ? undefined : next + 1
  }

  #path(name: string): string {
    return this.kernel.home.path(FOLDER, name)
  }
}

function toWire(operation: Operation): SupportOperation {
  const { id, status, createdAt, updatedAt, completedAt, fileName, sizeBytes, failureReason, manifest } = operation
  const url = `/api/support/bundles/${id}`
  return {
    operation_id: id,
    status,
    status_url: url,
    ...(status === 'completed' && { download_url: `${url}/download` }),
    ...(fileName !== undefined && { file_name: fileName }),
    ...(sizeBytes !== undefined && { size_bytes: sizeBytes }),
    ...(failureReason !== undefined && { failure_reason: failureReason }),
    created_at: iso(createdAt),
    updated_at: iso(updatedAt),
    completed_at: completedAt === undefined ? null : iso(completedAt),
    manifest: manifest ?? null,
  }
}
