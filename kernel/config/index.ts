import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import * as v from 'valibot'
import { Fault } from '../errors.js'
import type { Setting } from '../surface.js'

const setting = <T>(entry: Setting<T>): Setting<T> => entry

/** The paths that the kernel itself owns. */
export const KernelSettings = {
  socket: setting({
    path: 'daemon.socket',
    section: 'general',
    schema: v.string(),
    default: '',
    apply: 'restart-required',
  }),
  host: setting({
    path: 'http.host',
    section: 'general',
    schema: v.pipe(v.string(), v.minLength(1), v.maxLength(253)),
    default: 'localhost',
    apply: 'restart-required',
  }),
  port: setting({
    path: 'http.port',
    section: 'general',
    schema: v.pipe(v.number(), v.integer(), v.minValue(0), v.maxValue(65535)),
    default: 2123,
    apply: 'restart-required',
  }),
  logLevel: setting({
    path: 'log.level',
    section: 'observability',
    schema: v.picklist(['debug', 'info', 'warn', 'error']),
    default: 'info' as const,
    apply: 'restart-required',
  }),
  redact: setting({
    path: 'redact.enabled',
    section: 'general',
    schema: v.boolean(),
    default: true,
    apply: 'restart-required',
  }),
  disabled: setting({
    path: 'plugins.disabled',
    section: 'general',
    schema: v.array(v.string()),
    default: [] as string[],
    apply: 'restart-required',
  }),
}

/** The configuration file, decoded: values by dotted path, and paths that nobody here owns. */
export class Config {
  private constructor(
    private readonly values: ReadonlyMap<string, unknown>,
    readonly unowned: readonly string[],
  ) {}

  /**
   * Reads JSON with comments. Throws `config_invalid` naming line and key for a syntax error, an unknown key below an owned
   * section or a value that does not match; a section without any owner is kept and reported.
   */
  static parse(text: string, file: string, known: readonly Setting[]): Config {
    const errors: ParseError[] = []
    const root = text.trim() === '' ? undefined : parseTree(text, errors, { allowTrailingComma: true })
    const bad = (offset: number, what: string): Fault => {
      const line = text.slice(0, offset).split('\n').length
      return new Fault('config_invalid', 500, `${file}:${line}: ${what}`, { next: `edit ${file}, line ${line}` })
    }
    const first = errors[0]
    if (first) throw bad(first.offset, `not valid JSON: ${printParseErrorCode(first.error)}`)
    if (root && root.type !== 'object') throw bad(root.offset, 'the configuration is a JSON object')
    const byPath = new Map(known.map(entry => [entry.path, entry]))
    const sections = new Set(known.map(entry => entry.path.split('.')[0]))
    const values = new Map<string, unknown>()
    const unowned: string[] = []
    const walk = (node: Node, path: string) => {
      for (const property of node.children ?? []) {
        const [key, value] = property.children ?? []
        if (!key || !value) continue
        const at = path === '' ? String(key.value) : `${path}.${key.value}`
        const entry = byPath.get(at)
        if (entry) {
          const decoded = v.safeParse(entry.schema, plain(value))
          if (!decoded.success) throw bad(value.offset, `${at}: ${decoded.issues[0].message}`)
          values.set(at, decoded.output)
        } else if (!sections.has(at.split('.')[0])) unowned.push(at)
        else if (value.type === 'object' && known.some(other => other.path.startsWith(`${at}.`))) walk(value, at)
        else throw bad(key.offset, `unknown key ${at}`)
      }
    }
    if (root) walk(root, '')
    return new Config(values, unowned)
  }

  get<T>(entry: Setting<T>): T {
    return (this.values.has(entry.path) ? this.values.get(entry.path) : entry.default) as T
  }
}

function plain(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(plain)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(
    (node.children ?? []).flatMap(({ children }) =>
      children?.[0] && children[1] ? [[String(children[0].value), plain(children[1])]] : [],
    ),
  )
}
