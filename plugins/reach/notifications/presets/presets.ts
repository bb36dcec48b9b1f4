import { command } from '../../../../kernel/kit/commands/command-line.js'
import { shown } from '../../../../kernel/kit/text.js'
import type { Tx } from '../../../../kernel/plugin.js'
import { iso } from '../../../../kernel/plugin.js'
import type {
  CreatePresetBody,
  ListPresetsQuery,
  ListPresetsReply,
  Preset,
  PresetEnablement,
  PresetTarget,
  UpdatePresetBody,
} from '../../../../schemas/notifications.js'
import { NotificationErrors } from '../api.js'
import type { K } from '../needs.js'
import { type CursorRow, cursors, enablements, type PresetRow, paces, presets, reminders } from '../tables.js'
import { BUILT_IN, type BuiltIn, hashOf } from './built-in.js'
import { type Filter, isProblem, parseFilter } from './filter.js'
import { patternProblem } from './pattern.js'
import { checkRules } from './rules.js'
import { channelOf, resolved, showHint, targetKey, targetText } from './targets.js'

/** The profile of requests without one. */
export const DEFAULT_PROFILE = 'default'
/** Maximum numbers of presets, and of profiles in which one can be enabled. */
const MOST_PRESETS = 500
const MOST_PROFILES = 100
const DEFAULT_LIMIT = 200

/** An enabled preset for the dispatcher. */
export interface ActivePreset {
  readonly row: PresetRow
  readonly filter: Filter
  readonly targets: ReadonlyMap<string, PresetTarget>
}

/** Presets: their events, filters, targets, and the profiles in which they are enabled. */
export class Presets {
  #active: readonly ActivePreset[] | undefined

  /** @param changed called after each change of the active presets */
  constructor(
    private readonly kernel: K,
    private readonly changed: () => void,
  ) {}

  /** Updates the built-in presets. One changed by a person stays, and is marked if its definition has a newer version. */
  async start(): Promise<void> {
    const isDone = BUILT_IN.every(builtIn => {
      const row = presets.get(this.kernel.db, { name: builtIn.name })
      return row && (!row.built_in || row.user_modified || row.default_hash === hashOf(builtIn))
    })
    if (isDone) return
    await this.kernel.db.tx(t => {
      for (const builtIn of BUILT_IN) this.#seed(t, builtIn)
    })
  }

  #seed(t: Tx, { name, version, events, filter }: BuiltIn): void {
    const hash = hashOf({ events, filter })
    const row = presets.get(t, { name })
    const now = this.kernel.clock.now()
    const marks = { built_in: true, default_hash: hash, default_version: version }
    if (!row) {
      const empty = { targets: [], user_modified: false, created_at: now, updated_at: now }
      presets.insert(t, { name, events, filter, ...marks, ...empty })
    } else if (row.built_in && !row.user_modified && row.default_hash !== hash) {
      presets.update(t, { name }, { events, filter, ...marks, updated_at: now })
    }
  }

  /** Enabled presets with targets and parsed filters. */
  get active(): readonly ActivePreset[] {
    this.#active ??= presets
      .all(this.kernel.db, {}, 'ORDER BY name')
      .filter(({ name, targets }) => targets.length > 0 && this.#isEnabled(name))
      .flatMap(row => {
        const filter = parseFilter(row.filter)
        // A filter stored by another version may be unreadable: the preset sends nothing then, and the doctor reports
        // it.
        if (isProblem(filter)) return []
        return [{ row, filter, targets: new Map(row.targets.map(target => [targetKey(target), target])) }]
      })
    return this.#active
  }

  all(): PresetRow[] {
    return presets.all(this.kernel.db, {}, 'ORDER BY name')
  }

  list(query: ListPresetsQuery): ListPresetsReply {
    const { profile, enabled, built_in: builtIn, name, limit = DEFAULT_LIMIT } = query
    const found = presets
      .all(this.kernel.db, { ...(name !== undefined && { name }) }, 'ORDER BY built_in DESC, name')
      .filter(row => builtIn === undefined || row.built_in === builtIn)
      .map(row => this.#toWire(row, profile))
      .filter(preset => enabled === undefined || preset.enabled === enabled)
    return {
      generated_at: iso(this.kernel.clock.now()),
      presets: found.slice(0, limit),
      total: found.length,
    }
  }

  /** @throws Fault `preset_not_found` (404) */
  show(name: string, profile: string | undefined): Preset {
    const row = this.#find(name)
    const states = new Map(cursors.all(this.kernel.db, { preset: name }).map(state => [state.target, state]))
    const { current: bridges } = this.kernel.needs.bridges
    return {
      ...this.#toWire(row, profile),
      target_states: row.targets.map(target => {
        const { bridge_id, canonical_route, display_name } = target
        const state = states.get(targetKey(target))
        const bridge = bridges?.get(bridge_id)
        return {
          bridge_id,
          ...(bridge && { bridge_name: bridge.displayName }),
          ...(canonical_route !== undefined && { canonical_route }),
          ...(display_name !== undefined && { display_name }),
          ...(state && { position: state.seq }),
          ...(state?.last_delivery_id !== undefined && { last_delivery_id: state.last_delivery_id }),
          ...(state?.last_queued_at !== undefined && { last_queued_at: iso(state.last_queued_at) }),
          ...(state?.last_error !== undefined && { last_error: state.last_error }),
          ...(state?.retry_at !== undefined && { retry_at: iso(state.retry_at) }),
        }
      }),
    }
  }

  /** @throws Fault `preset_duplicate_name`, `preset_limit` (409), and those of {@link update} */
  async create(body: CreatePresetBody, profile: string | undefined): Promise<Preset> {
    const { name, events, filter = '', targets, enabled = false, rules } = body
    this.#check(events, filter)
    checkRules(rules)
    const found = await this.#resolved(targets)
    return this.#write(t => {
      if (presets.get(t, { name }))
        throw NotificationErrors.preset_duplicate_name(`the preset ${shown(name)} already exists`, showHint(name))
      if (presets.all(t, {}).length >= MOST_PRESETS)
        throw NotificationErrors.preset_limit(`there are ${MOST_PRESETS} presets, the maximum; delete one`)
      const now = this.kernel.clock.now()
      const row: PresetRow = {
        ...{ name, events, filter, targets: found, built_in: false, user_modified: false },
        ...(rules && { rules }),
        ...{ created_at: now, updated_at: now },
      }
      presets.insert(t, row)
      if (enabled) this.#enable(t, name, profile, true)
      this.#placeCursors(t, row)
      return () => this.#toWire(row, profile)
    })
  }

  /**
   * @throws Fault `preset_not_found` (404), `preset_events_invalid`, `preset_filter_invalid`, `preset_rules_invalid`
   *   (400), `preset_target_ambiguous` and `preset_target_invalid` (422)
   */
  async update(name: string, body: UpdatePresetBody, profile: string | undefined): Promise<Preset> {
    const known = this.#find(name)
    const { enabled } = body
    this.#check(body.events ?? known.events, body.filter ?? known.filter)
    checkRules(body.rules ?? undefined)
    const found = body.targets ? await this.#resolved(body.targets) : undefined
    return this.#write(t => {
      const row = this.#find(name)
      const changes = {
        events: body.events ?? row.events,
        filter: body.filter ?? row.filter,
        targets: found ?? row.targets,
        ...((body.rules ?? row.rules) && { rules: body.rules ?? row.rules }),
      }
      const next = { ...row, ...changes, ...ofBuiltIn(row, hashOf(changes)), updated_at: this.kernel.clock.now() }
      presets.update(t, { name }, next)
      if (typeof enabled === 'boolean') this.#enable(t, name, profile, enabled)
      this.#placeCursors(t, next)
      return () => this.#toWire(next, profile)
    })
  }

  /** @throws Fault `preset_not_found` (404) */
  async setEnabled(name: string, enabled: boolean, profile: string): Promise<PresetEnablement> {
    this.#find(name)
    return this.#write(t => {
      const row = this.#find(name)
      this.#enable(t, name, profile, enabled)
      this.#placeCursors(t, row)
      return () => ({ name, enabled, profile })
    })
  }

  /** @throws Fault `preset_not_found` (404), `preset_builtin_protected` (409) */
  async delete(name: string): Promise<void> {
    this.#find(name)
    await this.#write(t => {
      const { built_in: builtIn } = this.#find(name)
      if (builtIn)
        throw NotificationErrors.preset_builtin_protected(`the preset ${shown(name)} is built in`, {
          next: command('notifications preset disable', name),
        })
      presets.delete(t, { name })
      enablements.delete(t, { preset: name })
      for (const table of [cursors, paces, reminders]) table.delete(t, { preset: name })
      return () => undefined
    })
  }

  async #write<T>(change: (t: Tx) => () => T): Promise<T> {
    const done = await this.kernel.db.tx(change)
    this.#active = undefined
    this.changed()
    return done()
  }

  /** Gives an active preset a cursor for each target, starting now; removes the cursors of others. */
  #placeCursors(t: Tx, { name, targets }: PresetRow): void {
    const wanted = new Set(this.#isEnabled(name) ? targets.map(targetKey) : [])
    const known = cursors.all(t, { preset: name })
    const seq = this.kernel.needs.events.last()
    for (const target of wanted) {
      if (known.some(one => one.target === target)) continue
      cursors.insert(t, { preset: name, target, seq, failures: 0 })
      this.#count(t, name, target, known)
    }
    for (const { target } of known) {
      if (wanted.has(target)) continue
      const of = { preset: name, target }
      for (const table of [cursors, paces, reminders]) table.delete(t, of)
    }
  }

  /** Copies the failure counts of an earlier target to a new one, which continues them. */
  #count(t: Tx, preset: string, target: string, known: readonly CursorRow[]): void {
    const [newest] = known.toSorted((a, b) => b.seq - a.seq)
    if (!newest) return
    for (const { subject, failures, last_event, at } of paces.all(t, { preset, target: newest.target }))
      if (failures > 0) paces.replace(t, { preset, target, subject, failures, last_event, at })
  }

  #enable(t: Tx, preset: string, profile: string = DEFAULT_PROFILE, enabled: boolean): void {
    const row = { preset, profile }
    if (!enabled) enablements.delete(t, row)
    else {
      if (enablements.all(t, { preset }).length >= MOST_PROFILES && !enablements.get(t, row))
        throw NotificationErrors.preset_limit(`a preset can be enabled in ${MOST_PROFILES} profiles`)
      enablements.replace(t, row)
    }
  }

  #isEnabled(preset: string): boolean {
    return enablements.get(this.kernel.db, { preset }) !== undefined
  }

  #find(name: string): PresetRow {
    const row = presets.get(this.kernel.db, { name })
    if (row) return row
    throw NotificationErrors.preset_not_found(`there is no preset ${shown(name)}`)
  }

  #check(events: readonly string[], filter: string): void {
    for (const pattern of events) {
      const problem = patternProblem(pattern)
      if (problem) throw NotificationErrors.preset_events_invalid(`${shown(pattern)}: ${problem}`)
    }
    const read = parseFilter(filter)
    if (isProblem(read))
      throw NotificationErrors.preset_filter_invalid(`the filter at character ${read.position}: ${read.problem}`)
  }

  /**
   * Resolves each target to a bridge id, and removes duplicates. Without bridges they are stored unresolved, and the
   * doctor checks them.
   */
  async #resolved(targets: readonly PresetTarget[]): Promise<readonly PresetTarget[]> {
    const { current: bridges } = this.kernel.needs.bridges
    const all: PresetTarget[] = []
    // Sequential, because each may read the directory of the same bridge.
    for (const target of targets)
      all.push(bridges && !channelOf(this.kernel, target) ? await resolved(target, bridges) : target)
    return [...new Map(all.map(target => [targetKey(target), target])).values()]
  }

  /** Wire form of a preset for a profile; without one, for clients that do not use profiles. */
  #toWire(row: PresetRow, profile: string | undefined): Preset {
    const { built_in: builtIn, default_hash: hash, default_version: version } = row
    const isEnabled = enablements.get(this.kernel.db, { preset: row.name, profile: profile ?? DEFAULT_PROFILE })
    const newest = newestOf(row)
    return {
      name: row.name,
      built_in: builtIn,
      enabled: isEnabled !== undefined,
      events: [...row.events],
      ...(row.filter !== '' && { filter: row.filter }),
      targets: [...row.targets],
      target_names: row.targets.map(target => targetText(target, this.kernel.needs.bridges.current)),
      ...(row.rules && { rules: row.rules }),
      ...(profile !== undefined && { profile }),
      ...(hash !== undefined && { default_hash: hash }),
      ...(version !== undefined && { default_version: version }),
      default_update_available:
        builtIn && row.user_modified && newest !== undefined && (hash !== hashOf(newest) || version !== newest.version),
      user_modified: row.user_modified,
      created_at: iso(row.created_at),
      updated_at: iso(row.updated_at),
    }
  }
}

const newestOf = ({ name, built_in: isBuiltIn }: PresetRow) =>
  isBuiltIn ? BUILT_IN.find(builtIn => builtIn.name === name) : undefined

/**
 * New marks of a built-in preset whose events and filter have this hash. Targets, rules and enablement are a person's
 * own and do not stop its updates.
 */
function ofBuiltIn(row: PresetRow, hash: string): Partial<PresetRow> {
  const newest = newestOf(row)
  if (newest && hashOf(newest) === hash)
    return { user_modified: false, default_hash: hash, default_version: newest.version }
  return { user_modified: row.built_in && hash !== row.default_hash }
}
