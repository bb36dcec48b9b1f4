import type { Envelope } from '../../../../schemas/network/messages.js'
import { PROTOCOL } from '../envelope.js'
import type { MessageRow } from '../tables.js'

/** Who says what the daemon itself has to say in a conversation. No peer has this name: those of sessions have a dot. */
export const NOTICE = 'svc'

/** The message that says that two peers are stopped, in the place of the one that was too much. */
export function noticeOf(message: Omit<MessageRow, 'seq'>, pair: readonly [string, string], id: string) {
  const { workspaceId, channel, surface, containerId, at } = message
  const text = `${pair.join(' and ')} have sent each other too many messages in a minute: what they say to each other is refused for the next one.`
  const envelope: Envelope = {
    ...{ protocol: PROTOCOL, id, workspace_id: workspaceId, channel, kind: 'say', from: NOTICE },
    ...{ ts: Math.floor(at / 1000), body: { text, intent: 'notice' }, causation_id: message.id },
    ...(surface !== undefined && { surface }),
    ...(containerId !== undefined && { [surface === 'direct' ? 'direct_id' : 'thread_id']: containerId }),
  }
  return { id, envelope }
}
