/** `svc/plugins/changes`: what a request would change, and the way back from a change. */

import * as v from 'valibot'
import type { AnnotationKind } from '../../../kernel/kit/annotations/index.js'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { type Annotation, defineErrors, gate, hookTable, pipeline, type TapsOf, token } from '../../../kernel/plugin.js'

/** A request as it is sent in the process: path and query, and a body of JSON. */
export interface ChangeRequest {
  readonly method: string
  readonly path: string
  readonly body?: unknown
}

/** A change that succeeded, as far as the way back needs it. */
export interface ChangeSeen {
  readonly params: Readonly<Record<string, string>>
  /** With its `?`; empty where there is none. */
  readonly query: string
  /** Decoded by the schema of the route. */
  readonly body: unknown
  /** What the read showed before the change; undefined: nothing was there. Of several reads a list. */
  readonly before: unknown
  /** The same after the change. */
  readonly after: unknown
}

/**
 * The way back from a change:
 * - `put`: a PUT of the same path with those members of `before` (below the path `of`) that its body takes, or, where nothing was there,
 *   a DELETE; `absent` has the values by which a PUT that leaves absent members as they are removes them
 * - `patch`: a PATCH of the same path with those members that the request had; `in` names the member of body and state that they are in
 * - `create`: a POST to the list above, with those members of `before` that its body takes; the thing gets another id
 * - `delete`: a DELETE below the path; the reply names the new thing at `of`
 * - `record`: the record as it was, without a read
 * - `action`: a POST to another path with the same parameters
 * - `custom`: whatever `request` says; a text says why there is no way back
 * - `never`: there is none, for a reason
 */
export type Undo =
  | { readonly by: 'create' | 'delete'; readonly of: string }
  | { readonly by: 'put'; readonly of: string; readonly absent?: Readonly<Record<string, unknown>> }
  | { readonly by: 'patch'; readonly of: string; readonly in?: string }
  | { readonly by: 'record' }
  | { readonly by: 'action'; readonly path: string }
  | {
      readonly by: 'custom'
      /** Paths and queries of the reads that show what is changed. */
      readonly reads: (asked: Pick<ChangeSeen, 'params' | 'query' | 'body'>) => readonly string[]
      readonly request: (seen: ChangeSeen) => ChangeRequest | string
      /** Path of what counts in a state; default: the whole. */
      readonly of?: string
      /** Members there that say whether it is as it was; default: all but times. */
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
    v.strictObject({ by: v.literal('action'), path: text }),
    v.strictObject({
      by: v.literal('custom'),
      reads: v.function(),
      request: v.function(),
      of: v.exactOptional(text),
      compares: v.exactOptional(v.array(text)),
    }),
    v.strictObject({ by: v.literal('never'), why: text }),
  ]) as unknown as v.GenericSchema<unknown, Undo>,
}

/** The way back from what a route changes. A route without this annotation has none. */
export const undo = (way: Undo): Annotation => ({ of: UndoKind.of, data: way })

export { pick } from './members.js'

/** What is to be put back, for plugins whose work may depend on it. */
export interface Undoing {
  /** `jobs.changed`, as the audit calls the change. */
  readonly action: string
  readonly subject: string
  /** Path template of the route that made the change. */
  readonly path: string
  readonly params: Readonly<Record<string, string>>
}

/** A request of which a plan is made. */
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
    'The lines that a plan says beside its members. A tap adds what a person should know, such as a schedule in words.',
  ),
  undoing: gate<[undoing: Undoing]>(
    'undoing',
    'Before a change is undone. A tap refuses it while a run uses what would be put back.',
  ),
})

export interface ChangesApi extends TapsOf<typeof points> {}

export const Changes = token<ChangesApi>('changes@1')

export const ChangeErrors = defineErrors({
  plan_outdated: {
    status: 409,
    message:
      'nothing was changed: what the request changes is not as it was when the plan was made; plan it again: --dry-run',
  },
  plan_refused: { status: 400, message: 'the plan is not valid' },
  change_not_found: { status: 404, message: 'no such change is remembered', next: command('change list') },
  undo_impossible: { status: 409, message: 'the change cannot be undone', next: command('change list') },
  undo_refused: {
    status: 409,
    message: 'the request that would undo the change is refused',
    next: command('change list'),
  },
  undo_outdated: { status: 409, message: 'what was changed has been changed again since then' },
})
