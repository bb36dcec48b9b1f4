import { covers } from '../../../../kernel/kit/text.js'
import { toolNotGranted } from '../protocol/error.js'
import type { ToolCallFields } from '../protocol/schemas.js'
import type { EventContent } from './content.js'

/** The right for each ACP kind of tool call without a tool ID. */
const RIGHT_OF: Readonly<Record<string, string>> = {
  read: 'svc__read',
  search: 'svc__read',
  edit: 'svc__edit',
  delete: 'svc__edit',
  move: 'svc__edit',
  execute: 'svc__execute',
  fetch: 'svc__fetch',
}
const OTHER = 'svc__other'
/** Kinds without an effect outside of the agent. */
const HARMLESS: ReadonlySet<string> = new Set(['think', 'switch_mode'])
const TOOL_ID = /^[a-z][a-z0-9_-]*?__[A-Za-z0-9_.-]+$/

type Named = Pick<Partial<ToolCallFields>, 'name' | 'title'>

/** The tools that a session may use; `undefined`: all of them. */
export class ToolRights {
  #lastWarning = ''

  constructor(private readonly tools: readonly string[] | undefined) {}

  /** Whether a tool may be refused; the agent then has to ask in every mode. */
  get isLimited(): boolean {
    return this.tools !== undefined
  }

  /** The right that a tool call needs and the session lacks; undefined: none. Names are those that agents use for their tools. */
  lacking(kind: string, ...named: readonly (Named | undefined)[]): string | undefined {
    if (this.tools === undefined || HARMLESS.has(kind)) return undefined
    const own = RIGHT_OF[kind]
    // The title of such a call may be a command or a file name that looks like a tool ID.
    const names = named.flatMap(call => (own === undefined ? [call?.name, call?.title] : [call?.name]))
    const id = names.find(name => typeof name === 'string' && TOOL_ID.test(name))
    // A tool ID takes precedence over the kind, so only one right is needed.
    const wanted = typeof id === 'string' ? id : (own ?? OTHER)
    return this.tools.some(tool => covers(tool, wanted)) ? undefined : wanted
  }

  /** Checks a client method. Throws an error of the protocol; calls `warn` once per turn and tool. */
  check(kind: 'read' | 'edit' | 'execute', turnId: string, warn: (content: EventContent) => void): void {
    const lacking = this.lacking(kind)
    if (lacking === undefined) return
    if (this.#lastWarning !== `${turnId} ${lacking}`) {
      this.#lastWarning = `${turnId} ${lacking}`
      const text = `the agent requested ${lacking}, which was not granted to this session; the request was refused`
      warn({ warning: 'tool_not_granted', tool: lacking, text })
    }
    throw toolNotGranted(lacking)
  }
}
