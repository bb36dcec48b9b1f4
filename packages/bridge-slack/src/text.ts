import { type Inline, markdown } from '../../bridge-kit/src/index.js'

/** Escapes the characters of Slack's control sequences. */
const escaped = (text: string): string => text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;')

/** Converts Markdown to mrkdwn. Every `<` is escaped, so that the text cannot mention a person, group or channel. */
export function mrkdwn(text: string): string {
  const blocks = markdown(text).map(block =>
    block.type === 'words' ? inner(block.inner) : `\`\`\`\n${escaped(block.code)}\n\`\`\``,
  )
  return blocks.join('\n')
}

const inner = (parts: readonly Inline[]): string => parts.map(inline).join('')

function inline(one: Inline): string {
  switch (one.type) {
    case 'text':
      return escaped(one.text)
    case 'code':
      return `\`${escaped(one.text)}\``
    case 'bold':
      return `*${inner(one.inner)}*`
    case 'italic':
      return `_${inner(one.inner)}_`
    case 'strike':
      return `~${inner(one.inner)}~`
    case 'link':
      // A bar would end the address.
      return `<${escaped(one.url).replace(/\|/g, '%7C')}|${inner(one.inner).replace(/\|/g, '¦')}>`
  }
}

/** The readable form of a text, without a leading mention of the bot. */
export function readable(text: string, bot: string): string {
  const rest = text.trim().startsWith(`<@${bot}`) ? text.trim().replace(/^<@[^>]*>[\s,:]*/, '') : text
  const words = (rest.trim() === '' ? text : rest)
    .replace(/<!(channel|here|everyone)(?:\|[^>]*)?>/g, '@$1')
    .replace(/<!subteam\^(\w+)(?:\|@?([^>]*))?>/g, (_, id, name) => `@${name || id}`)
    .replace(/<!date\^[^|>]*\|([^>]*)>/g, '$1')
    .replace(/<@(\w+)(?:\|([^>]*))?>/g, (_, id, name) => `@${name || id}`)
    .replace(/<#(\w+)(?:\|([^>]*))?>/g, (_, id, name) => `#${name || id}`)
    .replace(/<((?:https?|mailto|tel):[^|>]+)\|([^>]*)>/g, (_, url, label) =>
      url === label || url === `http://${label}` || url === `mailto:${label}` ? label : `${label} (${url})`,
    )
    .replace(/<((?:https?|mailto|tel):[^|>]+)>/g, '$1')
  return words.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&amp;/g, '&').trim()
}

/** Whether a text mentions the bot. */
export const names = (text: string, bot: string): boolean => text.includes(`<@${bot}>`) || text.includes(`<@${bot}|`)
