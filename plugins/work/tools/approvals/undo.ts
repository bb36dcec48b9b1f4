import type { Grant } from '../../../../schemas/tools.js'
import type { ChangeRequest, Undo } from '../../../desk/changes/api.js'

const PATH = '/api/tool-approval-grants'
const grantsIn = (state: unknown): readonly Grant[] => Object(state).grants ?? []

const again = ({ agent_name, decision, tool_id }: Grant, query: string): ChangeRequest => ({
  method: 'PUT',
  path: PATH + query,
  body: { decision, tool_id, ...(agent_name ? { scope: 'agent', agent_name } : { scope: 'tool' }) },
})

/** The decision that differs from one list to another; one that is remembered for a single input has no request that makes it. */
const missingIn = (all: readonly Grant[], others: readonly Grant[]) =>
  all.find(one => !others.some(({ id, decision }) => id === one.id && decision === one.decision))

/** The way back from a remembered decision: the one before it, or none. */
export const ofGrant: Undo = {
  by: 'custom',
  reads: ({ query }) => [PATH + query],
  request: ({ query, before, after }) => {
    const [was, is] = [missingIn(grantsIn(before), grantsIn(after)), missingIn(grantsIn(after), grantsIn(before))]
    if (was) return again(was, query)
    return is
      ? { method: 'DELETE', path: `${PATH}/${encodeURIComponent(is.id)}${query}` }
      : 'nothing was remembered anew'
  },
}

/** The way back from a decision that was forgotten. */
export const ofForgetting: Undo = {
  by: 'custom',
  reads: ({ query }) => [PATH + query],
  request: ({ query, before, after }) => {
    const was = missingIn(grantsIn(before), grantsIn(after))
    if (!was) return 'the decision was not there'
    return was.input_digest === undefined
      ? again(was, query)
      : 'it was for calls with one input, which is not kept; the next call asks again'
  },
}
