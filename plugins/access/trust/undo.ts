import { command } from '../../../kernel/kit/commands/command-line.js'
import type { WorkspaceTrust } from '../../../schemas/workspaces/trust.js'
import type { Undo } from '../../desk/changes/api.js'

const trustIn = (state: unknown): WorkspaceTrust | undefined => Object(state).trust

/** Undo of granted or revoked trust. If the files have changed since, a person has to review them. */
export const trustUndo: Undo = {
  by: 'custom',
  of: 'trust',
  compares: ['state', 'digest'],
  reads: ({ path }) => [path],
  request: ({ path, params, before }) => {
    const was = trustIn(before)
    if (was?.state === 'trusted') return { method: 'PUT', path, body: { digest: was.digest } }
    return was?.state === 'changed'
      ? `the files trusted before have changed; review the current ones and decide: ${command('workspace trust-status', params.id ?? '')}`
      : { method: 'DELETE', path }
  },
}
