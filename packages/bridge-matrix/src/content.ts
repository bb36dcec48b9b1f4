import { clip, type Delivery, NotSent, split } from '../../bridge-kit/src/index.js'
import { isEvent, isUser } from './config.js'
import { styled } from './markup.js'

/** Bytes of an event's content; with the server's additions an event has at most 65,536. */
const MOST_BYTES = 56_000
/** Characters of the fallback text for clients without edit support. */
const LONGEST_FALLBACK = 300

/** The content member that identifies the bot's message, independent of the access token. */
export const NONCE = 'svc.nonce'

/**
 * The content of a message or of an edit.
 * @throws NotSent If it is too large
 */
export function contentOf({
  text,
  nonce,
  target,
  remote_message_id: id,
  reply_to_message_id: reply,
}: Delivery): object {
  const whole = make(text, true)
  const said = bytesOf(whole) <= MOST_BYTES ? whole : make(text, false)
  if (bytesOf(said) > MOST_BYTES) throw new NotSent('unsupported_capability', 'the text is too long for a message')
  if (id !== undefined) {
    const [head = ''] = split(said.body, LONGEST_FALLBACK, 'utf16')
    return {
      msgtype: 'm.text',
      body: `* ${head}`,
      'm.new_content': { ...said, 'm.mentions': {} },
      'm.mentions': {},
      'm.relates_to': { rel_type: 'm.replace', event_id: id },
    }
  }
  // Notifies only the person who is answered, and nobody named in the text.
  const answered = target.group_id !== undefined && isUser(target.peer_id) ? { user_ids: [target.peer_id] } : {}
  const relation = relationOf(target.thread_id, reply)
  return { ...said, 'm.mentions': answered, [NONCE]: nonce, ...(relation ? { 'm.relates_to': relation } : {}) }
}

function make(text: string, hasStyles: boolean) {
  const { body, html } = styled(text)
  const styles = hasStyles && html !== undefined ? { format: 'org.matrix.custom.html', formatted_body: html } : {}
  return { msgtype: 'm.text', body, ...styles }
}

const bytesOf = (content: object): number => Buffer.byteLength(JSON.stringify(content))

function relationOf(thread: string | undefined, reply: string | undefined): object | undefined {
  const isReply = isEvent(reply)
  if (thread === undefined) return isReply ? { 'm.in_reply_to': { event_id: reply } } : undefined
  if (!isEvent(thread))
    throw new NotSent('unknown_destination', `${JSON.stringify(clip(String(thread), 80))} is not a Matrix thread`)
  return {
    rel_type: 'm.thread',
    event_id: thread,
    is_falling_back: !isReply,
    'm.in_reply_to': { event_id: isReply ? reply : thread },
  }
}
