import { command } from '../../../../kernel/kit/commands/command-line.js'
import { iso } from '../../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../../schemas/kernel/diagnostic.js'
import { finding } from '../../../desk/daemon/api.js'
import type { FailedRevocation } from './farewells.js'

/** Logins that get an item of their own. */
const NAMED = 20

/**
 * The doctor's items for removed logins that are not revoked. @param hasWorkspace whether a workspace is still
 * registered
 */
export function revocationItems(
  failed: readonly FailedRevocation[],
  hasWorkspace: (id: string) => boolean,
): DiagnosticItem[] {
  const items = failed.slice(0, NAMED).map(({ id, server, workspaceId, login, attempts, why, nextAt }) => {
    const tries = attempts === 1 ? '1 attempt' : `${attempts} attempts`
    const workspaceOption = workspaceId !== undefined && hasWorkspace(workspaceId) ? ['--workspace', workspaceId] : []
    const common = {
      id: `mcp.revocations:${id}`,
      category: 'mcp',
      severity: 'warning',
      suggested_command: command('mcp auth logout', server, ...workspaceOption),
    } as const
    return nextAt === undefined
      ? finding({
          ...common,
          code: 'mcp_revocation_given_up',
          title: `The login to ${server} was not revoked`,
          message: `the login to ${server} was not revoked in ${tries} (${why}), and its tokens are deleted here; end it in your account at ${login.issuer}, then run the command to remove this item`,
        })
      : finding({
          ...common,
          code: 'mcp_revocation_pending',
          title: `The login to ${server} is not revoked yet`,
          message: `the login to ${server} was deleted here but is not revoked: ${why} (${tries}); the next attempt is at ${iso(nextAt)}, or now with the command`,
        })
  })
  if (failed.length <= NAMED) return items
  const more = failed.length - NAMED
  return [
    ...items,
    finding({
      ...{ id: 'mcp.revocations:more', category: 'mcp', severity: 'warning', code: 'mcp_revocation_pending' },
      title: 'More logins are not revoked',
      message: `${more} more logins were deleted here but are not revoked`,
    }),
  ]
}
