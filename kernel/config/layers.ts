import * as v from 'valibot'
import { Fault } from '../contract/errors.js'
import type { Setting } from '../contract/surface.js'
import { issueText } from '../kit/issue-text.js'

/** What a text says of one path. */
export interface Said {
  /** As the schema of its owner made it. */
  readonly value: unknown
  readonly raw: unknown
  /** `config.json:12` */
  readonly where: string
}

/** One text of the configuration, decoded: what it says by dotted path, and paths that nobody here owns. */
export interface ConfigText {
  readonly said: ReadonlyMap<string, Said>
  readonly unowned: readonly string[]
}

/** What there is above the defaults, the weaker first. */
export interface Layers {
  readonly file: ConfigText
  readonly environment: ReadonlyMap<string, Said>
}

/** What values of a setting come to, the weakest first: the strongest; of a map merged by name the strongest of each name. */
export function strongest({ merge }: Setting, values: readonly unknown[]): unknown {
  if (merge !== 'by-name') return values.at(-1)
  return Object.fromEntries(values.flatMap(value => Object.entries(value as object)))
}

/**
 * What variables say of the settings that name one: JSON, or a text as it is.
 * @throws Fault `config_invalid` naming the variable
 */
export function readEnvironment(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly Setting[],
): Map<string, Said> {
  const said = new Map<string, Said>()
  for (const { path, env: name, schema } of known) {
    const text = name === undefined ? undefined : env[name]
    if (name === undefined || text === undefined) continue
    const decoded = [asJson(text), text].map(raw => ({ raw, ...v.safeParse(schema, raw) }))
    const good = decoded.find(({ success }) => success)
    if (!good) {
      const what = issueText((decoded[0]?.issues ?? [])[0] as v.BaseIssue<unknown>)
      throw new Fault('config_invalid', 500, `${name}, for ${path}: ${what}`, { next: `unset ${name}` })
    }
    said.set(path, { value: good.output, raw: good.raw, where: name })
  }
  return said
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
