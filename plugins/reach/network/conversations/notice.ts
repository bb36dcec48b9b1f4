import type { Envelope } from '../../../../schemas/network/messages.js'
import { PROTOCOL } from '../envelope.js'
import type { MessageRow } from '../tables.js'

/** Sender of the daemon's own notices. No peer has this name: those of sessions contain a dot. */
export const NOTICE = 'svc'

/** The notice that two peers are stopped, which replaces the exceeding message. */
export function noticeOf(message: Omit<MessageRow, 'seq'>, pair: readonly [string, string], id: string) {
  const { workspaceId, channel, surface, containerId, at } = message
  const text = `${pair.join(' and ')} have sent each other too many messages in a minute: their messages to each other are refused for the next minute.`
  const envelope: Envelope = {
    ...{ protocol: PROTOCOL, id, workspace_id: workspaceId, channel, kind: 'say', from: NOTICE },
    ...{ ts: Math.floor(at / 1000), body: { text, intent: 'notice' }, causation_id: message.id },
    ...(surface !== undefined && { surface }),
    ...(containerId !== undefined && { [surface === 'direct' ? 'direct_id' : 'thread_id']: containerId }),
  }
  return { id, envelope }
}
