import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { settingsSection } from '../../../kernel/kit/settings.js'
import { shown, text } from '../../../kernel/kit/text.js'
import {
  type Actor,
  type Kind,
  messageOf,
  type RecordScope,
  type Setting,
  type StoredRecord,
} from '../../../kernel/plugin.js'
import { FireLimit, JobTask, LoopTarget, Retry, Schedule, WebhookScheme } from '../../../schemas/automation.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import { mapOf } from '../../../schemas/kernel/map-of.js'
import { finding } from '../../desk/daemon/api.js'
import { JobKind } from './job-kind.js'
import type { K } from './needs.js'
import { TriggerKind } from './triggers/trigger-kind.js'

const line = v.pipe(v.string(), v.maxLength(512))
const common = {
  agent_name: v.optional(line),
  prompt: v.optional(v.pipe(v.string(), v.maxLength(256 * 1024))),
  enabled: v.optional(v.boolean()),
  fire_limit: v.optional(FireLimit),
  retry: v.optional(Retry),
  target_kind: v.optional(v.picklist(['agent', 'loop'])),
  loop_target: v.optional(LoopTarget),
  /** Id, name or path of a workspace; absent for global scope. */
  workspace: v.optional(line),
}
const ConfiguredJob = v.strictObject({ ...common, schedule: Schedule, task: v.optional(JobTask) })
const ConfiguredTrigger = v.strictObject({
  ...common,
  event: line,
  filter: v.optional(mapOf(line, line)),
  endpoint_slug: v.optional(line),
  webhook_id: v.optional(line),
  webhook_secret_ref: v.optional(line),
  webhook_scheme: v.optional(WebhookScheme),
})
type Configured = v.InferOutput<typeof ConfiguredJob> | v.InferOutput<typeof ConfiguredTrigger>

const setting = settingsSection({ path: 'automation', section: 'automation', apply: 'restart-required' })
const byName = <T>(name: string, entry: v.GenericSchema<unknown, T>): Setting<Record<string, T>> => ({
  ...setting(
    name,
    v.pipe(mapOf(text(200), entry), v.maxEntries(1000)) as v.GenericSchema<unknown, Record<string, T>>,
    {},
  ),
  merge: 'by-name',
})

/** Jobs and triggers defined in the configuration, by name. */
export const DefinitionSettings = {
  jobs: byName('jobs', ConfiguredJob),
  triggers: byName('triggers', ConfiguredTrigger),
}

/** The source of these records; other writers may not change them. */
const party = { kind: 'daemon', id: 'config' }
/** The owner of records that follow config.json; records of the same source with another owner are left alone. */
const writer = { kind: 'daemon', id: 'config.json' }
const config: Actor = { kind: 'daemon', id: 'config', owner: writer, source: party }

const families = [
  { path: 'automation.jobs', prefix: 'job', kind: JobKind as Kind, setting: DefinitionSettings.jobs },
  { path: 'automation.triggers', prefix: 'trg', kind: TriggerKind as Kind, setting: DefinitionSettings.triggers },
]

/** Synchronizes the records of source `config` with the configuration. An invalid entry does not affect the others. */
export class ConfiguredDefinitions {
  #items: readonly DiagnosticItem[] = []

  constructor(private readonly kernel: K) {}

  async sync(): Promise<void> {
    const items: DiagnosticItem[] = []
    for (const { path, prefix, kind, setting } of families) {
      const wanted = Object.entries<Configured>(
        this.kernel.config.get<Record<string, Configured>>(setting as Setting<never>),
      )
      const mine = this.kernel.records.list({ kind, source: party, owner: writer })
      const kept = new Set(wanted.map(([name]) => idOf(prefix, name)))
      for (const { id } of mine.filter(record => !kept.has(record.id))) await this.#remove(kind, id)
      for (const [name, definition] of wanted) {
        try {
          await this.#put(kind, idOf(prefix, name), name, definition)
        } catch (error) {
          this.kernel.log.warn(`${path}.${name} in config.json is ignored: ${messageOf(error)}`)
          items.push(wrong(`${path}.${name}`, messageOf(error)))
        }
      }
    }
    this.#items = items
  }

  /** Doctor items: definitions that could not be stored. */
  items(): readonly DiagnosticItem[] {
    return this.#items
  }

  async #put(kind: Kind, id: string, name: string, { workspace, ...definition }: Configured): Promise<void> {
    const scope = await this.#scopeOf(workspace)
    const before = this.kernel.records.get(kind.name, id)
    if (before && !isMine(before)) throw new Error(`record ${id} exists and was not created from config.json`)
    const spec = { ...definition, name }
    // A record cannot change its scope: delete it and create it in the other workspace.
    if (before && before.scope.id !== scope.id) await this.#remove(kind, id)
    await this.kernel.db.tx(t => this.kernel.records.put(t, config, { kind, id, scope, spec, quiet: true }))
  }

  async #remove(kind: Kind, id: string): Promise<void> {
    await this.kernel.db.tx(t => this.kernel.records.delete(t, config, { kind, id }))
  }

  async #scopeOf(reference: string | undefined): Promise<RecordScope> {
    if (reference === undefined) return { kind: 'global' }
    return { kind: 'workspace', id: (await this.kernel.needs.workspaces.find(reference)).id }
  }
}

const isMine = (record: StoredRecord) => record.owner.kind === writer.kind && record.owner.id === writer.id

/** Derived from the name, so that run history and the enabled overlay survive a restart. */
const idOf = (prefix: string, name: string) =>
  `${prefix}_${createHash('sha256').update(`config\0${prefix}\0${name}`).digest('hex').slice(0, 16)}`

const wrong = (key: string, why: string) =>
  finding({
    id: `config.${key}`,
    code: 'automation_definition_invalid',
    category: 'automation',
    severity: 'warning',
    title: `${shown(key)} in config.json is ignored`,
    message: why,
    suggested_command: command('config get', key.split('.').slice(0, 2).join('.')),
  })
