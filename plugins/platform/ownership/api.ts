/** `svc/plugins/ownership`: what has ended, and the rows that go with it. */
import { type Token, type Tx, token } from '../../../kernel/plugin.js'

export interface OwnershipApi {
  /**
   * The plugin says when things of this token end, from now on until it is released. Without such a plugin nothing is known of what
   * ends: rows are looked through when there is one again. Throws TypeError where another plugin does so.
   * @param has whether there is a thing with this id
   */
  owns(of: Token<unknown>, has: (id: string) => boolean): void
  /**
   * A thing has ended, in the transaction that ends it: rows that plugins list as `owned` by it are deleted, at once or when their
   * plugin runs again. Throws TypeError where the plugin that calls does not own such things.
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
