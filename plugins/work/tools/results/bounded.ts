import type { Redact } from '../../../../kernel/plugin.js'
import type { ToolContent, ToolResult } from '../api.js'

/** A result as it is handed over, and the whole of it where that is more. */
export interface BoundedResult {
  readonly result: ToolResult
  /** Of the whole, as JSON. */
  readonly bytes: number
  /** Absent: nothing was left out. */
  readonly whole?: { readonly data: Buffer; readonly mimeType: string }
}

const PREVIEW = 2000

/**
 * Hides values of secrets, then keeps a result within so many bytes. Of one that is larger the caller has the beginning of its text;
 * all of it is text where it is one text, else JSON.
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
