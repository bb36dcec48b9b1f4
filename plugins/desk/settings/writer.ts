import { isDeepStrictEqual } from 'node:util'
import { Serial } from '../../../kernel/kit/serial.js'
import { type Actor, messageOf, type Setting } from '../../../kernel/plugin.js'
import type { DiagnosticItem } from '../../../schemas/kernel/diagnostic.js'
import type { ApplyLifecycle, ApplyOutcome, SettingsWriteTarget } from '../../../schemas/settings.js'
import {
  type ConfigChange,
  ConfigErrors,
  type ConfigProblem,
  type PlannedChange,
  problemText,
  type Rewrite,
  type Rewritten,
  valueIn,
} from '../../platform/configuration/api.js'
import { finding } from '../daemon/api.js'
import { ApplyLog } from './apply-log.js'
import { SettingsErrors } from './errors.js'
import { SettingsWritten } from './events.js'
import { lifecycleOf, outcomes } from './lifecycle.js'
import type { K } from './needs.js'
import { repaired } from './repair.js'

/** Members of a reply that identify the changed settings. */
export type About = Pick<ApplyOutcome, 'scope' | 'section' | 'workspace_id' | 'agent_name'>

export interface Write {
  /** Called when this write runs: a change of a part depends on earlier writes. */
  readonly changes: () => readonly ConfigChange[]
  /** The requested changes, used to correct an invalid file; their keys may have no owner. Default: `changes`. */
  readonly requestedChanges?: readonly ConfigChange[] | undefined
  readonly actor: Actor
  readonly target: SettingsWriteTarget
  /** Written instead of the home's file. */
  readonly overlay?: string | undefined
  readonly about: About
}

/** A change of a file that is not a layer of the configuration. */
export interface AsideWrite extends Omit<Write, 'overlay' | 'changes' | 'asked'> {
  readonly keys: readonly string[]
  readonly lifecycle: ApplyLifecycle
}

/** Actor of changes made in the file itself, for example with an editor. */
const FILE_ACTOR = 'config-file'

/** Changes settings one at a time and records each change. */
export class SettingsWriter {
  readonly log: ApplyLog
  readonly #serial = new Serial()
  /** The last seen value of each key, with a hash of all layers. */
  #snapshot: { readonly hash: string; readonly values: ReadonlyMap<string, unknown> } | undefined
  /** Generations of earlier daemons. */
  #base = 0

  constructor(private readonly kernel: K) {
    this.log = new ApplyLog(kernel)
  }

  get generation(): number {
    return this.#base + this.kernel.needs.configuration.generation
  }

  /** Closes records that an earlier daemon left open: this daemon has read the file. */
  begin(): Promise<void> {
    return this.#serial.run(async () => {
      const { configuration } = this.kernel.needs
      const { active, desired } = configuration.hashes()
      const before = this.log.newest()
      const first = before === undefined ? 1 : before.active === active ? before.generation : before.generation + 1
      this.#base = first - configuration.generation
      for (const { id, status, desired: wanted } of this.log.open()) {
        const isThere = status === 'blocked' || wanted === desired
        const lost = unfinished(id)
        await this.log.end(id, {
          status: isThere ? 'applied' : 'failed',
          next: isThere ? 'none' : 'retry',
          generation: this.generation,
          active,
          ...(!isThere && { diagnostics: [lost] }),
        })
      }
      this.#currentValues()
    })
  }

  /** Called when the file may have changed. */
  notice(): void {
    if (!this.#snapshot) return
    void this.#serial
      .run(() => this.#noticed(FILE_ACTOR))
      .catch(error => this.kernel.log.error(`a change of config.json was not recorded: ${messageOf(error)}`))
  }

  /** Reloads the file. @throws Fault `config_reload_invalid` */
  reload(actor: Actor): Promise<ApplyOutcome> {
    return this.#serial.run(async () => {
      const { configuration } = this.kernel.needs
      await configuration.reload()
      const { problem } = configuration.state()
      if (problem !== undefined) throw SettingsErrors.config_reload_invalid(problem)
      return (await this.#noticed(actor.id)) ?? this.#skipped({ scope: 'global' }, 'global-config')
    })
  }

  /** @throws Fault `config_file_invalid`, and those of the configuration */
  write(write: Write): Promise<ApplyOutcome> {
    const { changes, actor, target, overlay, about } = write
    return this.#serial.run(async () => {
      const { configuration } = this.kernel.needs
      // An editor may have saved a moment ago: record that as a separate change.
      await configuration.reload()
      const { problem } = configuration.state(overlay)
      if (problem !== undefined) return this.#repaired(write, problem)
      await this.#noticed(FILE_ACTOR)
      const wanted = changes()
      const plan = configuration.plan(wanted, overlay)
      if (plan.changes.length === 0) return this.#skipped(about, target)
      const hides = plan.changes.flatMap(({ path, hiddenBy }) =>
        hiddenBy === undefined ? [] : [`${path} is set by ${hiddenBy}, which overrides this change`],
      )
      const outcome = await this.#recorded(plan.changes, plan.desired, actor.id, target, about, async ready => {
        if (overlay !== undefined) await ready
        // The file is synced together with the record of the intent.
        await configuration.write(wanted, { overlay, ifHash: plan.hash, actor, ready })
        return undefined
      })
      if (overlay !== undefined) await this.#emitWritten(actor, outcome, plan.changes.map(keyOf))
      return { ...outcome, ...(hides.length > 0 && { warnings: hides }) }
    })
  }

  /** Corrects an invalid file and records the values that change. */
  async #repaired(
    { changes, requestedChanges, actor, target, overlay, about }: Write,
    problem: string,
  ): Promise<ApplyOutcome> {
    const { configuration } = this.kernel.needs
    const wanted = requestedChanges ?? changes()
    if (wanted.length === 0) throw ConfigErrors.config_file_invalid(problem)
    const rewrite: Rewrite = (...args) => repairedBy(wanted, ...args)
    const plan = await configuration.rewrite(rewrite, { overlay, dry: true })
    const keys = wanted.map(keyOf)
    const lifecycle = lifecycleOf(changesOf(configuration.known, plan))
    const outcome = await this.#made(keys, lifecycle, plan.desired, actor.id, target, about, async ready => {
      await ready
      const { rest } = await configuration.rewrite(rewrite, { overlay, actor })
      // The configuration must report the remaining mistakes instead of the corrected one.
      await configuration.reload()
      return rest.length === 0 ? [] : [stillInvalid(rest)]
    })
    if (overlay !== undefined) await this.#emitWritten(actor, outcome, keys)
    return outcome
  }

  /** Records a change of a file that is not a layer of the configuration; `work` writes and validates it. */
  async aside(write: AsideWrite, work: () => Promise<boolean>): Promise<ApplyOutcome> {
    const { actor, target, about, keys, lifecycle } = write
    const { desired } = this.kernel.needs.configuration.hashes()
    let written = false
    const outcome = await this.#made(keys, lifecycle, desired, actor.id, target, about, async ready => {
      await ready
      written = await work()
      return undefined
    })
    if (written) await this.#emitWritten(actor, outcome, keys)
    return written ? outcome : { ...outcome, applied: false, skipped: true, skipped_reason: NO_CHANGES }
  }

  /** The outcome of the changes; nothing is written. @throws Fault as {@link write} */
  async plan({ changes, requestedChanges, about, target, overlay }: Omit<Write, 'actor'>): Promise<ApplyOutcome> {
    const { configuration } = this.kernel.needs
    const isBroken = configuration.state(overlay).problem !== undefined
    const rewrite: Rewrite = (...args) => repairedBy(requestedChanges ?? changes(), ...args)
    const planned = isBroken
      ? changesOf(configuration.known, await configuration.rewrite(rewrite, { overlay, dry: true }))
      : configuration.plan(changes(), overlay).changes
    if (planned.length === 0 && !isBroken) return this.#skipped(about, target)
    const lifecycle = lifecycleOf(planned)
    return { ...this.#outcome('', lifecycle, about, target), applied: false, skipped: true, skipped_reason: 'dry_run' }
  }

  /** Records changes made outside of this class; undefined if there are none. */
  async #noticed(actor: string): Promise<ApplyOutcome | undefined> {
    const before = this.#snapshot
    const { configuration } = this.kernel.needs
    const { desired } = configuration.hashes()
    if (before?.hash === desired) return undefined
    const now = this.#currentValues()
    const changed = configuration.known.filter(
      ({ path }) => before?.values.has(path) && !isDeepStrictEqual(before.values.get(path), now.get(path)),
    )
    if (changed.length === 0) return undefined
    const planned = changed.map(({ path, apply }): PlannedChange => {
      const [was, will] = [before?.values.get(path), now.get(path)]
      return { path, before: was, after: will, apply }
    })
    const about = { scope: 'global' } as const
    return this.#recorded(planned, desired, actor, 'global-config', about, async ready => void (await ready))
  }

  /** Emits an event for the audit, which does not watch these files. */
  async #emitWritten(
    actor: Actor,
    { apply_record_id, write_target, workspace_id }: ApplyOutcome,
    keys: readonly string[],
  ) {
    const { db, needs } = this.kernel
    const payload = { target: write_target, keys: [...keys], apply_record_id }
    await db.tx(t => needs.events.emit(t, SettingsWritten, payload, { actor, subject: workspace_id ?? write_target }))
  }

  #recorded(
    planned: readonly PlannedChange[],
    desired: string,
    actor: string,
    target: SettingsWriteTarget,
    about: About,
    work: (ready: Promise<void>) => Promise<undefined>,
  ): Promise<ApplyOutcome> {
    return this.#made(planned.map(keyOf), lifecycleOf(planned), desired, actor, target, about, work)
  }

  async #made(
    keys: readonly string[],
    lifecycle: ApplyLifecycle,
    desired: string,
    actor: string,
    target: SettingsWriteTarget,
    about: About,
    work: (ready: Promise<void>) => Promise<readonly PartialFailure[] | undefined>,
  ): Promise<ApplyOutcome> {
    const { configuration } = this.kernel.needs
    const { active } = configuration.hashes()
    const intent = { keys, lifecycle, desired, actor, target, generation: this.generation, active }
    const { id, written } = this.log.begin(intent)
    written.catch(() => {}) // it may fail before it is awaited
    const faults = this.#faults()
    let unapplied: readonly PartialFailure[]
    try {
      unapplied = (await work(written)) ?? []
    } catch (error) {
      // Without a record of the intent nothing was changed.
      await written
      const item = failure(`settings.apply.${id}`, 'settings_write_failed', messageOf(error))
      const ending = { status: 'failed', next: 'retry', generation: this.generation, active } as const
      await this.log.end(id, { ...ending, diagnostics: [item] })
      throw error
    }
    this.#currentValues()
    const untaken = this.#faults().flatMap(({ owner, where, error, count }): PartialFailure[] => {
      const before = faults.find(one => one.owner === owner && one.where === where && one.error === error)
      if (before?.count === count) return []
      return [
        {
          subsystem: owner,
          diagnostic: failure(`settings.apply.${owner}`, 'settings_apply_failed', `${where}: ${error}`),
        },
      ]
    })
    const failures = [...unapplied, ...untaken]
    const hashes = configuration.hashes()
    const isInForce = lifecycle === 'restart-required' && hashes.active === hashes.desired
    const { status, next } =
      failures.length > 0
        ? ({ status: 'failed', next: 'retry' } as const)
        : isInForce
          ? ({ status: 'applied', next: 'none' } as const)
          : outcomes[lifecycle]
    await this.log.end(id, {
      status: status === 'pending_apply' ? 'failed' : status,
      next,
      generation: this.generation,
      active: hashes.active,
      diagnostics: failures.map(({ diagnostic }) => diagnostic),
    })
    return {
      ...this.#outcome(id, lifecycle, about, target),
      applied: status === 'applied',
      next_action: next,
      restart_required: next === 'restart-daemon',
      ...(next === 'restart-daemon' && { restart_scope: 'daemon' }),
      ...(failures.length > 0 && { partial_failures: failures }),
    }
  }

  #skipped(about: About, target: SettingsWriteTarget): ApplyOutcome {
    const { pending } = this.kernel.needs.configuration.state()
    const waits = pending.length > 0
    return {
      ...this.#outcome('', waits ? 'restart-required' : 'live', about, target),
      applied: false,
      skipped: true,
      skipped_reason: NO_CHANGES,
    }
  }

  #outcome(id: string, lifecycle: ApplyLifecycle, about: About, target: SettingsWriteTarget): ApplyOutcome {
    const { next } = outcomes[lifecycle]
    return {
      active_config_hash: this.kernel.needs.configuration.hashes().active,
      active_generation: this.generation,
      applied: next !== 'restart-daemon',
      apply_record_id: id,
      lifecycle,
      next_action: next,
      restart_required: next === 'restart-daemon',
      skipped: false,
      ...about,
      write_target: target,
    }
  }

  /** Faults of setting listeners. */
  #faults() {
    return this.kernel.needs.host.faults().filter(({ where }) => where.startsWith('setting '))
  }

  #currentValues(): ReadonlyMap<string, unknown> {
    const { configuration } = this.kernel.needs
    const layers = configuration.layers()
    const values = new Map(configuration.known.map(entry => [entry.path, valueIn(entry, layers)]))
    this.#snapshot = { hash: configuration.hashes().desired, values }
    return values
  }
}

const keyOf = ({ path, name }: Pick<ConfigChange, 'path' | 'name'>): string =>
  name === undefined ? path : `${path}.${name}`

const NO_CHANGES = 'no_changes_detected'

const failure = (id: string, code: string, message: string): DiagnosticItem =>
  finding({ id, code, category: 'config', severity: 'error', title: 'A change of settings failed', message })

/** The settings whose effective values change. */
const changesOf = (known: readonly Setting[], { was, will }: Pick<Rewritten, 'was' | 'will'>): PlannedChange[] =>
  known.flatMap(entry => {
    const [before, after] = [was, will].map(layers => valueIn(entry, layers))
    return isDeepStrictEqual(before, after) ? [] : [{ path: entry.path, before, after, apply: entry.apply }]
  })

/** A plugin that could not apply a written change, with the reason. */
type PartialFailure = NonNullable<ApplyOutcome['partial_failures']>[number]

/** Corrects any member of a file, even one without a known schema. */
const repairedBy = (changes: readonly ConfigChange[], ...[text, where, problemsOf]: Parameters<Rewrite>) =>
  repaired(
    text,
    where,
    changes.map(({ path, name, value }) => ({
      keys: [...path.split('.'), ...(name === undefined ? [] : [name])],
      value,
    })),
    problemsOf,
  )

const stillInvalid = (rest: readonly ConfigProblem[]): PartialFailure => ({
  subsystem: 'configuration',
  diagnostic: failure(
    'settings.apply.configuration',
    'config_still_invalid',
    `the file is still not valid; correct this as well: ${rest.map(problemText).join('\n')}`,
  ),
})

const unfinished = (id: string) =>
  failure(`settings.apply.${id}`, 'settings_write_failed', 'the daemon stopped before the file was written')
