import type { TranscriptEntry } from '../../../schemas/sessions.js'
import { markerText } from './event-lines.js'
import { oneLine } from './one-line.js'

/** A line of a transcript; `failed` marks a failure. */
export interface TranscriptLine {
  readonly text: string
  readonly failed?: true
}

/** The lines of a message for a person; empty when it has no visible content. */
export function transcriptLines({ parts }: TranscriptEntry['message']): TranscriptLine[] {
  return parts.flatMap((part): TranscriptLine[] => {
    const data = (part.data ?? {}) as Record<string, unknown>
    switch (part.type) {
      case 'text':
        return textLines(part.text)
      case 'dynamic-tool':
        return [{ text: `• ${oneLine(part.title ?? part.toolName)} ${part.state ?? ''}`.trimEnd() }]
      case 'data-transcript_marker.created':
        return [{ text: markerText(part.data) }]
      case 'data-session_stopped': {
        const detail = data.stop_detail ? `: ${oneLine(data.stop_detail)}` : ''
        return [{ text: `session stopped (${oneLine(data.stop_reason ?? 'unknown')})${detail}` }]
      }
      case 'data-omitted':
        return [{ text: '… parts of this message are left out here; svc session events shows all of it' }]
      case 'data-system':
        return textLines(data.text ?? data.note)
      default:
        return part.errorText ? [{ text: `✗ ${part.errorText}`, failed: true }] : []
    }
  })
}

function textLines(text: unknown): TranscriptLine[] {
  if (typeof text !== 'string' || text.trim() === '') return []
  return text
    .trim()
    .split('\n')
    .map(line => ({ text: line }))
}
