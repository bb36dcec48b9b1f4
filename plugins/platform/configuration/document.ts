import type { Node, ParseError } from 'jsonc-parser'
import * as v from 'valibot'
import { issueText } from '../../../kernel/kit/issue-text.js'
import { nearest } from '../../../kernel/kit/text.js'
import { isDropIn } from '../../../kernel/platform.js'
import { Fault, type Setting } from '../../../kernel/plugin.js'
import { membersOf, placeOf, plain, treeOf } from './jsonc.js'
import type { ConfigProblem, ConfigText, Said } from './layers.js'
import { syntaxProblem } from './syntax.js'

/** Maximum characters of a file. */
const MOST_CHARACTERS = 16 * 1024 * 1024
/** Key that names the format for editors. */
const SCHEMA_KEY = '$schema'

/**
 * Reads JSON with comments. Throws `config_invalid` with all mistakes, each with line and key: a syntax error, an unknown key, an
 * invalid value. In a map of named things an invalid entry only costs itself. Settings of a drop-in that is not loaded,
 * `plugins.<vendor>.<name>`, are kept and reported. An overlay may only contain settings that allow it.
 * @param where names the text in messages
 */
export function configText(text: string, where: string, known: readonly Setting[], isOverlay = false): ConfigText {
  const { problems, ...document } = new Reader(text, where, known, isOverlay).read()
  const [first] = problems
  if (first === undefined) return document
  throw new Fault('config_invalid', 500, problems.map(problemText).join('\n'), {
    next: `edit ${first.where.replace(/:(\d+)$/, ', line $1')}`,
  })
}

/** The mistakes of a text as {@link configText} finds them, in order; empty for a valid text. */
export const configProblems = (...[text, where, known, isOverlay = false]: Parameters<typeof configText>) =>
  new Reader(text, where, known, isOverlay).read().problems

/** `config.json:3: what is wrong` */
export const problemText = ({ where, text }: ConfigProblem): string => `${where}: ${text}`

/** Reads one text and collects its mistakes. */
class Reader {
  readonly #said = new Map<string, Said>()
  readonly #unowned: string[] = []
  readonly #leftOut: ConfigProblem[] = []
  readonly #problems: ConfigProblem[] = []
  readonly #byPath: ReadonlyMap<string, Setting>

  constructor(
    private readonly text: string,
    private readonly where: string,
    private readonly known: readonly Setting[],
    private readonly isOverlay: boolean,
  ) {
    this.#byPath = new Map(known.map(entry => [entry.path, entry]))
  }

  read(): ConfigText & { readonly problems: readonly ConfigProblem[] } {
    const { text } = this
    const errors: ParseError[] = []
    if (text.length > MOST_CHARACTERS) this.#bad('', 0, `more than ${MOST_CHARACTERS} characters`)
    else {
      const root = text.trim() === '' ? undefined : treeOf(text, errors)
      const broken = syntaxProblem(text, errors)
      if (broken) this.#bad('', broken.offset, `not valid JSON: ${broken.text}`)
      else if (root && root.type !== 'object') this.#bad('', root.offset, 'the configuration is a JSON object')
      else if (root) this.#walk(root, '')
    }
    return { said: this.#said, unowned: this.#unowned, leftOut: this.#leftOut, problems: this.#problems }
  }

  #walk(parent: Node, path: string): void {
    for (const { key, value, node } of membersOf(parent)) {
      const at = path === '' ? key : `${path}.${key}`
      const entry = this.#byPath.get(at)
      if (entry) {
        if (this.isOverlay && !entry.overlay) this.#bad(at, node.offset, `${at} has one value for the whole daemon`)
        else this.#take(entry, value)
        continue
      }
      const isBranch = this.known.some(other => other.path.startsWith(`${at}.`))
      if (value.type === 'object' && (isBranch || isVendor(path, key))) this.#walk(value, at)
      else if (isBranch) this.#bad(at, value.offset, `${at}: Expected an object`)
      else if (isOfDropIn(path, key)) this.#unowned.push(at)
      else if (at !== SCHEMA_KEY) this.#bad(at, node.offset, `unknown key ${at}${this.#meant(path, key)}`)
    }
  }

  #take(entry: Setting, node: Node): void {
    const raw = plain(node)
    const where = this.#lineOf(node.offset)
    const decoded = v.safeParse(entry.schema, raw)
    if (decoded.success) this.#said.set(entry.path, { value: decoded.output, raw, where })
    else if (entry.merge === 'by-name' && node.type === 'object') this.#takeEntries(entry, node, raw)
    else this.#bad(entry.path, node.offset, `${entry.path}: ${issueText(decoded.issues[0])}`)
  }

  /** An invalid entry is ignored, or refused if it guards something. */
  #takeEntries(entry: Setting, node: Node, raw: unknown): void {
    const good: [string, unknown][] = []
    let isRefused = false
    for (const { key, value, node: member } of membersOf(node)) {
      const one = plain(value)
      const decoded = v.safeParse(entry.schema, { [key]: one })
      if (decoded.success) {
        good.push([key, one])
        continue
      }
      const at = `${entry.path}.${key}`
      const what = `${at}: ${issueText(decoded.issues[0])}`
      if (entry.guards?.(one)) {
        isRefused = true
        this.#bad(at, member.offset, what)
      } else this.#leftOut.push({ path: at, where: this.#lineOf(member.offset), text: what })
    }
    const rest = v.safeParse(entry.schema, Object.fromEntries(good))
    const where = this.#lineOf(node.offset)
    if (rest.success) this.#said.set(entry.path, { value: rest.output, raw, where })
    // No single entry is invalid: the problem is their number.
    else if (!isRefused) this.#bad(entry.path, node.offset, `${entry.path}: ${issueText(rest.issues[0])}`)
  }

  #bad(path: string, offset: number, text: string): void {
    this.#problems.push({ path, where: this.#lineOf(offset), text })
  }

  #lineOf(offset: number): string {
    return `${this.where}:${placeOf(this.text, offset).line}`
  }

  /** A hint at a similar known key on the same level. */
  #meant(path: string, key: string): string {
    const depth = path === '' ? 0 : path.split('.').length
    const siblings = this.known.filter(entry => path === '' || entry.path.startsWith(`${path}.`))
    const names = new Set(siblings.map(entry => entry.path.split('.')[depth] ?? ''))
    const [like] = nearest(key, [...names])
    return like === undefined ? '' : `; did you mean ${path === '' ? '' : `${path}.`}${like}?`
  }
}

/** `plugins.<vendor>`, which contains the names of the vendor's drop-ins. */
const isVendor = (path: string, key: string): boolean => path === 'plugins' && !isDropIn(key)

/** `plugins.<vendor>.<name>`, in one key or in two: no other key below `plugins` has a dot. */
const isOfDropIn = (path: string, key: string): boolean =>
  path === 'plugins' ? isDropIn(key) : /^plugins\.[^.]+$/.test(path)
