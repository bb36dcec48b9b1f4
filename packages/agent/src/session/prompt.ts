import { type ContentBlock, RequestError } from '@agentclientprotocol/sdk/unstable'
import type { PromptImage } from './messages.js'
import type { Prompt } from './turn.js'

const MAX_TEXT = 2_000_000
const MAX_IMAGES = 16
/** Base64 characters of one image. */
const MAX_IMAGE = 7_000_000
const IMAGE_TYPE = /^image\/(?:png|jpeg|gif|webp)$/
/** Strictly base64: the SDK would fetch a URL. */
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/

/**
 * Converts the blocks of a prompt to text and images; a note replaces content that models cannot take.
 * @throws If the prompt is too long.
 */
export function promptOf(blocks: readonly ContentBlock[]): Prompt {
  const images: PromptImage[] = []
  const text = blocks
    .flatMap(block => {
      if (block.type === 'text') return [block.text]
      if (block.type === 'resource_link') return [`[${block.name}: ${block.uri}]`]
      if (block.type === 'resource' && 'text' in block.resource)
        return [`[${block.resource.uri}]\n${block.resource.text}`]
      if (block.type !== 'image') return [`[${block.type}, which this agent does not support]`]
      const { data, mimeType } = block
      if (!IMAGE_TYPE.test(mimeType) || !BASE64.test(data)) return ['[an image that is not PNG, JPEG, GIF or WebP]']
      if (data.length > MAX_IMAGE || images.length >= MAX_IMAGES)
        return ['[an image that is too large, or exceeds the number of images]']
      images.push({ data, mediaType: mimeType })
      return []
    })
    .join('\n\n')
  if (text.length > MAX_TEXT) {
    throw RequestError.invalidParams({ code: 'prompt_too_long' }, `a prompt has at most ${MAX_TEXT} characters`)
  }
  return { text, images }
}
