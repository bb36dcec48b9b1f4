import { type Node, type ParseError, parseTree, printParseErrorCode } from 'jsonc-parser'
import * as v from 'valibot'
import { Fault } from '../contract/errors.js'
import type { Setting } from '../contract/surface.js'
import { issueText } from '../issue-text.js'

const setting = <T>(
  path: string,
  section: string,
  schema: v.GenericSchema<unknown, T>,
  fallback: T,
  apply: Setting['apply'] = 'restart-required',
): Setting<T> => ({ path, section, schema, default: fallback, apply })
const integer = (min: number, max: number) => v.pipe(v.number(), v.integer(), v.minValue(min), v.maxValue(max))
const HOST = v.pipe(v.string(), v.minLength(1), v.maxLength(253))
const LEVEL = v.picklist(['debug', 'info', 'warn', 'error'])

/** The paths that the kernel itself owns. */
export const KernelSettings = {
  socket: setting('daemon.socket', 'general', v.string(), ''),
  /** `auto`: TCP is served where the system tells which local user is at the other end. */
  enabled: setting<boolean | 'auto'>('http.enabled', 'general', v.union([v.boolean(), v.literal('auto')]), 'auto'),
  host: setting('http.host', 'general', HOST, 'localhost'),
  port: setting('http.port', 'general', integer(0, 65535), 2123),
  /** Streams that may be open through one door at a time. */
  maxStreams: setting('http.max_streams', 'general', integer(1, 100_000), 1000, 'live'),
  logLevel: setting('log.level', 'observability', LEVEL, 'info', 'live'),
  /** The file that the embedder writes the log to: its size, how many rotated ones are kept, and how long (0: for ever). */
  logMegabytes: setting('log.max_size_mb', 'observability', integer(1, 1024), 10),
  logBackups: setting('log.max_backups', 'observability', integer(0, 100), 5),
  logDays: setting('log.max_age_days', 'observability', integer(0, 3650), 30),
  redact: setting('redact.enabled', 'general', v.boolean(), true),
  disabled: setting<string[]>('plugins.disabled', 'general', v.array(v.string()), []),
  replace: setting<string[]>('plugins.replace', 'general', v.array(v.string()), []),
}

/** The configuration file, decoded: values by dotted path, and paths that nobody here owns. */
export class Config {
  private constructor(
    private readonly values: ReadonlyMap<string, unknown>,
    readonly unowned: readonly string[],
  ) {}

  /**
   * Reads JSON with comments. Throws `config_invalid` naming line and key for a syntax error, an unknown key below an owned
   * section or a value that does not match. A section without any owner, and `plugins.<vendor>.<name>` of a drop-in that is not
   * loaded, are kept and reported.
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
          if (!decoded.success) throw bad(value.offset, `${at}: ${issueText(decoded.issues[0])}`)
          values.set(at, decoded.output)
          continue
        }
        const isBranch = known.some(other => other.path.startsWith(`${at}.`))
        if (value.type === 'object' && (isBranch || isVendor(path, key))) walk(value, at)
        else if (isBranch) throw bad(value.offset, `${at}: Expected an object`)
        else if (!sections.has(at.split('.')[0]) || isDropIn(path, key)) unowned.push(at)
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

/** `plugins.<vendor>`, below which stand the names of its drop-ins. */
const isVendor = (path: string, key: Node): boolean => path === 'plugins' && !String(key.value).includes('.')

/** `plugins.<vendor>.<name>`, in one key or in two: no other key below `plugins` has a dot. */
const isDropIn = (path: string, key: Node): boolean =>
  path === 'plugins' ? String(key.value).includes('.') : /^plugins\.[^.]+$/.test(path)

function plain(node: Node): unknown {
  if (node.type === 'array') return (node.children ?? []).map(plain)
  if (node.type !== 'object') return node.value
  return Object.fromEntries(
    (node.children ?? []).flatMap(({ children }) =>
      children?.[0] && children[1] ? [[String(children[0].value), plain(children[1])]] : [],
    ),
  )
}
