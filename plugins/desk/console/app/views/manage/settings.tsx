import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { valueText } from '../../core/format.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Action, Fields } from '../../ui/parts.js'

type Setting = ReplyOf<'GET /api/settings/keys'>['keys'][number]

const { fields, value, json, badJson, save, reset, saved, none } = text.manage

export const settings: ListView<Setting> = {
  name: 'settings',
  title: text.manage.settings,
  command: 'svc config list',
  load: async signal => (await api('GET /api/settings/keys', {}, signal)).keys,
  changes: /^(?:config|settings)/,
  id: ({ key }) => key,
  columns: [
    { header: fields.key, cell: ({ key }) => <code>{key}</code>, wide: true },
    { header: fields.value, cell: setting => <span class="clip value">{JSON.stringify(setting.value)}</span> },
    { header: fields.source, cell: ({ source }) => source },
  ],
  empty: none.settings,
  filter: true,
  detail: {
    title: ({ key }) => key,
    command: ({ key }) => `svc config get ${key}`,
    show: (setting, reload) => <Editor key={setting.key} setting={setting} reload={reload} />,
  },
}

/** Where a value comes from, and a field that changes it. Everything but text is edited as JSON. */
function Editor({ setting, reload }: { readonly setting: Setting; readonly reload: () => void }) {
  const isText = typeof setting.value === 'string' && typeof setting.default === 'string'
  const [draft, setDraft] = useState(isText ? String(setting.value) : (JSON.stringify(setting.value, null, 2) ?? ''))
  const write = async (changed: unknown) => {
    await api('PATCH /api/settings/keys', { body: { changes: [{ key: setting.key, value: changed }] } })
    announce(saved)
    reload()
  }
  const parsed = () => {
    if (isText) return draft
    try {
      return JSON.parse(draft) as unknown
    } catch {
      throw new Error(badJson)
    }
  }
  return (
    <>
      {setting.description && <p>{setting.description}</p>}
      <label>
        {isText ? value : json}
        {setting.choices && isText ? (
          <select value={draft} onChange={event => setDraft(event.currentTarget.value)}>
            {setting.choices.map(choice => (
              <option key={choice} value={choice}>
                {choice}
              </option>
            ))}
          </select>
        ) : (
          <textarea
            rows={isText ? 1 : Math.min(12, draft.split('\n').length)}
            value={draft}
            onInput={event => setDraft(event.currentTarget.value)}
          />
        )}
      </label>
      <div class="actions">
        <Action label={save} tone="primary" run={async () => write(parsed())} />
        {setting.source !== 'default' && <Action label={reset} run={() => write(null)} />}
      </div>
      <Fields
        of={[
          [fields.source, setting.source],
          [fields.default, valueText(setting.default)],
          [fields.applies, setting.lifecycle],
        ]}
      />
      {setting.layers && (
        <>
          <h3>{fields.layers}</h3>
          <ol class="layers">
            {setting.layers.map(layer => (
              <li key={`${layer.layer} ${layer.where}`}>
                <span>{layer.layer}</span> <span class="muted">{layer.where}</span>
                <code>{JSON.stringify(layer.value)}</code>
              </li>
            ))}
          </ol>
        </>
      )}
    </>
  )
}
