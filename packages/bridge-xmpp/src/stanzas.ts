import { type Element, xml } from '@xmpp/client-core'
import type { NotSentKind } from '../../bridge-kit/src/index.js'
import { clip } from '../../bridge-kit/src/index.js'

export const NS = {
  delay: 'urn:xmpp:delay',
  sid: 'urn:xmpp:sid:0',
  correct: 'urn:xmpp:message-correct:0',
  mam: 'urn:xmpp:mam:2',
  forward: 'urn:xmpp:forward:0',
  muc: 'http://jabber.org/protocol/muc',
  mucUser: 'http://jabber.org/protocol/muc#user',
  info: 'http://jabber.org/protocol/disco#info',
  data: 'jabber:x:data',
  rsm: 'http://jabber.org/protocol/rsm',
  ping: 'urn:xmpp:ping',
  carbons: 'urn:xmpp:carbons:2',
  occupantId: 'urn:xmpp:occupant-id:0',
  tls: 'urn:ietf:params:xml:ns:xmpp-tls',
  hints: 'urn:xmpp:hints',
  chatStates: 'http://jabber.org/protocol/chatstates',
  stanzas: 'urn:ietf:params:xml:ns:xmpp-stanzas',
} as const

/** Removes characters that XML forbids: a server closes the stream of a client that sends them. */
export function sayable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what XML 1.0 does not allow
  return text.replace(/[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff]|\p{Cs}/gu, '')
}

/** A message with a body; `replaces` is the id of the message that it corrects. */
export function messageOf(
  to: string,
  type: 'chat' | 'groupchat',
  id: string,
  text: string,
  replaces?: string,
): Element {
  return xml(
    'message',
    { to, type, id },
    xml('body', {}, sayable(text)),
    xml('origin-id', { xmlns: NS.sid, id }),
    replaces === undefined ? undefined : xml('replace', { xmlns: NS.correct, id: replaces }),
    // Requests archiving, because deliveries are looked up in the archive.
    xml('store', { xmlns: NS.hints }),
  )
}

/** The id assigned by the archive `by`. Other entities can add such elements, which are ignored. */
export function archiveId(stanza: Element, by: string): string | undefined {
  return stanza.getChildren('stanza-id', NS.sid).find(({ attrs }) => attrs.by === by)?.attrs.id
}

/**
 * The occupant id that a room assigned, constant over nick changes (XEP-0421). A room with this feature removes ids set by clients.
 * The address that an archive shows can be forged if the room hid addresses then.
 */
export function occupantIdOf(stanza: Element): string | undefined {
  const found = stanza.getChildren('occupant-id', NS.occupantId)
  return found.length === 1 ? found[0]?.attrs.id : undefined
}

/** Whether a stanza carries an id. */
export const hasId = (stanza: Element, id: string): boolean =>
  stanza.attrs.id === id || stanza.getChild('origin-id', NS.sid)?.attrs.id === id

/** Permanent conditions of error stanzas. */
const PERMANENT: Readonly<Record<string, NotSentKind>> = {
  'item-not-found': 'unknown_destination',
  'service-unavailable': 'unknown_destination',
  'recipient-unavailable': 'unknown_destination',
  'remote-server-not-found': 'unknown_destination',
  gone: 'unknown_destination',
  'jid-malformed': 'unknown_destination',
  redirect: 'unknown_destination',
  forbidden: 'permission_denied',
  'not-allowed': 'permission_denied',
  'not-authorized': 'permission_denied',
  'registration-required': 'permission_denied',
  'subscription-required': 'permission_denied',
  'policy-violation': 'permission_denied',
  'not-acceptable': 'permission_denied',
  'feature-not-implemented': 'unsupported_capability',
}

/** The failure that an error stanza describes. */
export function errorOf(stanza: Element): { readonly kind: NotSentKind; readonly text: string } {
  const error = stanza.getChild('error')
  const condition = error?.getChildElements().find(child => child.getNS() === NS.stanzas && child.name !== 'text')?.name
  const said = error?.getChildText('text') ?? ''
  // The recipient may be offline, or its server temporarily unreachable.
  const kind = error?.attrs.type === 'wait' ? undefined : PERMANENT[condition ?? '']
  return {
    kind: kind ?? 'transient_delivery_failure',
    text: `${condition ?? 'an error'}${said === '' ? '' : `: ${clip(said, 200)}`}`,
  }
}

/** A query of an archive. */
export function archiveQuery(queryId: string, fields: Readonly<Record<string, string>>, page: RsmPage): Element {
  const field = ([name, value]: [string, string]) => xml('field', { var: name }, xml('value', {}, value))
  return xml(
    'query',
    { xmlns: NS.mam, queryid: queryId },
    xml(
      'x',
      { xmlns: NS.data, type: 'submit' },
      xml('field', { var: 'FORM_TYPE', type: 'hidden' }, xml('value', {}, NS.mam)),
      Object.entries(fields).map(field),
    ),
    xml(
      'set',
      { xmlns: NS.rsm },
      xml('max', {}, '100'),
      xml('before' in page ? 'before' : 'after', {}, Object.values(page)[0]),
    ),
  )
}

/** The start of an archive page; an empty `before` is the newest page. */
export type RsmPage = { readonly before: string } | { readonly after: string }
