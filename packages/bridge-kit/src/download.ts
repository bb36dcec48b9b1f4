import { clip } from './text.js'
/** The body of a response; undefined when it has more bytes than that, which then are not read. */
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

/** A name of a file that is no path and fits into a line. */
export function fileName(name: string | undefined, fallback: string): string {
  return clip((name ?? '').replace(/[\p{Cc}/\\]/gu, '_'), 200) || fallback
}

/** The words that stand for a file which is not handed on. */
export const fileMissing = (name: string, why: string): string => `[The file ${name} is not attached: ${why}.]`
