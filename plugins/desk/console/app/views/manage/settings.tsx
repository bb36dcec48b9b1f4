import { useState } from 'preact/hooks'
import { announce } from '../../core/announce.js'
import { api, type ReplyOf } from '../../core/api.js'
import { valueText } from '../../core/format.js'
import { text } from '../../text.js'
import type { ListView } from '../../ui/list.js'
import { Action, Fields } from '../../ui/parts.js'
import { parsedJson } from './json.js'

type Setting = ReplyOf<'GET /api/settings/keys'>['keys'][number]

const { fields, value, json, save, reset, saved, none } = text.manage

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
  search: ({ key, description = '' }) => `${key} ${description}`,
  detail: {
    title: ({ key }) => key,
    command: ({ key }) => `svc config get ${key}`,
    show: (setting, reload) => <Editor key={setting.key} setting={setting} reload={reload} />,
  },
}

/** The form of a setting: text, number or switch. Other types are edited as JSON. */
type Shape = 'text' | 'number' | 'switch' | 'json'

function shapeOf({ value: now, default: usual }: Setting): Shape {
  const kind = typeof usual
  if (kind !== typeof now) return 'json'
  return kind === 'string' ? 'text' : kind === 'number' ? 'number' : kind === 'boolean' ? 'switch' : 'json'
}

/** The source of a value, and its editor. The daemon validates each change against the schema of the setting. */
function Editor({ setting, reload }: { readonly setting: Setting; readonly reload: () => void }) {
  const shape = shapeOf(setting)
  const [draft, setDraft] = useState(
    shape === 'text' ? String(setting.value) : (JSON.stringify(setting.value, null, 2) ?? ''),
  )
  const write = async (changed: unknown) => {
    await api('PATCH /api/settings/keys', { body: { changes: [{ key: setting.key, value: changed }] } })
    announce(saved)
    reload()
  }
  const parsed = () => {
    if (shape === 'text') return draft
    return parsedJson(draft)
  }
  return (
    <>
      {setting.description && <p>{setting.description}</p>}
      <label>
        {shape === 'json' ? json : value}
        <Value shape={shape} choices={setting.choices} value={draft} set={setDraft} />
      </label>
      <div class="actions">
        <Action label={save} tone="primary" run={async () => write(parsed())} />
        {setting.source !== 'default' && <Action label={reset} run={() => write(null)} />}
      </div>
      <Fields
        of={[
          [fields.source, setting.source],
          [fields.default, valueText(setting.default)],
          [fields.applies, setting.lifecycle.replaceAll('-', ' ')],
          [fields.pending, setting.pending !== undefined && valueText(setting.pending)],
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

function Value({
  shape,
  choices,
  value: draft,
  set,
}: {
  readonly shape: Shape
  readonly choices: readonly string[] | undefined
  readonly value: string
  readonly set: (value: string) => void
}) {
  const onInput = (event: { currentTarget: { value: string } }) => set(event.currentTarget.value)
  const options = shape === 'switch' ? ['true', 'false'] : shape === 'text' ? choices : undefined
  if (options)
    return (
      <select value={draft} onChange={onInput}>
        {options.map(choice => (
          <option key={choice} value={choice}>
            {choice}
          </option>
        ))}
      </select>
    )
  if (shape === 'number') return <input type="number" step="any" value={draft} onInput={onInput} />
  return (
    <textarea rows={shape === 'text' ? 1 : Math.min(12, draft.split('\n').length)} value={draft} onInput={onInput} />
  )
}
