/** `svc/plugins/ownership`: what has ended, and the rows that go with it. */
import { registry, type Token, type Tx, token } from '../../kernel/plugin.js'

/** Things that rows of other plugins hang on, by their ids; contributed by the plugin that provides the token. */
export interface Owner {
  readonly of: Token<unknown>
  /** Whether there is one with this id. */
  readonly has: (id: string) => boolean
}

export const Owners = registry<Owner>('ownership.owners@1')

export interface OwnershipApi {
  /**
   * A thing has ended, in the transaction that ends it: rows that plugins list as `owned` by it are deleted, at once or when their
   * plugin runs again. Throws TypeError where the plugin that calls contributes no {@link Owner} of such things.
   */
  tombstone(t: Tx, of: Token<unknown>, id: string): void
  /** Whether a thing has ended and rows of it may still be there. A statement asks with {@link notEnded}. */
  isEnded(of: Token<unknown>, id: string): boolean
}

export const Ownership = token<OwnershipApi>('ownership@1')

/**
 * SQL that leaves out rows of what has ended, which stay until they are deleted: `SELECT … WHERE ${notEnded(Workspaces,
 * 'workspace_id')}`. The column is a constant.
 */
export const notEnded = ({ id }: Token<unknown>, column: string): string =>
  `NOT EXISTS (SELECT 1 FROM ownership_tombstone AS ended WHERE ended.kind = '${id}' AND ended.id = ${column})`
