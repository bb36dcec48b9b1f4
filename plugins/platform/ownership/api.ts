/** `svc/plugins/ownership`: deletes rows that belong to ended things of other plugins. */
import { type Token, type Tx, token } from '../../../kernel/plugin.js'

export interface OwnershipApi {
  /**
   * Declares that the plugin reports ended things of this token, until it is released. Without such a plugin, ends may go
   * unnoticed, so all rows are checked once there is one again. Throws TypeError when another plugin does it already.
   * @param has whether a thing with this id exists
   */
  owns(of: Token<unknown>, has: (id: string) => boolean): void
  /**
   * Reports an ended thing, in the transaction that ends it. Rows that plugins list as `owned` by it are deleted, at once or when
   * their plugin runs again. Throws TypeError when the calling plugin does not own such things.
   */
  tombstone(t: Tx, of: Token<unknown>, id: string): void
  /** Whether a thing has ended and may still have rows. Statements use {@link notEnded} instead. */
  isEnded(of: Token<unknown>, id: string): boolean
}

export const Ownership = token<OwnershipApi>('ownership@1')

/**
 * SQL that excludes rows of ended things, which exist until they are deleted: `SELECT … WHERE ${notEnded(Workspaces,
 * 'workspace_id')}`. The column must be a constant.
 */
export const notEnded = ({ id }: Token<unknown>, column: string): string =>
  `NOT EXISTS (SELECT 1 FROM ownership_tombstone AS ended WHERE ended.kind = '${id}' AND ended.id = ${column})`
