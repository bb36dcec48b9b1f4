import { fileName } from '../../bridge-kit/src/index.js'

/** A file that came with a message. */
export interface FileOf {
  readonly name: string
  /** Where it is; undefined: nowhere that files of Teams are. */
  readonly url: string | undefined
  /** The Bot Connector has it, and wants the token of the bot. */
  readonly isOwn: boolean
}

const MOST_FILES = 20
const DOWNLOAD = 'application/vnd.microsoft.teams.file.download.info'
/** Files of personal chats are in SharePoint, at addresses that are valid for minutes and need no token. */
const SHAREPOINT = /^(?:[a-z0-9-]+\.)+sharepoint\.com$/

/**
 * The files among the attachments of an activity: those of personal chats, and pictures.
 * @param service the address of the Bot Connector, as `connectorOf` has checked it
 */
export function filesOf(attachments: unknown, service: string): readonly FileOf[] {
  return (Array.isArray(attachments) ? attachments : []).slice(0, MOST_FILES).flatMap(one => {
    const { contentType, contentUrl, content, name } = (one ?? {}) as Readonly<Record<string, unknown>>
    if (typeof contentType !== 'string') return []
    const isDownload = contentType === DOWNLOAD
    // Cards, and the same text as HTML.
    if (!isDownload && typeof contentUrl !== 'string') return []
    const { downloadUrl } = (content ?? {}) as { readonly downloadUrl?: unknown }
    const called = fileName(typeof name === 'string' ? name : undefined, isDownload ? 'file' : 'picture')
    return [{ name: called, ...whereOf(isDownload ? downloadUrl : contentUrl, service) }]
  })
}

/** Whether a file may be fetched, and with the token: a message can name any address. */
export function whereOf(url: unknown, service: string): Pick<FileOf, 'url' | 'isOwn'> {
  if (typeof url !== 'string' || url.length > 4000 || !URL.canParse(url)) return { url: undefined, isOwn: false }
  const { origin, protocol, hostname, port, username, password } = new URL(url)
  if (`${username}${password}` !== '') return { url: undefined, isOwn: false }
  if (origin === new URL(service).origin) return { url, isOwn: true }
  const isShared = protocol === 'https:' && port === '' && SHAREPOINT.test(hostname)
  return { url: isShared ? url : undefined, isOwn: false }
}
