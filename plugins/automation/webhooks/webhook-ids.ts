import type { PluginKernel, Tx } from '../../../kernel/plugin.js'
import type { TriggerRecord } from '../triggers/trigger-kind.js'

/** The id of each webhook, and by it its trigger. */
export const webhookTable = `CREATE TABLE automation_webhook (
    trigger_id TEXT NOT NULL UNIQUE, webhook_id TEXT NOT NULL UNIQUE
  ) STRICT;`

/** Ids of webhooks: those that their definitions name, and for the others one that nobody can guess. */
export class WebhookIds {
  constructor(private readonly kernel: Pick<PluginKernel, 'db' | 'ids'>) {}

  /** A new id, of 128 random bits. */
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

  /** What the definition says; one that names no id keeps the one that it was given first. */
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
