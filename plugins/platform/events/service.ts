import type { Faults, PluginKernel, PluginState, Tx, Written } from '../../../kernel/plugin.js'
import type { Journals } from '../journals/api.js'
import { PluginFailed, PluginLoaded, PluginUnloaded, points, RecordDeleted, RecordPut } from './api.js'
import { EventLog } from './log.js'
import { DAY_MS } from './rows.js'
import { EventSettings } from './settings.js'

/** Size of one file of the journal. */
const SEGMENT_BYTES = 8 * 1024 * 1024

/** The event log of a kernel, and the events about records and plugins. */
export class EventsService {
  readonly log: EventLog
  #sweeps = false

  constructor(private readonly kernel: PluginKernel<{ journals: typeof Journals; report: typeof Faults }>) {
    const { home, needs, scope } = kernel
    this.log = new EventLog(
      kernel,
      ({ owner, hook, error }) => needs.report(owner, hook, error),
      {
        folder: home.path('events'),
        segmentBytes: SEGMENT_BYTES,
        open: () => needs.journals.open(['events'], { intact: false, segmentBytes: SEGMENT_BYTES }),
      },
      {
        retentionMs: kernel.config.get(EventSettings.retentionDays) * DAY_MS,
        maxBytes: kernel.config.get(EventSettings.maxBytes),
      },
      kernel.hooks.of(points).written,
    )
    scope.defer('event log', () => this.log.close())
  }

  /** Begins to sweep, once everything runs. */
  running(): void {
    if (!this.#sweeps) this.log.start()
    this.#sweeps = true
  }

  /** Emits an event about a record change, in the transaction of the change. */
  written(t: Tx, written: Written): void {
    const { verb, actor } = written.change
    const record = verb === 'put' ? written.change.after : written.change.before
    const { kind, id, version } = record
    const about = { actor, scope: record.scope.id, subject: `${kind}/${id}` }
    const payload = { kind, id, version, ...(verb === 'put' && version === 1 ? { created: true } : {}) }
    const [event] = this.log.emitAll(t, [[verb === 'put' ? RecordPut : RecordDeleted, payload, about]])
    if (event) written.event = event.id
  }

  /** Emits an event about a plugin that started or stopped after the boot, or failed. */
  changed(name: string, state: PluginState): void {
    const { status } = state
    const type = status === 'active' ? PluginLoaded : status === 'failed' ? PluginFailed : PluginUnloaded
    const payload = { name, status, ...(status === 'failed' ? { error: state.error } : {}) }
    void this.kernel.db.tx(t => this.log.emitAll(t, [[type, payload, { subject: name }]])).catch(() => {})
  }
}
