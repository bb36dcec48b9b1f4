/** `svc/plugins/changes`: plans of requests, and undo of changes. */

import * as v from 'valibot'
import type { AnnotationKind } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Annotation, defineErrors, gate, hookTable, pipeline, type TapsOf, token } from '../../../kernel/plugin.js'

/** An in-process request: path with query, and a JSON body. */
export interface ChangeRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** A successful change, as needed to undo it. */
export interface ChangeSeen {
  /** Path of the request, without its query. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
  /** Query with its `?`; empty if there is none. */
  readonly query: string
  /** Decoded by the schema of the route. */
  readonly body: unknown
  /** The state read before the change; undefined if nothing existed. A list if there are several reads. */
  readonly before: unknown
  /** The state read after the change, in the same form. */
  readonly after: unknown
}

/**
 * How a change is undone:
 * - `put`: a PUT of the same path with the members of `before` (below the path `of`) that its body takes; a DELETE if nothing
 *   existed before. `absent` holds the values that clear a member, for a PUT that keeps omitted members
 * - `patch`: a PATCH of the same path with the former values of the request's members; `in` names the member of body and state
 *   that contains them
 * - `create`: a POST to the parent list with the members of `before` that its body takes; the recreated object has a new id
 * - `delete`: a DELETE below the path; the reply names the new object at `of`
 * - `record`: restores the former record, without a read
 * - `action`: a POST to the neighbouring route of that verb, with the same parameters: `resume` for a route that ends in `/pause`.
 *   `path` names its whole path template instead, for extensions
 * - `custom`: the request that `request` returns; a text says why the change cannot be undone
 * - `never`: the change cannot be undone, with the reason
 */
export type Undo =
  | { readonly by: 'create' | 'delete'; readonly of: string }
  | { readonly by: 'put'; readonly of: string; readonly absent?: Readonly<Record<string, unknown>> }
  | { readonly by: 'patch'; readonly of: string; readonly in?: string }
  | { readonly by: 'record' }
  | { readonly by: 'action'; readonly verb: string }
  | { readonly by: 'action'; readonly path: string }
  | {
      readonly by: 'custom'
      /** Paths and queries of the reads that show the changed state. */
      readonly reads: (request: Pick<ChangeSeen, 'path' | 'params' | 'query' | 'body'>) => readonly string[]
      readonly request: (change: ChangeSeen) => ChangeRequest | string
      /** The state after the change according to its reply; default: the state is read again. */
      readonly after?: (reply: unknown, change: Pick<ChangeSeen, 'body' | 'before'>) => unknown
      /** The event that the request causes if it changes the state, which is `before` until then. Nothing is read before the request. */
      readonly event?: { readonly name: string; readonly before: unknown }
      /** Path of the compared part of a state; default: the whole state. */
      readonly of?: string
      /** Members, or dotted paths of such, that are compared to detect later changes; default: all except times. */
      readonly compares?: readonly string[]
    }
  | { readonly by: 'never'; readonly why: string }

const text = v.string()
export const UndoKind: AnnotationKind<Undo> = {
  of: 'undo@1',
  schema: v.variant('by', [
    v.strictObject({ by: v.picklist(['create', 'delete']), of: text }),
    v.strictObject({ by: v.literal('put'), of: text, absent: v.exactOptional(v.record(text, v.unknown())) }),
    v.strictObject({ by: v.literal('patch'), of: text, in: v.exactOptional(text) }),
    v.strictObject({ by: v.literal('record') }),
    v.strictObject({ by: v.literal('action'), verb: text }),
    v.strictObject({ by: v.literal('action'), path: text }),
    v.strictObject({
      by: v.literal('custom'),
      reads: v.function(),
      request: v.function(),
      after: v.exactOptional(v.function()),
      event: v.exactOptional(v.strictObject({ name: text, before: v.unknown() })),
      of: v.exactOptional(text),
      compares: v.exactOptional(v.array(text)),
    }),
    v.strictObject({ by: v.literal('never'), why: text }),
  ]) as unknown as v.GenericSchema<unknown, Undo>,
}

/** Annotates a route with the undo of its changes. Without this annotation, changes cannot be undone. */
export const undo = (way: Undo): Annotation => ({ of: UndoKind.of, data: way })

export { pick } from './members.js'

/** The change to be undone, for plugins whose work may depend on it. */
export interface Undoing {
  /** Name of the change in the audit, such as `jobs.changed`. */
  readonly action: string
  readonly subject: string
  /** Path template of the route that made the change. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

/** A request to be planned. */
export interface Planning {
  readonly method: string
  /** Path template of the route. */
  readonly path: string
  /** Decoded by the schema of the route. */
  readonly body: unknown
}

/** The hooks of changes. */
export const points = hookTable({
  planning: pipeline<readonly string[], [planning: Planning]>(
    'planning',
    'Explanatory lines of a plan. A tap adds information for the reader, such as a schedule in words.',
  ),
  undoing: gate<[undoing: Undoing]>(
    'undoing',
    'Before a change is undone. A tap refuses it while a run uses the data that would be restored.',
  ),
})

export interface ChangesApi extends TapsOf<typeof points> {}

export const Changes = token<ChangesApi>('changes@1')

export const ChangeErrors = defineErrors({
  plan_outdated: {
    status: 409,
    message: 'nothing was changed: the target has changed since the plan was made; plan it again: --dry-run',
  },
  plan_refused: { status: 400, message: 'the plan is not valid' },
  change_not_found: { status: 404, message: 'no such change is recorded', next: command('change list') },
  undo_impossible: { status: 409, message: 'the change cannot be undone', next: command('change list') },
  undo_refused: {
    status: 409,
    message: 'the request that would undo the change is refused',
    next: command('change list'),
  },
  undo_outdated: { status: 409, message: 'the target has been changed again since then' },
})
