import * as v from 'valibot'
import { event } from '../contract/event.js'
import type { Scope } from '../contract/scope.js'
import type { KernelHooks } from '../hooks/kernel-hooks.js'
import { kernelTapper } from '../hooks/kernel-hooks.js'
import type { EventLog } from './log.js'

const changed = v.object({ kind: v.string(), id: v.string(), version: v.number(), created: v.optional(v.boolean()) })
export const RecordPut = event('record.put', changed)
export const RecordDeleted = event('record.deleted', changed)

/** Tells of every record change in the transaction that makes it. */
export function tellOfRecords(hooks: KernelHooks, scope: Scope, events: EventLog): void {
  hooks.written.tap(kernelTapper(scope), (t, written) => {
    const { verb, actor } = written.change
    const record = verb === 'put' ? written.change.after : written.change.before
    const { kind, id, version } = record
    const created = verb === 'put' && version === 1
    const told = events.emit(
      t,
      verb === 'put' ? RecordPut : RecordDeleted,
      { kind, id, version, ...(created ? { created } : {}) },
      { actor, scope: record.scope.id, subject: `${kind}/${id}` },
    )
    written.event = told.id
  })
}
