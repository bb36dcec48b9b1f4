import { command } from '../../../kernel/kit/commands/command-line.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { finding } from '../../desk/daemon/api.js'
import { decodeJob, JobKind } from './job-kind.js'
import type { K } from './needs.js'
import { AutomationSettings, MACHINE_ZONE } from './settings.js'
import { machineTimezone } from './zone.js'

/** The default zone of cron expressions in earlier versions. */
const FORMER = 'UTC'

/**
 * One row, written by the first start with this table: `wanted` and `written` mark homes with cron jobs from before the default
 * became the zone of the machine. Their expressions stay in UTC; `written`: config.json contains that zone.
 */
export const keptZoneTable = 'CREATE TABLE automation_kept_zone (state TEXT NOT NULL) STRICT;'
type State = 'none' | 'wanted' | 'written'

/** The time zone of cron expressions that name none. */
export class DefaultZone {
  /** An IANA name. */
  readonly name: string
  readonly #setting: string
  readonly #machine: string
  readonly #mustWrite: boolean

  constructor(private readonly kernel: K) {
    this.#setting = kernel.config.get(AutomationSettings.timezone)
    this.#machine = machineTimezone(kernel.env.TZ)
    const state = this.#state
    const isOpen = state === undefined || state === 'wanted'
    this.#mustWrite = this.#setting === MACHINE_ZONE && isOpen && this.#hasCron()
    this.name = this.#setting !== MACHINE_ZONE ? this.#setting : this.#mustWrite ? FORMER : this.#machine
  }

  /**
   * Writes the zone of an older home into config.json, so that its jobs keep their times; clears the mark once the setting has
   * changed.
   */
  async settle(): Promise<void> {
    const isOver = this.#state === 'written' && this.#setting !== FORMER
    if (this.#mustWrite) await this.#keep((await this.#write()) ? 'written' : 'wanted')
    else if (this.#state === undefined || this.#state === 'wanted' || isOver) await this.#keep('none')
  }

  /**
   * Writes the former zone into config.json; returns whether it is there. After a failure the next start tries again, and the jobs
   * run in UTC until then.
   */
  async #write(): Promise<boolean> {
    const configuration = this.kernel.needs.configuration.current
    if (!configuration) return false
    try {
      await configuration.write([{ path: AutomationSettings.timezone.path, value: FORMER }])
      return true
    } catch (error) {
      this.kernel.log.warn(`automation.timezone was not written to config.json: ${messageOf(error)}`)
      return false
    }
  }

  async #keep(state: State): Promise<void> {
    if (state === this.#state) return
    await this.kernel.db.tx(t => {
      t.run('DELETE FROM automation_kept_zone')
      t.run('INSERT INTO automation_kept_zone (state) VALUES (?)', [state])
    })
  }

  /** Doctor item of an older home whose jobs stayed in UTC. */
  items(): DiagnosticItem[] {
    if (this.#state !== 'written') return []
    const message =
      this.#machine === FORMER
        ? 'they were created before the zone of the machine became the default; config.json says so now'
        : `they were created before the zone of the machine, ${this.#machine}, became the default; to read them in that zone unset the setting and restart the daemon`
    return [
      finding({
        id: 'scheduler:timezone',
        code: 'automation_timezone_kept',
        category: 'automation',
        severity: 'info',
        title: 'cron expressions of this home are read in UTC (automation.timezone)',
        message,
        suggested_command: command('config unset', AutomationSettings.timezone.path),
      }),
    ]
  }

  get #state(): State | undefined {
    return this.kernel.db.row('SELECT state FROM automation_kept_zone')?.[0] as State | undefined
  }

  /** Whether a job has a cron expression without a zone of its own. */
  #hasCron(): boolean {
    return this.kernel.records.list({ kind: JobKind.name }).some(record => {
      const schedule = decodeJob(record)?.spec.schedule
      return schedule?.mode === 'cron' && schedule.timezone === undefined
    })
  }
}
