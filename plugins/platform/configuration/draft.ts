import { isDeepStrictEqual } from 'node:util'
import { Fault, messageOf, type Setting } from '../../../kernel/plugin.js'
import { type ConfigApply, type ConfigChange, ConfigErrors, type ConfigPlan, type PlannedChange } from './api.js'
import { editJson } from './json-file.js'
import { type ConfigText, configLayers, layersOf, type Said, valueIn } from './layers.js'
import type { ConfigurationService } from './service.js'

type Layered = Pick<ConfigurationService, 'layer' | 'layers' | 'parse' | 'hashes' | 'hashOf' | 'entry'>

/** Maximum number of changes in one write, and maximum characters of the resulting text. */
const MOST_CHANGES = 100
const LONGEST_TEXT = 1024 * 1024
/** From the earliest to the latest effect. */
const STRICTER: readonly ConfigApply[] = ['none', 'live', 'session-rebind', 'restart-required']

/** A text with its changes, and their effect. */
export interface Draft {
  readonly text: string
  readonly plan: ConfigPlan
}

/** Drafts of the file by their changes: a write of planned changes reuses the draft of its plan while the file is the same. */
const drafts = new WeakMap<readonly ConfigChange[], { readonly document: ConfigText; readonly draft: Draft }>()

/**
 * Applies changes to the text of one layer. Everything is checked: each value by the schema of its owner, the text as a whole, and
 * that it contains exactly the requested changes.
 */
export function draftOf(config: Layered, changes: readonly ConfigChange[], overlay: string | undefined): Draft {
  const source = config.layer(overlay)
  const kept = overlay === undefined ? drafts.get(changes) : undefined
  if (kept?.document === source.document) return kept.draft
  const layer = overlay === undefined ? 'file' : 'overlay'
  if (changes.length > MOST_CHANGES) throw invalid(`more than ${MOST_CHANGES} changes at once`)
  const twice = changes.find((one, n) => changes.some((other, m) => m < n && isSame(one, other)))
  if (twice) throw invalid(`${twice.path} is changed twice at once`)
  const wanted = changes.map(change => ({ ...checked(config, change, overlay), ...change }))
  const edits = wanted.map(({ keys, json }) => ({ keys, value: json }))
  const text = editJson(source.text, source.where, edits)
  if (text.length > LONGEST_TEXT) throw invalid(`${source.where} would have more than ${LONGEST_TEXT} characters`)
  const document = parsed(() => config.parse(text, source.where, overlay !== undefined))
  const [bad] = document.leftOut.filter(({ path }) => wanted.some(({ keys }) => isBelow(path, keys.join('.'))))
  if (bad) throw invalid(bad.text)
  checkSaid(source.document, document, wanted)

  const before = config.layers(overlay)
  const after = { ...before, [layer]: document }
  const planned = wanted.flatMap(({ entry, path, name, json }): PlannedChange[] => {
    if (isDeepStrictEqual(partOf(source.document.said.get(path), name), json)) return []
    const [from, to, will] = [valueIn(entry, before), valueIn(entry, after), layersOf(entry, after)]
    const mine = configLayers.indexOf(layer)
    const hiddenBy = will.find(({ layer, value }) => configLayers.indexOf(layer) > mine && says(entry, value, name))
    const more = { ...(name !== undefined && { name }), ...(hiddenBy && { hiddenBy: hiddenBy.layer }) }
    const apply = isDeepStrictEqual(from, to) ? 'none' : entry.apply
    return [{ path, before: from, after: to, apply, ...more }]
  })
  const apply = STRICTER.findLast(one => planned.some(change => change.apply === one)) ?? 'none'
  const [hash, desired] = [config.hashes(overlay).desired, config.hashOf(entry => valueIn(entry, after))]
  const draft = { text, plan: { changes: planned, apply, hash, desired } }
  if (overlay === undefined) drafts.set(changes, { document: source.document, draft })
  return draft
}

interface Checked {
  readonly entry: Setting
  readonly keys: readonly string[]
  /** The JSON value; undefined removes it. */
  readonly json: unknown
}

function checked(config: Layered, { path, name, value }: ConfigChange, overlay: string | undefined): Checked {
  const entry = config.entry(path)
  if (overlay !== undefined && !entry.overlay)
    throw ConfigErrors.setting_not_overlaid(`${path} has one value for the whole daemon`)
  if (name !== undefined && entry.merge !== 'by-name') throw invalid(`${path} has no named entries`)
  const keys = [...path.split('.'), ...(name === undefined ? [] : [name])]
  if (value === undefined) return { entry, keys, json: undefined }
  const printed = parsed(() => JSON.stringify(value) ?? 'null')
  if (printed.length > LONGEST_TEXT) throw invalid(`${path}: a value of ${printed.length} characters`)
  const json: unknown = JSON.parse(printed)
  if (!isDeepStrictEqual(json, value)) throw invalid(`${path}: the value is not JSON`)
  return { entry, keys, json }
}

const isBelow = (path: string, above: string) => path === above || path.startsWith(`${above}.`)

/** Two changes conflict when both are of one name, or one is of the whole map. */
const isSame = (a: ConfigChange, b: ConfigChange) =>
  a.path === b.path && (a.name === b.name || a.name === undefined || b.name === undefined)

/** Checks that every change is present and that other paths are unchanged. */
function checkSaid(before: ConfigText, after: ConfigText, wanted: readonly (Checked & ConfigChange)[]): void {
  const wrong = wanted.find(({ path, name, json }) => !isDeepStrictEqual(partOf(after.said.get(path), name), json))
  const other = [...new Set([...before.said.keys(), ...after.said.keys()])].find(
    path =>
      !wanted.some(change => change.path === path) &&
      !isDeepStrictEqual(before.said.get(path)?.raw, after.said.get(path)?.raw),
  )
  const path = wrong?.path ?? other
  if (path !== undefined) throw ConfigErrors.config_ambiguous(`the file sets ${path} more than once; keep one of them`)
}

function partOf(said: Said | undefined, name: string | undefined): unknown {
  if (name === undefined) return said?.raw
  const map = said?.raw as Readonly<Record<string, unknown>> | undefined
  return map && Object.hasOwn(map, name) ? map[name] : undefined
}

const says = ({ merge }: Setting, value: unknown, name: string | undefined) =>
  merge !== 'by-name' || (name !== undefined && Object.hasOwn(value as object, name))

const invalid = (what: string) => ConfigErrors.setting_invalid(what)

/** The text was valid before, so a mistake comes from the changes. */
function parsed<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (error instanceof Fault && error.code !== 'config_invalid') throw error
    throw invalid(messageOf(error).replace(/^.*?:\d+: /, ''))
  }
}
