import type { Grant } from '../../../../schemas/tools.js'
import type { ChangeRequest, Undo } from '../../../desk/changes/api.js'

const PATH = '/api/tool-approval-grants'
const grantsIn = (state: unknown): readonly Grant[] => Object(state).grants ?? []

const again = ({ agent_name, decision, tool_id }: Grant, query: string): ChangeRequest => ({
  method: 'PUT',
  path: PATH + query,
  body: { decision, tool_id, ...(agent_name ? { scope: 'agent', agent_name } : { scope: 'tool' }) },
})

/**
 * The decision that differs between two lists; one for a single input cannot be restored, because no request creates
 * it.
 */
const missingIn = (all: readonly Grant[], others: readonly Grant[]) =>
  all.find(one => !others.some(({ id, decision }) => id === one.id && decision === one.decision))

/** Undo of a remembered decision: restores the former one, or removes it. */
export const ofGrant: Undo = {
  by: 'custom',
  reads: ({ query }) => [PATH + query],
  request: ({ query, before, after }) => {
    const [was, is] = [missingIn(grantsIn(before), grantsIn(after)), missingIn(grantsIn(after), grantsIn(before))]
    if (was) return again(was, query)
    return is ? { method: 'DELETE', path: `${PATH}/${encodeURIComponent(is.id)}${query}` } : 'no decision was added'
  },
}

/** Undo of a forgotten decision. */
export const ofForgetting: Undo = {
  by: 'custom',
  reads: ({ query }) => [PATH + query],
  request: ({ query, before, after }) => {
    const was = missingIn(grantsIn(before), grantsIn(after))
    if (!was) return 'the decision was not there'
    return was.input_digest === undefined
      ? again(was, query)
      : 'it was for one input, which is not stored; the next call asks again'
  },
}
