import { nearest, shown } from '../../../kernel/kit/text.js'
import { HookValues, type KnownValues } from './api.js'
import type { DeclaredHook } from './declared.js'
import { vocabularyOf } from './families.js'
import { globTest } from './glob.js'
import type { K } from './needs.js'

/**
 * Finds matcher values without a match. Names of agents, tools and workspaces are checked against existing ones, because a hook
 * with a misspelled name never runs and gives no error. Existing names are read once.
 */
export class UnmatchedValues {
  readonly #read = new Map<KnownValues, Promise<readonly string[] | undefined>>()

  constructor(private readonly kernel: K) {}

  /** One warning per field of the matcher that matches nothing known; a disabled hook has none. */
  async of({ event, matcher, enabled }: DeclaredHook): Promise<string[]> {
    const fields = enabled ? Object.entries(matcher) : []
    const warnings = await Promise.all(
      fields.map(([field, wanted]) =>
        typeof wanted === 'string' && vocabularyOf(event, field) === undefined
          ? this.#warning(field, wanted)
          : undefined,
      ),
    )
    return warnings.filter(warning => warning !== undefined)
  }

  async #warning(field: string, pattern: string): Promise<string | undefined> {
    const sources = this.kernel
      .collect(HookValues)
      .flatMap(({ entry }) => (entry.fields.includes(field) ? [entry] : []))
    const [first] = sources
    if (!first) return undefined
    const values = await Promise.all(sources.map(source => this.#valuesOf(source)))
    const known = values.flatMap(some => some ?? [])
    // While some values are not known, the pattern may match one of them.
    if (values.includes(undefined) || known.some(globTest(pattern))) return undefined
    const [meant] = nearest(pattern, [...new Set(known)])
    const hint = meant === undefined ? '' : `, did you mean ${meant}?`
    return `matcher.${field}: ${shown(pattern, 64)} matches no known ${first.noun}${hint || '.'} List them: ${first.list}`
  }

  #valuesOf(source: KnownValues): Promise<readonly string[] | undefined> {
    const known = this.#read.get(source)
    if (known) return known
    const reading = source.read().catch(() => undefined)
    this.#read.set(source, reading)
    return reading
  }
}
