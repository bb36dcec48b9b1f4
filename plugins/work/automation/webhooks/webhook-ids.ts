import type { Tx } from '../../../../kernel/plugin.js'
import type { K } from '../needs.js'
import type { TriggerRecord } from '../triggers/trigger-kind.js'

/** Maps triggers to webhook ids. */
export const webhookTable = `CREATE TABLE automation_webhook (
    trigger_id TEXT NOT NULL UNIQUE, webhook_id TEXT NOT NULL UNIQUE
  ) STRICT;`

/** Webhook ids: the one of the definition, else a random one. */
export class WebhookIds {
  constructor(private readonly kernel: K) {}

  /** A new id with 128 random bits. */
  make(): string {
    return `wbh_${this.kernel.ids.hex(16)}`
  }

  of(trigger: string): string | undefined {
    const row = this.kernel.db.row('SELECT webhook_id FROM automation_webhook WHERE trigger_id = ?', [trigger])
    return row && String(row[0])
  }

  trigger(webhookId: string): string | undefined {
    const row = this.kernel.db.row('SELECT trigger_id FROM automation_webhook WHERE webhook_id = ?', [webhookId])
    return row && String(row[0])
  }

  /** Stores the id of the definition; a definition without one keeps its first random id. */
  project(t: Tx, { id, spec }: TriggerRecord): void {
    if (spec.event !== 'webhook') {
      this.remove(t, id)
      return
    }
    const webhookId = spec.webhook_id || this.of(id) || this.make()
    t.run(
      `INSERT INTO automation_webhook (trigger_id, webhook_id) VALUES (?, ?)
       ON CONFLICT (trigger_id) DO UPDATE SET webhook_id = excluded.webhook_id`,
      [id, webhookId],
    )
  }

  remove(t: Tx, trigger: string): void {
    t.run('DELETE FROM automation_webhook WHERE trigger_id = ?', [trigger])
  }
}
