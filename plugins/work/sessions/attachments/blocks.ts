import { messageOf } from '../../../../kernel/plugin.js'
import type { Block, PromptAbilities } from '../../acp/api.js'
import type { AttachmentRow, Attachments } from './store.js'

/** The blocks of attachments for an agent; `leftOut` names the files that it does not accept. */
export async function blocksOf(
  store: Pick<Attachments, 'get' | 'whole'>,
  sessionId: string,
  { attachments: ids = [] }: { readonly attachments?: readonly string[] | undefined },
  abilities: PromptAbilities,
  leftOut: (why: string) => void,
): Promise<readonly Block[]> {
  const blocks: Block[] = []
  for (const id of ids) {
    try {
      const row = store.get(sessionId, id)
      const block = await blockOf(store, row, abilities)
      if (block) blocks.push(block)
      else leftOut(`${row.name}: this agent does not accept ${row.mime_type}`)
    } catch (error) {
      leftOut(`${id}: ${messageOf(error)}`)
    }
  }
  return blocks
}

async function blockOf(
  store: Pick<Attachments, 'whole'>,
  row: AttachmentRow,
  { image, audio, embeddedContext }: PromptAbilities,
): Promise<Block | undefined> {
  const { kind, name, mime_type: mimeType } = row
  const data = async () => (await store.whole(row)).toString('base64')
  const uri = `attachment:///${row.id}/${encodeURIComponent(name)}`
  if (kind === 'image' && image) return { type: 'image', mimeType, data: await data() }
  if (kind === 'audio' && audio) return { type: 'audio', mimeType, data: await data() }
  if (kind === 'text') {
    const text = (await store.whole(row)).toString()
    if (embeddedContext) return { type: 'resource', resource: { uri, mimeType, text } }
    return { type: 'text', text: `The attached file ${name}:\n\n${text}` }
  }
  return embeddedContext ? { type: 'resource', resource: { uri, mimeType, blob: await data() } } : undefined
}
