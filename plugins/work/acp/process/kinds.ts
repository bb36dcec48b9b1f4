/** Maximum bytes of one file of a prompt. */
export const MAX_FILE_BYTES = 20 * 1024 * 1024

/** Kind of a file of a prompt, by its content type. */
export type AttachmentKind = 'image' | 'audio' | 'text' | 'document'

const TEXTS = /^(?:text\/[\w.+-]+|application\/(?:json|xml|yaml|toml|x-yaml|javascript|typescript|x-sh|sql))$/
const IMAGES = /^image\/(?:png|jpeg|gif|webp)$/

/** The kind of a content type; undefined for one that no prompt can carry. */
export function kindOf(type: string): AttachmentKind | undefined {
  if (IMAGES.test(type)) return 'image'
  if (TEXTS.test(type)) return 'text'
  if (/^audio\/(?:mpeg|wav|x-wav|ogg|webm|mp4|flac)$/.test(type)) return 'audio'
  return type === 'application/pdf' ? 'document' : undefined
}

/** Whether the first bytes of a file match its content type; texts are checked as a whole elsewhere. */
export function looksLike(type: string, head: Buffer): boolean {
  const ascii = head.toString('latin1', 0, 16)
  switch (type) {
    case 'image/png':
      return ascii.startsWith('\x89PNG\r\n\x1a\n')
    case 'image/jpeg':
      return ascii.startsWith('\xff\xd8\xff')
    case 'image/gif':
      return /^GIF8[79]a/.test(ascii)
    case 'image/webp':
      return /^RIFF....WEBP/s.test(ascii)
    case 'application/pdf':
      return ascii.startsWith('%PDF-')
    default:
      return true
  }
}

export interface Size {
  readonly width: number
  readonly height: number
}

const UNKNOWN: Size = { width: 0, height: 0 }

/** Pixels of an image by its first bytes; zeros where they are missing. */
export function sizeOf(type: string, head: Buffer): Size {
  try {
    switch (type) {
      case 'image/png':
        return { width: head.readUInt32BE(16), height: head.readUInt32BE(20) }
      case 'image/gif':
        return { width: head.readUInt16LE(6), height: head.readUInt16LE(8) }
      case 'image/jpeg':
        return jpegSize(head)
      case 'image/webp':
        return webpSize(head)
      default:
        return UNKNOWN
    }
  } catch {
    // The head is cut off before the size.
    return UNKNOWN
  }
}

/** Skips segments up to the one that begins a frame. */
function jpegSize(head: Buffer): Size {
  for (let at = 2; at + 9 < head.length; at += 2 + head.readUInt16BE(at + 2)) {
    const marker = head.readUInt8(at + 1)
    const isFrame = marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)
    if (isFrame) return { height: head.readUInt16BE(at + 5), width: head.readUInt16BE(at + 7) }
  }
  return UNKNOWN
}

function webpSize(head: Buffer): Size {
  switch (head.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: head.readUInt16LE(26) & 0x3fff, height: head.readUInt16LE(28) & 0x3fff }
    case 'VP8L': {
      const bits = head.readUInt32LE(21)
      return { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 }
    }
    case 'VP8X':
      return { width: head.readUIntLE(24, 3) + 1, height: head.readUIntLE(27, 3) + 1 }
    default:
      return UNKNOWN
  }
}
