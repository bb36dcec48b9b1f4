import { column, table } from '../../../../kernel/kit/table.js'
import { iso, type Migration } from '../../../../kernel/plugin.js'
import type { ConsolePushSubscription } from '../../../../schemas/daemon/console.js'

export const pushMigration: Migration = {
  id: '002',
  sql: `CREATE TABLE console_push (
      id TEXT PRIMARY KEY, session_id TEXT NOT NULL UNIQUE, endpoint TEXT NOT NULL, p256dh TEXT NOT NULL, auth TEXT NOT NULL,
      created_at INTEGER NOT NULL, sent_at INTEGER, last_error TEXT
    ) STRICT`,
}

const { text, time } = column

/** A browser that receives messages, at most one per console session. The subscription ends with the session. */
export const subscriptions = table('console_push', {
  id: text(),
  session_id: text(),
  /**
   * The address at the push service. Replies omit it, because anyone with it and the keys could send to the browser.
   */
  endpoint: text(),
  p256dh: text(),
  auth: text(),
  created_at: time(),
  sent_at: time().nullable(),
  last_error: text().nullable(),
})
export type SubscriptionRow = NonNullable<ReturnType<typeof subscriptions.get>>

export const toWire = (row: SubscriptionRow): ConsolePushSubscription => ({
  id: row.id,
  session_id: row.session_id,
  service: new URL(row.endpoint).host,
  created_at: iso(row.created_at),
  ...(row.sent_at !== null && { last_sent: iso(row.sent_at) }),
  ...(row.last_error !== null && { last_error: row.last_error }),
})
