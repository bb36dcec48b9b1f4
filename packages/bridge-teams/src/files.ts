import { fileName } from '../../bridge-kit/src/index.js'

/** A file of a message. */
export interface FileOf {
  readonly name: string
  /** Undefined if the file is on an unknown host. */
  readonly url: string | undefined
  /** The file is on the Bot Connector and requires the bot's token. */
  readonly isOwn: boolean
}

const MOST_FILES = 20
const DOWNLOAD = 'application/vnd.microsoft.teams.file.download.info'
/** Files of personal chats are on SharePoint, with URLs that are valid for minutes and need no token. */
const SHAREPOINT = /^(?:[a-z0-9-]+\.)+sharepoint\.com$/

/**
 * The files of an activity: attachments of personal chats, and pictures.
 * @param service The Bot Connector URL, checked by `connectorOf`
 */
export function filesOf(attachments: unknown, service: string): readonly FileOf[] {
  return (Array.isArray(attachments) ? attachments : []).slice(0, MOST_FILES).flatMap(one => {
    const { contentType, contentUrl, content, name } = (one ?? {}) as Readonly<Record<string, unknown>>
    if (typeof contentType !== 'string') return []
    const isDownload = contentType === DOWNLOAD
    // Skips cards and the HTML form of the text.
    if (!isDownload && typeof contentUrl !== 'string') return []
    const { downloadUrl } = (content ?? {}) as { readonly downloadUrl?: unknown }
    const called = fileName(typeof name === 'string' ? name : undefined, isDownload ? 'file' : 'picture')
    return [{ name: called, ...whereOf(isDownload ? downloadUrl : contentUrl, service) }]
  })
}

/** The URL of a file if it may be fetched, and whether the token may be sent: a message can name any URL. */
export function whereOf(url: unknown, service: string): Pick<FileOf, 'url' | 'isOwn'> {
  if (typeof url !== 'string' || url.length > 4000 || !URL.canParse(url)) return { url: undefined, isOwn: false }
  const { origin, protocol, hostname, port, username, password } = new URL(url)
  if (`${username}${password}` !== '') return { url: undefined, isOwn: false }
  if (origin === new URL(service).origin) return { url, isOwn: true }
  const isShared = protocol === 'https:' && port === '' && SHAREPOINT.test(hostname)
  return { url: isShared ? url : undefined, isOwn: false }
}
