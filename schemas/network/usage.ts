/** Cost of wakes caused by messages. */
import * as v from 'valibot'
import { queryInteger } from '../kernel/common.js'

/** Filter of the listed wakes. */
export const NetworkUsageQuery = v.object({
  owner_kind: v.optional(
    v.pipe(
      v.picklist(['session', 'task_run', 'loop_run', 'automation_run']),
      v.description('only wakes charged to owners of this kind: session or task_run'),
    ),
  ),
  owner_id: v.optional(v.pipe(v.string(), v.description('only wakes charged to this owner'))),
  run_id: v.optional(v.pipe(v.string(), v.description('only those of sessions that work on this task run'))),
  channel: v.optional(v.pipe(v.string(), v.description('only those of this channel'))),
  cursor: v.optional(v.pipe(v.string(), v.description('cursor of the page before'))),
  limit: v.optional(v.pipe(queryInteger(1, 500), v.description('maximum number, 1 to 500 (default 50)'))),
})
export type NetworkUsageQuery = v.InferOutput<typeof NetworkUsageQuery>
