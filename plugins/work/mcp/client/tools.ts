import { createHash } from 'node:crypto'
import * as v from 'valibot'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { clip } from '../../../../kernel/kit/text.js'

const MAX_TOOLS = 512
const MAX_DESCRIPTION = 4096
const MAX_SCHEMA_BYTES = 64 * 1024
/** Total bytes of the schemas in a list: they are hashed in one event loop turn. */
const MAX_LIST_BYTES = 2 * 1024 * 1024
const MAX_ID = 128

/** A tool as sent by a server; the annotations about its effects are unverified claims. */
const Told = v.object({
  name: v.pipe(v.string(), v.minLength(1), v.maxLength(256)),
  title: v.optional(v.string()),
  description: v.optional(v.string()),
  inputSchema: v.looseObject({ type: v.literal('object') }),
  annotations: v.optional(
    v.object({
      title: v.optional(v.string()),
      destructiveHint: v.optional(v.boolean()),
    }),
  ),
})

/** A checked tool of a server. */
export interface McpTool {
  /** `mcp__<server>__<tool>`. */
  readonly id: string
  /** Its name on the server. */
  readonly name: string
  readonly title: string
  readonly description: string
  readonly inputSchema: Readonly<Record<string, unknown>>
  /** Whether the server marks it as destructive. A read-only mark cannot be verified and is ignored. */
  readonly isDestructive: boolean
  /** SHA-256, hex, of the whole description of the tool: a changed tool counts as another one. */
  readonly digest: string
}

/** Tools of a server, and the unusable parts of its list. */
export interface ToolList {
  readonly tools: readonly McpTool[]
  readonly refused: readonly string[]
  /** Tools with unusable ids: too long or ambiguous. They are listed with the reason and never called. */
  readonly withheld: readonly { readonly tool: McpTool; readonly tooLong?: true }[]
}

/** A part of a tool id: lower case, with other characters replaced by a single `_`, because `__` separates the parts. */
export const idPart = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '_')
    .replace(/^_+|_+$/g, '')

/** Checks the listed tools one by one: an unusable one is left out with its reason and affects no other. */
export function toolsOf(server: string, listedTools: readonly unknown[]): ToolList {
  const tools = new Map<string, McpTool>()
  const refused: string[] = []
  const twice = new Set<string>()
  const withheld: { tool: McpTool; tooLong?: true }[] = []
  let bytes = 0
  for (const one of listedTools.slice(0, MAX_TOOLS)) {
    const parsed = v.safeParse(Told, one)
    const called = clip(String(Object(one).name ?? ''), 80)
    if (!parsed.success) {
      refused.push(`${called || 'a tool without a name'}: ${clip(v.summarize(parsed.issues), 200)}`)
      continue
    }
    const { name, title, description = '', inputSchema, annotations = {} } = parsed.output
    const id = `mcp__${idPart(server)}__${idPart(name)}`
    const size = bytesOf(inputSchema)
    const made = (): McpTool => ({
      id,
      name,
      title: clip(title ?? annotations.title ?? name, 200),
      description: clip(description, MAX_DESCRIPTION),
      inputSchema,
      isDestructive: annotations.destructiveHint === true,
      digest: createHash('sha256').update(canonicalJson(parsed.output)).digest('hex'),
    })
    if (idPart(name) === '') refused.push(`${called}: this name cannot be turned into an id`)
    else if (size > MAX_SCHEMA_BYTES) refused.push(`${called}: its schema has over ${MAX_SCHEMA_BYTES} bytes`)
    else if (bytes + size > MAX_LIST_BYTES)
      refused.push(`${called}: the schemas of the tools before it already use ${MAX_LIST_BYTES} bytes`)
    else if (id.length > MAX_ID) {
      refused.push(`${called}: its id would have over ${MAX_ID} characters`)
      bytes += size
      withheld.push({ tool: made(), tooLong: true })
    } else if (tools.has(id)) {
      twice.add(id)
      bytes += size
      withheld.push({ tool: made() })
    } else {
      bytes += size
      tools.set(id, made())
    }
  }
  if (listedTools.length > MAX_TOOLS) refused.push(`${listedTools.length - MAX_TOOLS} tools beyond ${MAX_TOOLS}`)
  // An id that several tools map to is withheld: a choice would depend on their order.
  for (const id of twice) {
    withheld.push({ tool: tools.get(id) as McpTool })
    tools.delete(id)
    refused.push(`${id}: several tools have this id`)
  }
  return { tools: [...tools.values()], refused, withheld }
}

const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value))
