import { Manifest } from '../../plugins/delivery/extensions/manifest/manifest.js'
import { jsonOf, type Member, membersOf } from './json-schema.js'
import { manifestTexts } from './manifest-text.js'
import { code, page, table } from './markdown.js'

/** Keys of a manifest. */
export const manifestKeys = (): readonly Member[] =>
  membersOf(jsonOf(Manifest)).map(key => ({ ...key, description: key.description || (manifestTexts[key.path] ?? '') }))

export function manifestPage(): string {
  const rows = manifestKeys().map(({ path, type, isRequired, fallback, description }) => [
    code(path),
    type,
    isRequired ? 'required' : fallback,
    description,
  ])
  return page(
    'The manifest of an extension',
    `${code('extension.toml')}, or ${code('extension.json')} with the same keys. Keys without a dot may also stand in a table
${code('[extension]')}. An unknown key is an error. ${code('svc extension validate')} names file, line and key of what is wrong.`,
    table(['key', 'type', 'default', 'meaning'], rows),
  )
}
