/** What other areas need of tasks (Specification B, Task, task run and lease). */
import * as v from 'valibot'

/** Who a task belongs to. */
export const Owner = v.strictObject({
  kind: v.picklist(['human', 'agent_session', 'automation', 'extension', 'network_peer', 'pool']),
  ref: v.string(),
})
export type Owner = v.InferOutput<typeof Owner>
