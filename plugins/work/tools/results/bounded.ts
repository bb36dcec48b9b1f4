import type { Redact } from '../../../../kernel/plugin.js'
import type { ToolContent, ToolResult } from '../api.js'

/** A bounded result, with the whole one if it was larger. */
export interface BoundedResult {
  readonly result: ToolResult
  /** Bytes of the whole result as JSON. */
  readonly bytes: number
  /** Absent: nothing was left out. */
  readonly whole?: { readonly data: Buffer; readonly mimeType: string }
}

const PREVIEW = 2000

/**
 * Redacts secrets, then limits a result to a number of bytes. A larger one is cut to the beginning of its text; the
 * whole is plain text for a single text part, else JSON.
 */
export function bounded(result: ToolResult, maxBytes: number, redact: Redact): BoundedResult {
  const hidden = redact.value(result)
  const json = JSON.stringify(hidden)
  const bytes = Buffer.byteLength(json)
  if (bytes <= maxBytes) return { result: hidden, bytes }
  const [only, ...others] = hidden.content
  const text = others.length === 0 && only?.type === 'text' ? only.text : undefined
  const beginning = (text ?? json).slice(0, Math.min(PREVIEW, maxBytes))
  const content: ToolContent[] = [{ type: 'text', text: beginning }]
  return {
    result: { content, ...(hidden.isError ? { isError: true } : {}) },
    bytes,
    whole:
      text === undefined
        ? { data: Buffer.from(json), mimeType: 'application/json' }
        : { data: Buffer.from(text), mimeType: 'text/plain' },
  }
}
