import { useState } from 'preact/hooks'
import { api, type ReplyOf } from '../../core/api.js'
import { linkTo } from '../../core/router.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Action, Badge } from '../../ui/parts.js'
import { type Extension, ExtensionDetails } from './extension-details.js'
import { Install } from './install.js'

const { fields } = text.manage
const words = text.extensions

export const extensions: ListView<Extension> = {
  name: 'extensions',
  title: text.manage.extensions,
  command: 'svc extension list',
  load: async signal => (await api('GET /api/extensions', {}, signal)).extensions,
  changes: /^(?:extension|plugin)\./,
  id: ({ name }) => name,
  columns: [
    { header: fields.name, cell: ({ name }) => name, wide: true },
    { header: fields.version, cell: ({ version }) => version },
    { header: fields.state, cell: ({ state }) => <Badge of={state} /> },
    { header: fields.source, cell: ({ source }) => source },
  ],
  empty: text.manage.none.extensions,
  create: {
    label: words.install,
    command: 'svc extension install <folder>',
    show: done => <Install done={done} />,
  },
  detail: {
    title: ({ name }) => name,
    command: ({ name }) => `svc extension show ${name}`,
    show: (extension, reload) => <ExtensionDetails key={extension.name} extension={extension} reload={reload} />,
  },
}

type Updated = ReplyOf<'POST /api/extensions/update'>['updates']

/** Updates all extensions that need no new consent, and lists the others with the reason. */
export function UpdateAll() {
  const [updates, setUpdates] = useState<Updated>()
  return (
    <>
      <div class="actions">
        <Action
          label={words.updateAll}
          run={async () => {
            setUpdates((await api('POST /api/extensions/update', { body: {} })).updates)
          }}
        />
      </div>
      {updates?.length === 0 && <p role="status">{words.noUpdates}</p>}
      {updates && updates.length > 0 && (
        <ul class="rows" aria-label={words.updates}>
          {updates.map(one => (
            <li key={one.name}>
              <a class="grow" href={linkTo('manage', 'extensions', one.name)}>
                {one.name}
              </a>
              <Badge of={one.status} />
              <span class="muted">{one.latest_version ?? one.current_version}</span>
              {one.error && <p class="failure wrap">{one.error}</p>}
            </li>
          ))}
        </ul>
      )}
    </>
  )
}
