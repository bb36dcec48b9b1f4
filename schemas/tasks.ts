/** The schemas of tasks, task runs and leases that other areas need. */
import * as v from 'valibot'

/** Who a task belongs to. */
export const Owner = v.strictObject({
  kind: v.picklist(['human', 'agent_session', 'automation', 'extension', 'network_peer', 'pool']),
  ref: v.string(),
})
export type Owner = v.InferOutput<typeof Owner>
