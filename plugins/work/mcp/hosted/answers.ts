import { Fault, messageOf } from '../../../../kernel/plugin.js'
import type { ToolContent, ToolOutcome } from '../../tools/api.js'

/** A result in the form of the protocol. */
export interface McpAnswer {
  readonly [member: string]: unknown
  content: { type: 'text'; text: string }[]
  isError?: boolean
  structuredContent?: Record<string, unknown>
}

/** Passes parts of known types in the protocol's form; any other part becomes JSON text. */
function partOf(part: ToolContent): McpAnswer['content'][number] {
  if (part.type === 'text') return { type: 'text', text: part.text ?? '' }
  const isMedia = (part.type === 'image' || part.type === 'audio') && typeof part.data === 'string' && part.mimeType
  if (isMedia) return { type: part.type, data: part.data, mimeType: part.mimeType } as never
  if (isResource(part)) return part as never
  return { type: 'text', text: JSON.stringify(part) }
}

/** Whether a part is an embedded resource or a link to one. */
function isResource(part: ToolContent): boolean {
  const { type, resource, uri, name } = Object(part) as Readonly<Record<string, unknown>>
  if (type === 'resource_link') return typeof uri === 'string' && typeof name === 'string'
  const { uri: at, text, blob } = Object(resource)
  return type === 'resource' && typeof at === 'string' && (typeof text === 'string' || typeof blob === 'string')
}

export function answerOf({ result, truncated, artifact, bytes }: ToolOutcome): McpAnswer {
  const content = result.content.map(partOf)
  if (truncated)
    content.push({ type: 'text', text: `[the whole result has ${bytes} bytes${artifact ? `: ${artifact.uri}` : ''}]` })
  if (content.length === 0 && result.structured !== undefined)
    content.push({ type: 'text', text: JSON.stringify(result.structured) })
  const isObject =
    typeof result.structured === 'object' && result.structured !== null && !Array.isArray(result.structured)
  return {
    content,
    ...(isObject && !truncated && { structuredContent: result.structured as Record<string, unknown> }),
    ...(result.isError && { isError: true }),
  }
}

/**
 * A refusal that a model can act on: code, problem and next step.
 * @param called converts a command for people in the next step
 */
export function refusalOf(error: unknown, called = (next: string) => next): McpAnswer {
  const { code, next, details } =
    error instanceof Fault ? error : { code: 'internal', next: undefined, details: undefined }
  const reasons = details?.reason_codes ? ` (${details.reason_codes})` : ''
  const text = `${code}${reasons}: ${messageOf(error)}${next ? `. ${called(next)}` : ''}`
  return { content: [{ type: 'text', text }], isError: true }
}

export const json = (value: unknown): McpAnswer => ({ content: [{ type: 'text', text: JSON.stringify(value) }] })
