import { clip } from './text.js'
/** The body of a response; undefined if it exceeds `most` bytes, in which case the rest is not read. */
export async function bytesOf(response: Response, most: number): Promise<Buffer | undefined> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.length
    // Leaving the loop cancels the body.
    if (bytes > most) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** A file name without path separators and control characters. */
export function fileName(name: string | undefined, fallback: string): string {
  return clip((name ?? '').replace(/[\p{Cc}/\\]/gu, '_'), 200) || fallback
}

/** The note in place of a file that is not attached. */
export const fileMissing = (name: string, why: string): string => `[The file ${name} is not attached: ${why}.]`
